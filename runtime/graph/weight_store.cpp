#include "runtime/graph/weight_store.h"

#include <volk.h>

#include <algorithm>
#include <cstring>

#include "runtime/ops/convert.h"
#include "runtime/util/error.h"

namespace vitrine {
namespace {

constexpr uint64_t staging_bytes = 32ull << 20;
constexpr uint64_t slab_limit = 256ull << 20;

}  // namespace

WeightStore::WeightStore(PipelineStore& pipelines, ConstantSource& source)
    : pipelines_(pipelines), source_(source) {}

WeightStore::~WeightStore() = default;

WeightStore::Key WeightStore::key_of(const Graph& graph, const PlannedConstant& constant) {
  const Value& value = graph.value(constant.value);
  return {value.name, value.dtype, constant.layout};
}

void WeightStore::load(const Plan& plan) {
  // Room first: all that is missing goes into as few buffers as the limit of a buffer allows.
  struct Missing {
    const PlannedConstant* constant;
    size_t slab;
    uint64_t offset;
  };
  std::vector<Missing> missing;
  const Capabilities& device = pipelines_.device().capabilities();
  const uint64_t alignment = std::max<uint64_t>(device.storage_alignment, 256);
  const uint64_t limit = std::min({slab_limit, device.max_allocation, device.max_buffer_bytes});
  std::vector<uint64_t> sizes;
  for (const PlannedConstant& constant : plan.constants) {
    if (loaded_.contains(key_of(*plan.graph, constant))) continue;
    const uint64_t bytes = round_up(constant.bytes, alignment);
    if (sizes.empty() || sizes.back() + bytes > limit) sizes.push_back(0);
    missing.push_back({&constant, slabs_.size() + sizes.size() - 1, sizes.back()});
    sizes.back() += bytes;
  }
  for (const uint64_t bytes : sizes) {
    slabs_.push_back(std::make_unique<Buffer>(pipelines_.device(), BufferKind::device,
                                              bytes + plan.tail_bytes, "constants"));
  }
  for (const Missing& one : missing) {
    const BufferSlice target{slabs_[one.slab].get(), one.offset, one.constant->bytes};
    load_one(plan.graph->value(one.constant->value), *one.constant, target);
    loaded_.emplace(key_of(*plan.graph, *one.constant), target);
  }
  release_temporaries();
}

void WeightStore::load_one(const Value& value, const PlannedConstant& constant, const BufferSlice& target) {
  const ConstantParts parts = source_.find(value.name, value.shape, value.dtype);
  uint64_t elements = 0;
  for (const ConstantPart& part : parts) elements += part.bytes.size() / size_of(part.dtype);
  if (elements != value.shape.elements()) {
    throw Error(ErrorCode::bad_file, "the tensor '" + value.name + "' holds " + std::to_string(elements) +
                                         " values, expected " + std::to_string(value.shape.elements()) +
                                         " for " + value.shape.to_string());
  }

  BufferSlice plain = target;
  if (constant.pack)
    plain = {&temporary(converted_, value.bytes(), "constant to be packed"), 0, value.bytes()};
  uint64_t offset = 0;
  for (const ConstantPart& part : parts) {
    const uint64_t count = part.bytes.size() / size_of(part.dtype);
    const BufferSlice place{plain.buffer, plain.offset + offset, count * size_of(value.dtype)};
    if (part.dtype == value.dtype) {
      upload(part, place);
    } else {
      // A part may begin where no descriptor can (its offset is not aligned): convert at the start of a
      // buffer of its own, then copy.
      const uint64_t padded = round_up(part.bytes.size(), 4), half = round_up(padded, 256);
      Buffer& raw = temporary(raw_, half + round_up(place.bytes, 4), "constant as stored");
      upload(part, {&raw, 0, part.bytes.size()});
      const Lowered lowered =
          lower_conversion(part.dtype, value.dtype, count, pipelines_.device().capabilities());
      const BufferSlice converted{&raw, half, place.bytes};
      for (const Dispatch& step : lowered.dispatches) dispatch(step, {&raw, 0, part.bytes.size()}, converted);
      run_once(pipelines_.device(), [&](VkCommandBuffer commands) {
        const VkBufferCopy region{converted.offset, place.offset, place.bytes};
        pipelines_.device().vk().vkCmdCopyBuffer(commands, raw.handle(), place.buffer->handle(), 1, &region);
      });
    }
    offset += place.bytes;
  }
  if (constant.pack) dispatch(*constant.pack, plain, target);
}

void WeightStore::upload(const ConstantPart& part, const BufferSlice& target) {
  Device& device = pipelines_.device();
  if (!staging_) {
    staging_ = std::make_unique<Buffer>(device, BufferKind::upload, staging_bytes, "constant staging");
  }
  for (uint64_t done = 0; done < part.bytes.size(); done += staging_bytes) {
    const uint64_t piece = std::min<uint64_t>(staging_bytes, part.bytes.size() - done);
    std::memcpy(staging_->mapped().data(), part.bytes.data() + done, piece);
    staging_->flush();
    run_once(device, [&](VkCommandBuffer commands) {
      const VkBufferCopy region{0, target.offset + done, piece};
      device.vk().vkCmdCopyBuffer(commands, staging_->handle(), target.buffer->handle(), 1, &region);
    });
  }
}

void WeightStore::dispatch(const Dispatch& dispatch, const BufferSlice& source, const BufferSlice& target) {
  Device& device = pipelines_.device();
  std::vector<BufferSlice> slices;
  for (const Operand& operand : dispatch.operands) {
    const bool is_target = operand.kind == Operand::Kind::packed || operand.kind == Operand::Kind::output;
    slices.push_back(is_target ? target : source);
  }
  const Dispatch* const one = &dispatch;
  DescriptorSets sets(device, {&one, 1}, 1);
  const BoundDispatch bound(dispatch, pipelines_.get({&one, 1}).front(), sets, slices);
  run_once(device, [&](VkCommandBuffer commands) { bound.record(device, commands); });
}

Buffer& WeightStore::temporary(std::unique_ptr<Buffer>& held, uint64_t bytes, const char* name) {
  if (!held || held->bytes() < bytes) {
    held.reset();
    held = std::make_unique<Buffer>(pipelines_.device(), BufferKind::device, bytes, name);
  }
  return *held;
}

void WeightStore::release_temporaries() {
  staging_.reset();
  raw_.reset();
  converted_.reset();
}

BufferSlice WeightStore::find(const Graph& graph, const PlannedConstant& constant) const {
  const auto at = loaded_.find(key_of(graph, constant));
  if (at == loaded_.end()) {
    throw Error(ErrorCode::failed,
                "the constant '" + graph.value(constant.value).name + "' was never loaded");
  }
  return at->second;
}

uint64_t WeightStore::bytes() const {
  uint64_t sum = 0;
  for (const auto& slab : slabs_) sum += slab->bytes();
  return sum;
}

}  // namespace vitrine
