#include "apps/desktop/engine/picture_library.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>

#include "apps/desktop/engine/picture_paths.h"
#include "images/shrink.h"
#include "runtime/util/text.h"

namespace vitrine::desktop {

namespace {

// So many thumbnails are asked for at a time. Who scrolls past a thousand pictures isn't shown their
// thumbnails one after the other, but those that are visible in the end.
constexpr size_t most_requests = 8;

// A job for a thumbnail, alive until its result is taken or the job is dropped.
class Request {
 public:
  explicit Request(std::shared_ptr<std::atomic<size_t>> alive) : alive_(std::move(alive)) { ++*alive_; }
  ~Request() { --*alive_; }
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;

 private:
  std::shared_ptr<std::atomic<size_t>> alive_;
};

// The picture is in memory only while this runs.
Thumbnail made_thumbnail(const std::filesystem::path& path, bool exif) {
  Thumbnail made;
  try {
    const Image image = decode_image(path, {.exif = exif});
    made.width = image.width;
    made.height = image.height;
    made.image = std::make_shared<const Image>(shrunk(image, PictureLibrary::thumbnail_side));
    made.state = Thumbnail::State::ready;
  } catch (...) {
    made.error = sentence_of_current_exception().value_or("");
    made.state = Thumbnail::State::broken;
  }
  return made;
}

}  // namespace

struct PictureLibrary::State {
  struct Entry {
    std::filesystem::path path;
    Thumbnail thumbnail = {};
    std::weak_ptr<Request> request = {};
    uint64_t last_use = 0;
  };
  std::vector<Entry> entries;      // by their numbers, as they were opened
  std::vector<size_t> order;       // the number of what stands in each place
  std::vector<size_t> places;      // and where each number stands
  std::optional<size_t> selected;  // a number
  uint64_t list_number = 0, order_number = 0, openings = 0, uses = 0;
  size_t kept = 0;
  bool exif = false;
  std::shared_ptr<std::atomic<size_t>> requests = std::make_shared<std::atomic<size_t>>(0);

  void replace(std::vector<std::filesystem::path> files) {
    entries.clear();
    for (std::filesystem::path& file : files) entries.push_back({.path = std::move(file)});
    selected = entries.empty() ? std::nullopt : std::optional<size_t>(0);
    kept = 0;
    ++list_number;
    order.resize(entries.size());
    std::iota(order.begin(), order.end(), size_t{0});
    places = order;
  }

  void take(size_t index, Thumbnail made) {
    Entry& entry = entries[index];
    if (entry.thumbnail.state != Thumbnail::State::waiting) return;  // it was marked meanwhile
    entry.thumbnail = std::move(made);
    if (entry.thumbnail.state == Thumbnail::State::ready && ++kept > thumbnails_kept) drop_oldest(index);
  }

