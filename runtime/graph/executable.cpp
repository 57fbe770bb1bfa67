#include "runtime/graph/executable.h"

#include <volk.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <future>
#include <numeric>
#include <utility>

#include "runtime/util/error.h"
#include "runtime/vk/result.h"

namespace vitrine {
namespace {

// Smallest size for a buffer: zero-byte buffers don't exist.
constexpr uint64_t least_bytes = 256;

// How often is asked whether to go on while nothing happens but compiling.
constexpr std::chrono::milliseconds asking_interval{20};

}  // namespace

Executable::Executable(WeightStore& weights, Plan plan, StateStore* states, const GoOn& preparing)
    : weights_(weights),
      states_(states),
      device_(weights.pipelines().device()),
      plan_(std::move(plan)),
      commands_(device_),
      copy_commands_(device_, device_.copy_queue_family()),
      computed_(device_),
      copied_(device_) {
  if (!plan_.states.empty() && !states_) {
    throw Error(ErrorCode::usage, "a graph that has states needs a store of them");
  }
  for (const Plan::StateBuffer& state : plan_.states)
    states_->require(state.name, state.bytes, plan_.tail_bytes);
  const std::vector<const Dispatch*> dispatches = plan_.dispatches();
  const auto steps = std::span(dispatches).first(plan_.steps.size());
  const Pipelines pipelines = load_and_compile(steps, preparing);

  for (size_t i = 0; i < plan_.slab_bytes.size(); ++i) {
    slabs_.push_back(std::make_unique<Buffer>(device_, BufferKind::device,
                                              plan_.slab_bytes[i] + plan_.tail_bytes,
                                              "activations " + std::to_string(i)));
  }
  nothing_ = std::make_unique<Buffer>(device_, BufferKind::device, least_bytes, "nothing");
  descriptors_ = std::make_unique<DescriptorSets>(device_, steps, io_sets);

  sets_.resize(io_sets);
  for (Set& set : sets_) {
    make_io(set);
    bind(set, pipelines);
    record(set);
    set.upload = record_upload(copy_commands_, set);
    set.download = record_download(copy_commands_, set);
  }
}

Executable::~Executable() {
  // Nothing may be destroyed that the device still uses; what others have submitted is not waited for. A
  // lost device answers at once.
  computed_.wait_without_check(computed_.promised());
  copied_.wait_without_check(copied_.promised());
}

// Pipelines are compiled while the constants are brought in.
Executable::Pipelines Executable::load_and_compile(std::span<const Dispatch* const> steps,
                                                   const GoOn& preparing) {
  std::atomic<bool> wanted = true;
  std::atomic<double> compiled_share = 0;
  auto compiled = std::async(std::launch::async, [&] {
    const GoOn go_on = [&](double share) {
      compiled_share = share;
      return wanted.load();
    };
    return weights_.pipelines().get(steps, go_on);
  });
  try {
    const GoOn loading = [&](double share) { return !preparing || preparing((share + compiled_share) / 2); };
    weights_.load(plan_, loading);
    if (preparing) {
      do {
        if (!loading(1)) throw Interrupted();
      } while (compiled.wait_for(asking_interval) != std::future_status::ready);
    }
  } catch (...) {
    wanted = false;
    throw;
  }
  return compiled.get();
}

void Executable::make_io(Set& set) {
  const Capabilities& caps = device_.capabilities();
  // Memory that is fast for both sides is written directly; it is read directly only where the host
  // caches it, as reading write-combined memory is slower than a copy.
  const auto make = [&](ValueId id, bool unified, BufferKind direct, BufferKind staging) {
    const Value& value = plan_.graph->value(id);
    const uint64_t bytes = std::max(least_bytes, round_up(value.bytes(), 4)) + plan_.tail_bytes +
                           round_up(plan_.options.guard_bytes, 4);
    IoBuffer io;
    io.device = std::make_unique<Buffer>(device_, unified ? direct : BufferKind::staged, bytes, value.name);
    if (!unified) io.staging = std::make_unique<Buffer>(device_, staging, bytes, value.name + " staging");
    return io;
  };
  for (const ValueId id : plan_.inputs)
    set.inputs.push_back(make(id, caps.unified_memory(), BufferKind::direct, BufferKind::upload));
  for (const ValueId id : plan_.outputs) {
    set.outputs.push_back(
        make(id, caps.unified_cached_memory(), BufferKind::direct_read, BufferKind::readback));
  }
}

BufferSlice Executable::slice_of(const MemoryRange& range, const Set& set) const {
  using Space = MemoryRange::Space;
  switch (range.space) {
    case Space::nothing:
      break;
    case Space::arena:
      return {slabs_[range.index].get(), range.offset, range.bytes};
    case Space::constant:
      return weights_.find(*plan_.graph, plan_.constants[range.index]);
    case Space::input:
      return {set.inputs[range.index].device.get(), range.offset, range.bytes};
    case Space::output:
      return {set.outputs[range.index].device.get(), range.offset, range.bytes};
    case Space::state:
      return {&states_->find(plan_.states[range.index].name), range.offset, range.bytes};
  }
  return {nothing_.get(), 0, least_bytes};
}

void Executable::bind(Set& set, const Pipelines& pipelines) {
  for (size_t i = 0; i < plan_.steps.size(); ++i) {
    std::vector<BufferSlice> slices;
    for (const MemoryRange& range : plan_.steps[i].ranges) slices.push_back(slice_of(range, set));
    set.steps.emplace_back(plan_.steps[i].dispatch, pipelines[i], *descriptors_, slices);
  }
}

void Executable::record_end(const Set& set, VkCommandBuffer commands) {
  if (!set.outputs.empty() && set.outputs.front().staging) return;  // the download's semaphore does it
  record_barrier(device_, commands, VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT,
                 VK_ACCESS_2_SHADER_STORAGE_WRITE_BIT, VK_PIPELINE_STAGE_2_HOST_BIT,
                 VK_ACCESS_2_HOST_READ_BIT);
}

VkCommandBuffer Executable::record_upload(CommandPool& pool, const Set& set, const CopyMarker& mark) {
  if (set.inputs.empty() || !set.inputs.front().staging) return VK_NULL_HANDLE;
  // No barrier before it: the host waits for a set before it submits it again, so nobody reads these buffers,
  // and what the other set's run does is none of a copy's business.
  const VkCommandBuffer commands = pool.begin();
  if (mark) mark(commands);
  for (size_t i = 0; i < set.inputs.size(); ++i) {
    const IoBuffer& io = set.inputs[i];
    const VkBufferCopy region{0, 0, plan_.graph->value(plan_.inputs[i]).bytes()};
    device_.vk().vkCmdCopyBuffer(commands, io.staging->handle(), io.device->handle(), 1, &region);
  }
  if (mark) mark(commands);
  pool.end(commands);
  return commands;
}

VkCommandBuffer Executable::record_download(CommandPool& pool, const Set& set, const CopyMarker& mark) {
  if (set.outputs.empty() || !set.outputs.front().staging) return VK_NULL_HANDLE;
  const VkCommandBuffer commands = pool.begin();
  if (mark) mark(commands);
  for (size_t i = 0; i < set.outputs.size(); ++i) {
    const IoBuffer& io = set.outputs[i];
    const VkBufferCopy region{0, 0, plan_.graph->value(plan_.outputs[i]).bytes()};
    device_.vk().vkCmdCopyBuffer(commands, io.device->handle(), io.staging->handle(), 1, &region);
  }
  if (mark) mark(commands);
  record_barrier(device_, commands, VK_PIPELINE_STAGE_2_TRANSFER_BIT, VK_ACCESS_2_TRANSFER_WRITE_BIT,
                 VK_PIPELINE_STAGE_2_HOST_BIT, VK_ACCESS_2_HOST_READ_BIT);
  pool.end(commands);
  return commands;
}

void Executable::record(Set& set) { set.slices = record_slices(commands_, set, false, {}); }

std::vector<VkCommandBuffer> Executable::record_slices(CommandPool& pool, Set& set, bool each_alone,
                                                       const Marker& mark) {
  std::vector<VkCommandBuffer> slices;
  for (size_t i = 0; i < plan_.steps.size(); ++i) {
    const Step& step = plan_.steps[i];
    const size_t parts = std::max<size_t>(1, step.parts.size());
    for (size_t part = 0; part < parts; ++part) {
      if (slices.size() == step.slice + part) {
        if (!slices.empty()) pool.end(slices.back());
        slices.push_back(pool.begin());
        // What came before on this queue, the other set's run, is done with the memory.
        if (slices.size() == 1) record_queue_barrier(device_, slices.back());
        if (mark) mark(slices.back(), {.step = i, .slice_begins = true});
      }
      const VkCommandBuffer commands = slices.back();
      if (part == 0 && (each_alone || step.barrier_before)) record_compute_barrier(device_, commands);
      device_.begin_label(commands, plan_.graph->nodes()[step.node].name);
      if (step.parts.empty()) {
        set.steps[i].record(device_, commands);
      } else {
        set.steps[i].record(device_, commands, step.parts[part]);
      }
      device_.end_label(commands);
      if (mark) mark(commands, {.step = i, .step_ends = part + 1 == parts});
    }
  }
  record_end(set, slices.back());
  pool.end(slices.back());
  return slices;
}

std::span<std::byte> Executable::input(size_t index, uint32_t set) {
  return sets_.at(set).inputs.at(index).host().mapped().first(
      plan_.graph->value(plan_.inputs.at(index)).bytes());
}

std::span<const std::byte> Executable::output(size_t index, uint32_t set) const {
  return sets_.at(set).outputs.at(index).host().mapped().first(
      plan_.graph->value(plan_.outputs.at(index)).bytes());
}

namespace {
size_t index_of(const Plan& plan, const std::vector<ValueId>& ids, std::string_view name, const char* what) {
  for (size_t i = 0; i < ids.size(); ++i) {
    if (plan.graph->value(ids[i]).name == name) return i;
  }
  throw Error(ErrorCode::usage, "this graph has no " + std::string(what) + " '" + std::string(name) + "'");
}
}  // namespace

size_t Executable::input_index(std::string_view name) const {
  return index_of(plan_, plan_.inputs, name, "input");
}
size_t Executable::output_index(std::string_view name) const {
  return index_of(plan_, plan_.outputs, name, "output");
}

// What comes before the slices of a run.
void Executable::begin(Set& set) {
  wait_until_done(set);  // its command buffers can't be pending twice
  set.download_due = false;
  for (const IoBuffer& io : set.inputs) io.host().flush();
  if (!set.upload) return;
  submit_copy(set, set.upload, {});
  set.behind_upload = set.copied;
}

void Executable::submit_slices(Set& set, std::span<const VkCommandBuffer> slices) {
  set.download_due = set.download != VK_NULL_HANDLE;
  // One submission a slice, each with its own signal, so that no driver merges them into a long one.
  for (const VkCommandBuffer commands : slices) {
    VkCommandBufferSubmitInfo command_info{VK_STRUCTURE_TYPE_COMMAND_BUFFER_SUBMIT_INFO};
    command_info.commandBuffer = commands;
    // Where the first slice has waited, what is behind it on the queue has, too.
    const uint64_t upload = std::exchange(set.behind_upload, 0);
    const VkSemaphoreSubmitInfo uploaded = copied_.wait_for(upload), signal = computed_.next_signal();
    VkSubmitInfo2 submit{VK_STRUCTURE_TYPE_SUBMIT_INFO_2};
    submit.waitSemaphoreInfoCount = upload != 0 ? 1 : 0;
    submit.pWaitSemaphoreInfos = &uploaded;
    submit.commandBufferInfoCount = 1;
    submit.pCommandBufferInfos = &command_info;
    submit.signalSemaphoreInfoCount = 1;
    submit.pSignalSemaphoreInfos = &signal;
    device_.submit({&submit, 1});
    set.computed = computed_.submitted();
  }
}

void Executable::submit_copy(Set& set, VkCommandBuffer copy, std::span<const VkSemaphoreSubmitInfo> behind) {
  VkCommandBufferSubmitInfo command_info{VK_STRUCTURE_TYPE_COMMAND_BUFFER_SUBMIT_INFO};
  command_info.commandBuffer = copy;
  const VkSemaphoreSubmitInfo signal = copied_.next_signal();
  VkSubmitInfo2 submit{VK_STRUCTURE_TYPE_SUBMIT_INFO_2};
  submit.waitSemaphoreInfoCount = to_u32(behind.size());
  submit.pWaitSemaphoreInfos = behind.data();
  submit.commandBufferInfoCount = 1;
  submit.pCommandBufferInfos = &command_info;
  submit.signalSemaphoreInfoCount = 1;
  submit.pSignalSemaphoreInfos = &signal;
  device_.submit_copies({&submit, 1});
  set.copied = copied_.submitted();
}

void Executable::submit_download(Set& set) {
  if (!std::exchange(set.download_due, false)) return;
  const VkSemaphoreSubmitInfo computed = computed_.wait_for(set.computed);
  submit_copy(set, set.download, {&computed, 1});
}

void Executable::wait_until_done(Set& set) {
  copied_.wait(set.copied);
  // Who saw the download's end has seen the end of what it waited for.
  if (set.download && !set.download_due) computed_.seen(set.computed);
  computed_.wait(set.computed);
}

void Executable::settle(Set& set) {
  submit_download(set);
  wait_until_done(set);
}

void Executable::submit(uint32_t set_index) {
  Set& set = sets_.at(set_index);
  begin(set);
  // The other set's download waits for its computation, and a queue for what it was given first. So it is
  // handed over only now that this upload is ahead of it, or when somebody waits for it.
  for (Set& other : sets_) {
    if (&other != &set) submit_download(other);
  }
  submit_slices(set, set.slices);
}

void Executable::wait(uint32_t set_index) {
  Set& set = sets_.at(set_index);
  settle(set);
  for (const IoBuffer& io : set.outputs) io.host().invalidate();
}

bool Executable::run_sliced(const GoOn& go_on, uint32_t set_index) {
  Set& set = sets_.at(set_index);
  begin(set);
  if (!run_slices(set, set.slices, go_on)) return false;
  wait(set_index);
  return true;
}

bool Executable::run_slices(Set& set, std::span<const VkCommandBuffer> slices, const GoOn& go_on) {
  const std::vector<double> seconds = seconds_of_slices(plan_);
  const double total = std::accumulate(seconds.begin(), seconds.end(), 0.0);
  double done = 0;
  for (uint32_t slice = 0; slice < slices.size(); ++slice) {
    if (slice > 0 && !go_on(total > 0 ? done / total : 0)) return false;
    submit_slices(set, {&slices[slice], 1});
    computed_.wait(set.computed);
    done += seconds[slice];
  }
  return true;
}

void Executable::fill_memory(uint32_t word) {
  for (Set& set : sets_) settle(set);
  run_once(device_, [&](VkCommandBuffer commands) {
    for (const auto& slab : slabs_) {
      device_.vk().vkCmdFillBuffer(commands, slab->handle(), 0, VK_WHOLE_SIZE, word);
    }
    for (const Set& set : sets_) {
      for (const IoBuffer& io : set.outputs) {
        device_.vk().vkCmdFillBuffer(commands, io.device->handle(), 0, VK_WHOLE_SIZE, word);
      }
    }
  });
}

std::vector<std::vector<std::byte>> Executable::read_memory() {
  for (Set& set : sets_) settle(set);
  std::vector<const Buffer*> buffers;
  for (const auto& slab : slabs_) buffers.push_back(slab.get());
  for (const IoBuffer& io : sets_.front().outputs) buffers.push_back(io.device.get());
  std::vector<std::vector<std::byte>> contents;
  for (const Buffer* buffer : buffers) {
    const Buffer readback(device_, BufferKind::readback, buffer->bytes(), "memory readback");
    run_once(device_, [&](VkCommandBuffer commands) {
      const VkBufferCopy region{0, 0, buffer->bytes()};
      device_.vk().vkCmdCopyBuffer(commands, buffer->handle(), readback.handle(), 1, &region);
    });
    readback.invalidate();
    const auto mapped = readback.mapped();
    contents.emplace_back(mapped.begin(), mapped.end());
  }
  return contents;
}

}  // namespace vitrine
