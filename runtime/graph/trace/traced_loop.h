// An inference loop with both sets in flight, and what of it happened when: on the host, on the queue that
// computes, on the one that copies. Recordings of its own carry the timestamps.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/graph/executable.h"
#include "runtime/graph/trace/clocks.h"
#include "runtime/graph/trace/completions.h"
#include "runtime/graph/trace/timestamps.h"

namespace vitrine {

enum class TraceLane : uint8_t { host, compute, copies };

struct TraceSpan {
  TraceLane lane = TraceLane::host;
  std::string name;           // "fill", "submit"; "run"; a node's; "upload", "download"
  std::string operator_name;  // of a dispatch, which lies in its run
  double begin = 0, end = 0;  // in seconds, the loop begins at 0
  uint64_t run = 0;
  uint32_t set = 0;
};

struct LoopTrace {
  std::vector<TraceSpan> spans;
  // How the device's moments came to the host's clock, a sentence.
  std::string clocks;
  double uncertainty = 0;  // of theirs beside the host's, to either side, in seconds
};

// How much of the copies there is, and how much of that lies beside a run.
struct CopyTimes {
  double seconds = 0, beside_runs = 0;
};
CopyTimes copy_times(const LoopTrace& trace);

class TracedLoop {
 public:
  // `executable` has its own recordings again when this goes, and must not be used by others meanwhile.
  explicit TracedLoop(Executable& executable);
  ~TracedLoop();
  TracedLoop(const TracedLoop&) = delete;
  TracedLoop& operator=(const TracedLoop&) = delete;

  using Touch = std::function<void(uint32_t set)>;
  // `fill` writes a set's inputs and `read` reads its outputs.
  LoopTrace run(uint64_t runs, const Touch& fill, const Touch& read);

 private:
  // Of a set: its own commands while they stand in for those of the set, which it keeps meanwhile.
  struct Recording {
    VkCommandBuffer upload = VK_NULL_HANDLE, download = VK_NULL_HANDLE;
    std::vector<VkCommandBuffer> slices;
    std::unique_ptr<Timestamps> steps, copies;   // none where their queue has no clock
    std::vector<std::optional<size_t>> step_of;  // of each interval between two timestamps; none: no step's
  };
  struct Flight {
    uint64_t run = 0;
    uint32_t set = 0;
    double submitted = 0, landed = 0;                                   // by the host
    uint64_t computed_value = 0, upload_value = 0, download_value = 0;  // of the timelines; 0: there is none
    std::vector<uint64_t> step_ticks, copy_ticks;
  };
  struct Watched {
    uint64_t computed = 0, copied = 0;
  };

  void record(uint32_t set);
  static void swap_commands(Executable::Set& set, Recording& recording);
  void note(const char* name, uint64_t run, uint32_t set, const std::function<void()>& what);
  void watch();
  void launch(Flight& flight, const Touch& fill);
  void land(Flight& flight, const Touch& read);
  double computed_at(const Flight& flight);
  double copied_at(const Flight& flight, uint64_t value);
  void match_clocks(LoopTrace& trace);
  void add_computation(const Flight& flight, double previous_end, LoopTrace& trace);
  void add_copies(const Flight& flight, LoopTrace& trace);

  Executable& executable_;
  Device& device_;
  double begin_;
  std::optional<DeviceClock> steps_clock_, copies_clock_;
  std::optional<ClockPair> before_;
  CommandPool commands_, copy_commands_;
  std::vector<Recording> recordings_;
  std::vector<Flight> flights_;
  std::vector<TraceSpan> host_spans_;
  std::vector<Watched> watched_;
  std::unique_ptr<Completions> computed_, copied_;  // where timestamps don't say it all
};

}  // namespace vitrine
