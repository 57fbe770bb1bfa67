#include "apps/desktop/words.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "runtime/util/error.h"
#include "runtime/util/split.h"
#include "runtime/util/text.h"

namespace vitrine::desktop {
namespace {

// How long the folder keeps the worker before a map, or another picture, gets its turn.
constexpr double seconds_a_job = 0.2;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

Words::Words(Looking& looking, PictureLibrary& library, Worker& worker)
    : looking_(looking), library_(library), worker_(worker), self_(std::make_shared<Words*>(this)) {}

Words::~Words() { *self_ = nullptr; }

void Words::set_labels(std::string text) {
  labels_.typed = std::move(text);
  cancelled_ = false;
}

void Words::set_pattern(std::string text) {
  pattern_ = std::move(text);
  cancelled_ = false;
}

void Words::look_for(std::string text) {
  query_.typed = std::move(text);
  cancelled_ = false;
}

void Words::cancel() { cancelled_ = true; }

void Words::type(Typed typed) {
  set_labels(std::move(typed.labels));
  set_pattern(std::move(typed.pattern));
  look_for(std::move(typed.words));
}

bool Words::readable() const {
  const std::shared_ptr<ModelSession> session = looking_.session();
  return session && session->has_words();
}

bool Words::busy() const { return !job_.expired() || (!sorted_ && readable()); }

std::string Words::effective_pattern() const {
  return pattern_.find("{}") == std::string::npos ? std::string() : pattern_;
}

void Words::start(std::string what, std::function<void(WordReader&, Progress&, const Post&)> work,
                  std::function<void(Words&)> failed) {
  const auto held = std::make_shared<const bool>(true);
  job_ = held;
  const Post post = [self = self_, weak = session_, &worker = worker_](std::function<void(Words&)> task) {
    worker.post_to_ui([self, weak, task = std::move(task)] {
      if (*self && !weak.expired() && weak.lock() == (*self)->session_.lock()) task(**self);
    });
  };
  worker_.start(std::move(what), [held, post, weak = session_, work = std::move(work),
                                  failed = std::move(failed)](Progress& progress) {
    const std::shared_ptr<ModelSession> session = weak.lock();
    if (!session) throw Cancelled{};
    try {
      WordReader& reader = session->words();
      post([text = reader.text()](Words& self) { self.text_ = text; });
      work(reader, progress, post);
    } catch (const Error& error) {
      // Said where it is typed, for as long as it stands there.
      post([failed, sentence = std::string(error.what())](Words& self) {
        failed(self);
        self.trouble_ = sentence;
      });
    }
  });
}

void Words::forget() {
  text_.reset();
  labels_.read.clear();
  pattern_read_.clear();
  labels_.vectors.reset();
  query_.read.clear();
  query_.vectors.reset();
  labels_read_.clear();
  trouble_.clear();
  scores_.clear();
  scored_look_ = 0;
  pictures_.clear();
  reading_ = Reading::nothing;
  read_ = 0;
  looking_.show_words({});
  library_.sort_by({});
  sorted_ = true;
}

void Words::update() {
  const std::shared_ptr<ModelSession> session = looking_.session();
  if (session != session_.lock() || (has_model_ && session_.expired())) {
    session_ = session;
    has_model_ = session != nullptr;
    forget();
  }
  if (!readable()) return;
  if (const bool exif = looking_.turns_by_exif(); exif != exif_) {
    exif_ = exif;
    pictures_.clear();
    list_ = 0;
  }
  if (const uint64_t list = library_.list_number(); list != list_) {
    list_ = list;
    reading_ = Reading::nothing;
    sorted_ = false;
    next_sort_ = 0;
    cancelled_ = false;
  }
  score();
  if (!sorted_ && now() >= next_sort_) sort();
  if (!job_.expired() || looking_.busy() || cancelled_) return;
  if (labels_.read != labels_.typed || pattern_read_ != effective_pattern()) return read_labels();
  if (query_.read != query_.typed) return read_query();
  if (query_.vectors && reading_ != Reading::done) read_pictures();
}

void Words::read_labels() {
  trouble_.clear();
  const auto take = [typed = labels_.typed, pattern = effective_pattern()](
                        Words& self, std::vector<std::string> labels,
                        std::shared_ptr<const std::vector<float>> vectors) {
    self.labels_.read = typed;
    self.pattern_read_ = pattern;
    self.labels_.vectors = std::move(vectors);
    self.labels_read_ = std::move(labels);
    self.scored_look_ = 0;
  };
  const std::vector<std::string> labels = labels_in(labels_.typed);
  if (labels.empty()) return take(*this, {}, {});
  start(
      "Reading labels",
      [labels, take, pattern = effective_pattern()](WordReader& reader, Progress& progress,
                                                    const Post& post) {
        const auto vectors =
            std::make_shared<const std::vector<float>>(reader.vectors(labels, pattern, progress));
        post([labels, take, vectors](Words& self) { take(self, labels, vectors); });
      },
      [take](Words& self) { take(self, {}, {}); });
}

void Words::read_query() {
  trouble_.clear();
  const auto take = [typed = query_.typed](Words& self, std::shared_ptr<const std::vector<float>> vector) {
    self.query_.read = typed;
    self.query_.vectors = std::move(vector);
    self.compare_all();
  };
  const std::string words(trimmed(query_.typed));
  if (words.empty()) return take(*this, {});
  start(
      "Reading words",
      [words, take](WordReader& reader, Progress& progress, const Post& post) {
        const auto vector = std::make_shared<const std::vector<float>>(reader.vectors({words}, {}, progress));
        post([take, vector](Words& self) { take(self, vector); });
      },
      [take](Words& self) { take(self, {}); });
}

void Words::compare_all() {
  for (auto& [path, compared] : pictures_) {
    compared.similarity.reset();
    if (query_.vectors && !compared.features.empty())
      compared.similarity = cosines(compared.features, *query_.vectors).front();
  }
  looking_.show_words(query_.vectors);
  sorted_ = false;
  next_sort_ = 0;
}

void Words::read_pictures() {
  std::vector<std::filesystem::path> missing;
  const bool begin = reading_ == Reading::nothing;
  if (begin) {
    for (size_t i = 0; i < library_.size(); ++i) {
      if (!pictures_.contains(library_.path(i).native())) missing.push_back(library_.path(i));
    }
    read_ = library_.size() - missing.size();
    if (missing.empty()) {
      reading_ = Reading::done;
      return;
    }
  }
  start(
      "Reading the folder",
      [begin, missing = std::move(missing), exif = exif_, read = read_, total = library_.size(),
       list = list_](WordReader& reader, Progress& progress, const Post& post) {
        progress.say(std::to_string(read) + " of " + counted(total, "picture"));
        progress.set_done(static_cast<double>(read) / static_cast<double>(total));
        const auto reached = [&](Reading reading) {
          post([list, exif, reading](Words& self) {
            if (self.list_ != list || self.exif_ != exif) return;
            self.reading_ = reading;
            if (reading == Reading::done) self.next_sort_ = 0;
          });
        };
        if (begin) {
          reader.begin(missing, exif);
          reached(Reading::begun);
        }
        const bool left = reader.go_on(seconds_a_job, progress, [&](WordReader::Found found) {
          post([found, exif](Words& self) mutable {
            if (self.exif_ == exif) self.take_picture(found);
          });
        });
        if (!left) reached(Reading::done);
      },
      [](Words& self) { self.reading_ = Reading::done; });
}

void Words::take_picture(WordReader::Found& found) {
  const auto [place, added] = pictures_.try_emplace(found.path.native());
  if (!added) return;
  ++read_;
  Compared& compared = place->second;
  compared.features = std::move(found.features);
  if (query_.vectors && !compared.features.empty())
    compared.similarity = cosines(compared.features, *query_.vectors).front();
  sorted_ = false;
}

void Words::sort() {
  const double begin = now();
  if (query_.vectors) {
    library_.sort_by([this](const std::filesystem::path& path) { return similarity_of(path); });
  } else {
    library_.sort_by({});
  }
  sorted_ = true;
  // A folder of a hundred thousand takes a while to sort: a tenth of the time is enough.
  next_sort_ = now() + std::max(0.3, 9 * (now() - begin));
}

void Words::score() {
  const Looking::Seen* seen = looking_.seen();
  if (!labels_.vectors || !text_ || !seen || seen->result.features.empty()) {
    scores_.clear();
    return;
  }
  if (scored_look_ == looking_.looks()) return;
  scored_look_ = looking_.looks();
  scores_ = top_answers(text_->probabilities(text_->logits(seen->result.features, *labels_.vectors)),
                        ModelSession::top_count, Labels(labels_read_));
}

std::optional<float> Words::similarity_of(const std::filesystem::path& path) const {
  const auto known = pictures_.find(path.native());
  return known == pictures_.end() ? std::nullopt : known->second.similarity;
}

std::optional<float> Words::similarity(size_t index) const {
  if (!query_.vectors || index >= library_.size()) return std::nullopt;
  return similarity_of(library_.path(index));
}

}  // namespace vitrine::desktop
