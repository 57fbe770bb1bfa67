#include "images/decode_queue.h"

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <utility>

#include "images/decoders.h"
#include "runtime/util/error.h"
#include "runtime/util/text.h"

namespace vitrine {

struct DecodeQueue::State {
  const std::vector<EncodedPicture> pictures;
  const DecodeQueueOptions options;

  std::mutex mutex;
  std::condition_variable finished;  // a picture is there
  std::condition_variable room;      // another may be begun, or it is time to stop
  std::map<size_t, DecodedPicture> ready;
  uint64_t held_bytes = 0;  // of pictures in work and ready
  size_t begun = 0, taken = 0;
  bool stop = false;
  std::vector<std::thread> threads;

  State(std::vector<EncodedPicture> list, const DecodeQueueOptions& given)
      : pictures(std::move(list)), options(given) {}

  void work() {
    while (true) {
      std::unique_lock lock(mutex);
      // Pictures are begun in order: the one that next() waits for is never held back.
      room.wait(lock, [&] {
        return stop || begun == pictures.size() ||
               begun - taken < std::max<size_t>(options.pictures_ahead, 1);
      });
      if (stop || begun == pictures.size()) return;
      const size_t index = begun++;
      lock.unlock();
      decode(index);
      finished.notify_one();
    }
  }

  void decode(size_t index) {
    DecodedPicture picture{.index = index, .path = pictures[index].path, .image = {}, .error = {}};
    uint64_t bytes = 0;
    try {
      std::vector<std::byte> file;
      if (!pictures[index].bytes) file = read_picture_file(picture.path);
      const std::span<const std::byte> encoded = pictures[index].bytes.value_or(file);
      const std::optional<uint64_t> room_for = reserve(index, claimed_pixels(encoded));
      if (!room_for) return;
      bytes = *room_for;
      picture.image = decode_image(encoded, shown(picture.path), options.decode);
    } catch (const Error& error) {
      picture.error = error.what();
    } catch (const std::bad_alloc&) {
      picture.error = shown(picture.path) + ": there is not enough memory for the picture";
    }
    const std::lock_guard lock(mutex);
    // Of a picture that became none, nothing remains.
    held_bytes -= bytes;
    if (picture.image) held_bytes += picture.image->pixels.size();
    ready.emplace(index, std::move(picture));
    room.notify_all();
  }

  // Waits until so many pixels fit, or everybody waits for just this picture; nothing if it is time to
  // stop. A picture that will be refused for its size takes no room.
  std::optional<uint64_t> reserve(size_t index, uint64_t pixels) {
    const uint64_t bytes = pixels <= options.decode.max_pixels ? pixels * 4 : 0;
    std::unique_lock lock(mutex);
    room.wait(lock, [&] { return stop || index == taken || held_bytes + bytes <= options.bytes_ahead; });
    if (stop) return std::nullopt;
    held_bytes += bytes;
    return bytes;
  }

  // Under the mutex, with the next picture there.
  DecodedPicture take() {
    auto node = ready.extract(taken++);
    DecodedPicture picture = std::move(node.mapped());
    if (picture.image) held_bytes -= picture.image->pixels.size();
    return picture;
  }

  void end() {
    {
      const std::lock_guard lock(mutex);
      stop = true;
    }
    room.notify_all();
    for (std::thread& thread : threads) thread.join();
  }
};

std::vector<EncodedPicture> encoded_in(const std::vector<std::filesystem::path>& files) {
  std::vector<EncodedPicture> pictures;
  for (const std::filesystem::path& file : files) pictures.push_back({.path = file, .bytes = {}});
  return pictures;
}

DecodeQueue::DecodeQueue(std::vector<EncodedPicture> pictures, const DecodeQueueOptions& options)
    : state_(std::make_unique<State>(std::move(pictures), options)) {
  const size_t wanted =
      options.threads != 0 ? options.threads : std::max(1u, std::thread::hardware_concurrency());
  const size_t count = std::min(wanted, state_->pictures.size());
  try {
    for (size_t i = 0; i < count; i++)
      state_->threads.emplace_back([state = state_.get()] { state->work(); });
  } catch (const std::system_error&) {
    // The system gives no more threads; one is enough.
    if (state_->threads.empty()) {
      throw Error(ErrorCode::failed, "no thread for decoding pictures could be started");
    }
  }
}

DecodeQueue::~DecodeQueue() { state_->end(); }

std::optional<DecodedPicture> DecodeQueue::next() {
  std::unique_lock lock(state_->mutex);
  if (state_->taken == state_->pictures.size()) return std::nullopt;
  state_->finished.wait(lock, [&] { return state_->ready.contains(state_->taken); });
  DecodedPicture picture = state_->take();
  lock.unlock();
  state_->room.notify_all();
  return picture;
}

std::optional<DecodedPicture> DecodeQueue::try_next() {
  std::unique_lock lock(state_->mutex);
  if (!state_->ready.contains(state_->taken)) return std::nullopt;
  DecodedPicture picture = state_->take();
  lock.unlock();
  state_->room.notify_all();
  return picture;
}

size_t DecodeQueue::size() const { return state_->pictures.size(); }

}  // namespace vitrine
