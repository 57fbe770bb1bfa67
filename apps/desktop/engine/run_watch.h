// Run folders of trainings that are looked at: read and followed on a thread of its own.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "apps/desktop/engine/run_log.h"

namespace vitrine::desktop {

// All there is to be shown of one.
struct RunState {
  std::filesystem::path folder;
  std::string name;                // the folder's, with as many of those above as tell it from the others
  std::string error;               // why there are no curves, in one sentence
  bool read = false;               // all that was there when somebody last looked
  bool grows = false;              // something came within the last seconds
  std::optional<uint64_t> epochs;  // of the whole training, where its settings say so
  RunCurves curves;
};

class RunWatch {
 public:
  using States = std::vector<std::shared_ptr<const RunState>>;
  static constexpr size_t most = 8;

  // `changed` is called from the watch's thread when there is something new to show.
  explicit RunWatch(std::function<void()> changed = {});
  ~RunWatch();
  RunWatch(const RunWatch&) = delete;
  RunWatch& operator=(const RunWatch&) = delete;

  // None of these waits. One that is open already stays where it is. Error(usage) for a folder that is no
  // training's, and where as many are open as can be.
  void open(const std::filesystem::path& folder);
  void close(const std::filesystem::path& folder);

  // In the order in which they were opened; each the same until something changes.
  States states() const;
  // One was opened and is not read to its end.
  bool busy() const;

 private:
  struct Run;
  void work();
  bool look_at(Run& run) const;
  void name_all();

  const std::function<void()> changed_;
  mutable std::mutex lock_;
  std::condition_variable commanded_;
  std::vector<std::shared_ptr<Run>> runs_;
  bool closing_ = false, commands_ = false;
  std::thread thread_;  // from the first folder on
};

}  // namespace vitrine::desktop
