#include "apps/desktop/engine/run_watch.h"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "runtime/util/error.h"
#include "runtime/util/text.h"
#include "train/run/run_folder.h"

namespace vitrine::desktop {
namespace {

using Clock = std::chrono::steady_clock;
using Path = std::filesystem::path;

// How often somebody looks whether there is more. `vitrine train` writes once a second.
constexpr std::chrono::milliseconds looking_interval{500};
// How long after its last line a training counts as one that goes on.
constexpr std::chrono::seconds growing_time{10};

Path absolute_of(const Path& folder) {
  std::error_code error;
  Path path = std::filesystem::weakly_canonical(std::filesystem::absolute(folder, error), error);
  if (error) path = folder;
  return path.has_filename() ? path : path.parent_path();
}

std::optional<uint64_t> epochs_in(const Path& settings) {
  constexpr uint64_t most_bytes = uint64_t{1} << 20;
  try {
    if (!std::filesystem::is_regular_file(settings) || std::filesystem::file_size(settings) > most_bytes)
      return std::nullopt;
    std::ifstream file(settings, std::ios::binary);
    const auto json = nlohmann::json::parse(file, nullptr, false);
    if (!json.is_object() || !json.contains("epochs") || !json["epochs"].is_number_unsigned())
      return std::nullopt;
    return json["epochs"].get<uint64_t>();
  } catch (const std::exception&) {
    return std::nullopt;  // it is only for the line that says how far it is
  }
}

// The last `parts` of a path's names.
std::string last_names(const Path& path, size_t parts) {
  std::vector<std::string> names;
  for (Path rest = path; rest.has_filename() && names.size() < parts; rest = rest.parent_path())
    names.push_back(shown(rest.filename()));
  std::string text;
  for (size_t i = names.size(); i-- > 0;) text += names[i] + (i > 0 ? "/" : "");
  return text;
}

}  // namespace

struct RunWatch::Run {
  explicit Run(const Path& folder) : follower(folder) { draft.folder = folder; }

  // The thread's own.
  RunFollower follower;
  RunState draft;
  std::optional<Clock::time_point> grew_at;
  // Under the watch's lock.
  std::shared_ptr<const RunState> told;
};

RunWatch::RunWatch(std::function<void()> changed) : changed_(std::move(changed)) {}

RunWatch::~RunWatch() {
  {
    const std::lock_guard lock(lock_);
    closing_ = true;
  }
  commanded_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void RunWatch::open(const Path& folder) {
  const Path path = absolute_of(folder);
  if (!is_run_folder(path)) {
    throw Error(ErrorCode::usage,
                shown(folder) +
                    " is no training's folder: found no log.csv in it, expected what vitrine "
                    "train --out has written to");
  }
  {
    const std::lock_guard lock(lock_);
    if (std::ranges::any_of(runs_, [&](const auto& run) { return run->told->folder == path; })) return;
    if (runs_.size() >= most) {
      throw Error(ErrorCode::usage, "the curves of " + std::to_string(most) +
                                        " trainings are shown, close one before another is opened");
    }
    auto run = std::make_shared<Run>(path);
    run->told = std::make_shared<const RunState>(run->draft);
    runs_.push_back(std::move(run));
    name_all();
    commands_ = true;
  }
  commanded_.notify_all();
  if (!thread_.joinable()) thread_ = std::thread([this] { work(); });
}

void RunWatch::close(const Path& folder) {
  const Path path = absolute_of(folder);
  const std::lock_guard lock(lock_);
  // What was opened may be a link by now.
  std::erase_if(runs_,
                [&](const auto& run) { return run->told->folder == path || run->told->folder == folder; });
  name_all();
}

// Each by as many names as tell all of them apart. Under the lock.
void RunWatch::name_all() {
  for (size_t parts = 1; parts < 8; ++parts) {
    std::vector<std::string> names;
    for (const auto& run : runs_) names.push_back(last_names(run->told->folder, parts));
    std::vector<std::string> sorted = names;
    std::ranges::sort(sorted);
    const bool differ = std::ranges::adjacent_find(sorted) == sorted.end();
    if (!differ && parts + 1 < 8) continue;
    for (size_t i = 0; i < runs_.size(); ++i) {
      RunState named = *runs_[i]->told;
      named.name = names[i];
      runs_[i]->told = std::make_shared<const RunState>(std::move(named));
    }
    return;
  }
}

RunWatch::States RunWatch::states() const {
  const std::lock_guard lock(lock_);
  States states;
  for (const auto& run : runs_) states.push_back(run->told);
  return states;
}

bool RunWatch::busy() const {
  const std::lock_guard lock(lock_);
  return std::ranges::any_of(runs_, [](const auto& run) { return !run->told->read; });
}

// True where there is something new to tell.
bool RunWatch::look_at(Run& run) const {
  RunState& draft = run.draft;
  const bool first = !draft.read;
  bool news = false;
  std::string error;
  try {
    news = run.follower.read_more();
    draft.read = run.follower.at_end();
  } catch (const std::exception& failed) {
    error = failed.what();
    draft.read = true;
  }
  // What was there before may be old; what comes now isn't.
  if (news && !first && run.follower.read_any()) run.grew_at = Clock::now();
  const bool grows = run.grew_at && Clock::now() - *run.grew_at < growing_time;
  const bool changed = news || grows != draft.grows || error != draft.error || (first && draft.read);
  draft.grows = grows;
  draft.error = std::move(error);
  if (changed) {
    draft.curves = run.follower.curves();
    if (first || news) draft.epochs = epochs_in(settings_in(draft.folder));
  }
  return changed;
}

void RunWatch::work() {
  std::unique_lock lock(lock_);
  while (!closing_) {
    commands_ = false;
    const std::vector<std::shared_ptr<Run>> runs = runs_;
    lock.unlock();
    bool changed = false, unread = false;
    for (const auto& run : runs) {
      if (look_at(*run)) {
        auto told = std::make_shared<RunState>(run->draft);
        const std::lock_guard again(lock_);
        told->name = run->told->name;
        run->told = std::move(told);
        changed = true;
      }
      unread = unread || !run->draft.read;
    }
    if (changed && changed_) changed_();
    lock.lock();
    // Whoever closes waits for one look at most: a few megabytes.
    if (!unread) commanded_.wait_for(lock, looking_interval, [&] { return closing_ || commands_; });
  }
}

}  // namespace vitrine::desktop
