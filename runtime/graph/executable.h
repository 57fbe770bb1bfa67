// A plan on a device: pipelines, memory, descriptor sets and command buffers, recorded once and replayed.
// run() writes nothing but its inputs, records nothing and allocates nothing.
#pragma once

#include <vulkan/vulkan_core.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/graph/bound_dispatch.h"
#include "runtime/graph/go_on.h"
#include "runtime/graph/plan.h"
#include "runtime/graph/state_store.h"
#include "runtime/graph/weight_store.h"
#include "runtime/vk/timeline.h"

namespace vitrine {

// What the device's own clock said of one instrumented run.
struct Profile {
  std::vector<double> step_seconds;  // one a step of the plan
  double total_seconds = 0;          // their sum
};

class Executable {
 public:
  // Inputs and outputs exist twice, so that the host can fill one set while the device works on the
  // other; everything else exists once. Where they are staged, the copies of one set need nothing of the
  // other's run, and lie beside it where the device has a queue for them.
  static constexpr uint32_t io_sets = 2;

  // `states` holds the states of the plan's graph, and has to outlive this; needed where it has any.
  // `preparing` is asked while pipelines are compiled and constants brought in; after a "no" Interrupted is
  // thrown, and what was compiled until then needn't be again.
  Executable(WeightStore& weights, Plan plan, StateStore* states = nullptr, const GoOn& preparing = {});
  ~Executable();
  Executable(const Executable&) = delete;
  Executable& operator=(const Executable&) = delete;

  const Plan& plan() const { return plan_; }

  // The host's view of an input or output, in the order of Plan::inputs and Plan::outputs. Write inputs
  // before submit(), read outputs after wait().
  std::span<std::byte> input(size_t index, uint32_t set = 0);
  std::span<const std::byte> output(size_t index, uint32_t set = 0) const;
  size_t input_index(std::string_view name) const;
  size_t output_index(std::string_view name) const;

  void submit(uint32_t set = 0);
  void wait(uint32_t set = 0);
  void run(uint32_t set = 0) {
    submit(set);
    wait(set);
  }
  // Submits a slice, waits for it, asks, submits the next: what others submit to the queue gets its turn in
  // between. The share that is done goes by the plan's seconds. False when it was told to stop. What outputs
  // and states hold then means nothing.
  bool run_sliced(const GoOn& go_on, uint32_t set = 0);

  // Runs set 0 once with a timestamp after every step, and cuts the submissions anew by what it measured.
  Profile profile() { return *profile({}); }
  // The same slice by slice, as run_sliced does; nothing when it was told to stop.
  std::optional<Profile> profile(const GoOn& go_on);
  // Runs set 0 once with a timestamp before the first step and one after the last: what the device needs for
  // the plan alone, without the copies from and to the host's memory, in seconds.
  double device_seconds();

  // For tests: all of the arena and of the outputs filled with one 32-bit word; and all of the arena's
  // slabs, then all of set 0's output buffers with the guard bytes behind them, read back.
  void fill_memory(uint32_t word);
  std::vector<std::vector<std::byte>> read_memory();

 private:
  friend class TracedLoop;  // trace/traced_loop.h: the third recording, beside the profiles'
  using Pipelines = std::vector<std::shared_ptr<const Pipeline>>;
  struct IoBuffer {
    std::unique_ptr<Buffer> device;   // what shaders see
    std::unique_ptr<Buffer> staging;  // what the host sees; none when `device` is visible to the host
    Buffer& host() const { return staging ? *staging : *device; }
  };
  struct Set {
    std::vector<IoBuffer> inputs, outputs;
    std::vector<BoundDispatch> steps;
    std::vector<VkCommandBuffer> slices;
    VkCommandBuffer upload = VK_NULL_HANDLE, download = VK_NULL_HANDLE;  // none where nothing is staged
    uint64_t computed = 0;       // what computed_ shows when its last slice is done
    uint64_t copied = 0;         // what copied_ shows when its last copy is done
    uint64_t behind_upload = 0;  // of copied_, what the next slice waits for; 0: for nothing
    bool download_due = false;   // it computes, and the download isn't submitted yet
  };

  void make_io(Set& set);
  Pipelines load_and_compile(std::span<const Dispatch* const> steps, const GoOn& preparing);
  void bind(Set& set, const Pipelines& pipelines);
  BufferSlice slice_of(const MemoryRange& range, const Set& set) const;
  // Where a recording is: at the beginning of a slice, or behind a step or a part of it.
  struct Mark {
    size_t step = 0;
    bool slice_begins = false, step_ends = false;
  };
  using Marker = std::function<void(VkCommandBuffer, Mark)>;
  void record(Set& set);
  // A command buffer a slice.
  std::vector<VkCommandBuffer> record_slices(CommandPool& pool, Set& set, bool each_alone,
                                             const Marker& mark);
  void record_end(const Set& set, VkCommandBuffer commands);
  // Null where none of them is staged. `mark` is called before and behind the copies.
  using CopyMarker = std::function<void(VkCommandBuffer)>;
  VkCommandBuffer record_upload(CommandPool& pool, const Set& set, const CopyMarker& mark = {});
  VkCommandBuffer record_download(CommandPool& pool, const Set& set, const CopyMarker& mark = {});
  // Records set 0 anew, with what `mark` adds, and runs it once; slice by slice where `go_on` is one.
  bool run_marked(bool each_alone, const Marker& mark, const GoOn& go_on = {});
  void cut_anew();
  bool run_slices(Set& set, std::span<const VkCommandBuffer> slices, const GoOn& go_on);
  void begin(Set& set);
  void submit_slices(Set& set, std::span<const VkCommandBuffer> slices);
  void submit_copy(Set& set, VkCommandBuffer copy, std::span<const VkSemaphoreSubmitInfo> behind);
  void submit_download(Set& set);
  // All that was submitted of the set is done, the download that is due too.
  void settle(Set& set);
  void wait_until_done(Set& set);

  WeightStore& weights_;
  StateStore* states_;
  Device& device_;
  Plan plan_;
  std::vector<std::unique_ptr<Buffer>> slabs_;
  std::unique_ptr<Buffer> nothing_;  // bound where a shader declares a buffer that it won't touch
  std::unique_ptr<DescriptorSets> descriptors_;
  CommandPool commands_, copy_commands_;
  Timeline computed_, copied_;  // of the two queues, or of the one
  std::vector<Set> sets_;
};

}  // namespace vitrine
