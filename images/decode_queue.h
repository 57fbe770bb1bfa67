// Decoding ahead of whoever uses the pictures, on several threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "images/image.h"

namespace vitrine {

struct DecodeQueueOptions {
  DecodeOptions decode;
  unsigned threads = 0;  // 0: as many as the machine has
  // How far ahead: at most so many pictures, in work or finished, with so many bytes of pixels in all. The
  // picture that next() waits for is decoded whatever its size.
  size_t pictures_ahead = 64;
  uint64_t bytes_ahead = uint64_t{512} << 20;
};

struct EncodedPicture {
  std::filesystem::path path;
  // What is decoded instead of the file at the path, which is then a name to speak of. They outlive the
  // queue.
  std::optional<std::span<const std::byte>> bytes;
};

std::vector<EncodedPicture> encoded_in(const std::vector<std::filesystem::path>& files);

struct DecodedPicture {
  size_t index = 0;  // in the list
  std::filesystem::path path;
  std::optional<Image> image;
  std::string error;  // one sentence; empty if there is an image
};

// Pictures come in the order of the list, each as soon as it is finished. One that can't be read is an
// item with an error, and the others go on. Destroying the queue early stops after the pictures in work.
class DecodeQueue {
 public:
  explicit DecodeQueue(std::vector<EncodedPicture> pictures, const DecodeQueueOptions& options = {});
  ~DecodeQueue();
  DecodeQueue(const DecodeQueue&) = delete;
  DecodeQueue& operator=(const DecodeQueue&) = delete;

  // Waits for the next picture; nothing after the last. To be called from one thread at a time.
  std::optional<DecodedPicture> next();

  // The next picture if it is finished already.
  std::optional<DecodedPicture> try_next();

  size_t size() const;  // of the list

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace vitrine