  void drop_oldest(size_t but) {
    Entry* oldest = nullptr;
    for (size_t i = 0; i < entries.size(); ++i) {
      const bool ready = entries[i].thumbnail.state == Thumbnail::State::ready;
      if (ready && i != but && (!oldest || entries[i].last_use < oldest->last_use)) oldest = &entries[i];
    }
    if (!oldest) return;
    oldest->thumbnail = {};
    --kept;
  }
};

PictureLibrary::PictureLibrary(Worker& worker) : state_(std::make_shared<State>()), worker_(worker) {}

PictureLibrary::~PictureLibrary() = default;

void PictureLibrary::open(std::vector<std::filesystem::path> named, std::function<void()> opened) {
  // Thumbnails of the list that goes would only be in the way.
  worker_.cancel();
  const uint64_t opening = ++state_->openings;
  worker_.start(
      "open pictures", [&worker = worker_, weak = std::weak_ptr(state_), opening, named = std::move(named),
                        opened = std::move(opened)](Progress& progress) mutable {
        std::vector<std::filesystem::path> files = pictures_of(std::move(named));
        progress.check();
        worker.post_to_ui([weak, opening, files = std::move(files), opened = std::move(opened)]() mutable {
          const std::shared_ptr<State> state = weak.lock();
          if (!state || state->openings != opening) return;  // somebody opened something else meanwhile
          state->replace(std::move(files));
          if (opened) opened();
        });
      });
}

void PictureLibrary::sort_by(const Score& score) {
  State& s = *state_;
  std::vector<size_t> order(s.entries.size());
  std::iota(order.begin(), order.end(), size_t{0});
  if (score) {
    // NaN is a score that says nothing.
    std::vector<float> scores;
    for (const State::Entry& entry : s.entries) {
      const std::optional<float> found = score(entry.path);
      scores.push_back(found && !std::isnan(*found) ? *found : -std::numeric_limits<float>::infinity());
    }
    std::ranges::stable_sort(order, std::greater{}, [&](size_t number) { return scores[number]; });
  }
  if (order == s.order) return;
  for (size_t place = 0; place < order.size(); ++place) s.places[order[place]] = place;
  s.order = std::move(order);
  ++s.order_number;
}

uint64_t PictureLibrary::order_number() const { return state_->order_number; }

size_t PictureLibrary::number(size_t index) const { return state_->order.at(index); }

size_t PictureLibrary::size() const { return state_->entries.size(); }

uint64_t PictureLibrary::list_number() const { return state_->list_number; }

const std::filesystem::path& PictureLibrary::path(size_t index) const {
  return state_->entries[number(index)].path;
}

std::string PictureLibrary::name(size_t index) const { return shown(path(index).filename()); }

std::optional<size_t> PictureLibrary::selected() const {
  if (!state_->selected) return std::nullopt;
  return state_->places[*state_->selected];
}

void PictureLibrary::select(size_t index) {
  if (index < size()) state_->selected = number(index);
}

bool PictureLibrary::next() {
  const auto place = selected();
  if (!place || *place + 1 >= size()) return false;
  select(*place + 1);
  return true;
}

bool PictureLibrary::previous() {
  const auto place = selected();
  if (!place || *place == 0) return false;
  select(*place - 1);
  return true;
}

const Thumbnail& PictureLibrary::thumbnail(size_t place) {
  const size_t index = number(place);
  State::Entry& entry = state_->entries[index];
  entry.last_use = ++state_->uses;
  const bool there = entry.thumbnail.state != Thumbnail::State::waiting;
  if (there || !entry.request.expired() || *state_->requests >= most_requests) return entry.thumbnail;
  const auto request = std::make_shared<Request>(state_->requests);
  entry.request = request;
  worker_.start("thumbnails", [&worker = worker_, weak = std::weak_ptr(state_), path = entry.path, request,
                               list = state_->list_number, exif = state_->exif, index](Progress& progress) {
    progress.say(shown(path.filename()));
    progress.check();
    Thumbnail made = made_thumbnail(path, exif);
    worker.post_to_ui([weak, list, index, request, made = std::move(made)]() mutable {
      const std::shared_ptr<State> state = weak.lock();
      if (state && state->list_number == list) state->take(index, std::move(made));
    });
  });
  return entry.thumbnail;
}

void PictureLibrary::turn_by_exif(bool on) {
  if (std::exchange(state_->exif, on) == on) return;
  for (State::Entry& entry : state_->entries) {
    if (entry.thumbnail.state == Thumbnail::State::ready) entry.thumbnail = {};
  }
  state_->kept = 0;
  ++state_->list_number;  // what is being made is not taken any more
}

void PictureLibrary::mark_broken(size_t index, std::string error) {
  State::Entry& entry = state_->entries[number(index)];
  if (entry.thumbnail.state == Thumbnail::State::ready) --state_->kept;
  entry.thumbnail = {
      .state = Thumbnail::State::broken, .image = {}, .width = 0, .height = 0, .error = std::move(error)};
}

}  // namespace vitrine::desktop
