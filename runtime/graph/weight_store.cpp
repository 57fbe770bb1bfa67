#include "runtime/graph/weight_store.h"

#include <algorithm>
#include <iterator>
#include <numeric>

#include "runtime/graph/constant_uploader.h"
#include "runtime/util/error.h"

namespace vitrine {
namespace {

constexpr uint64_t slab_limit = 256ull << 20;

bool may_be_read_behind(const BufferSlice& slice, uint64_t bytes) {
  return slice.buffer->bytes() - slice.offset - slice.bytes >= bytes;
}

}  // namespace

WeightStore::WeightStore(PipelineStore& pipelines, ConstantSource& source)
    : pipelines_(pipelines), source_(source) {}

WeightStore::~WeightStore() = default;

WeightStore::Key WeightStore::key_of(const Graph& graph, const PlannedConstant& constant) {
  const Value& value = graph.value(constant.value);
  return {value.name, value.dtype, constant.layout};
}

bool WeightStore::has(const Plan& plan, const PlannedConstant& constant) const {
  const auto loaded = loaded_.find(key_of(*plan.graph, constant));
  return loaded != loaded_.end() && may_be_read_behind(loaded->second, plan.tail_bytes);
}

uint64_t WeightStore::missing_bytes(const Plan& plan) const {
  uint64_t sum = 0;
  for (const PlannedConstant& constant : plan.constants) sum += has(plan, constant) ? 0 : constant.bytes;
  return sum;
}

void WeightStore::load(const Plan& plan, const GoOn& go_on) {
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
    if (has(plan, constant)) continue;
    const uint64_t bytes = round_up(constant.bytes, alignment);
    if (sizes.empty() || sizes.back() + bytes > limit) sizes.push_back(0);
    missing.push_back({&constant, sizes.size() - 1, sizes.back()});
    sizes.back() += bytes;
  }
  if (missing.empty()) return;
  std::vector<std::unique_ptr<Buffer>> slabs;
  for (const uint64_t bytes : sizes) {
    slabs.push_back(std::make_unique<Buffer>(pipelines_.device(), BufferKind::device, bytes + plan.tail_bytes,
                                             "constants"));
  }
  ConstantUploader uploader(pipelines_);
  std::map<Key, BufferSlice> arriving;
  const uint64_t total = std::reduce(sizes.begin(), sizes.end());
  uint64_t done = 0;
  for (const Missing& one : missing) {
    if (go_on && !go_on(static_cast<double>(done) / static_cast<double>(total))) throw Interrupted();
    done += one.constant->bytes;
    const Value& value = plan.graph->value(one.constant->value);
    const BufferSlice target{slabs[one.slab].get(), one.offset, one.constant->bytes};
    uploader.add(parts_of(value), value.dtype, one.constant->pack ? &*one.constant->pack : nullptr, target);
    arriving.emplace(key_of(*plan.graph, *one.constant), target);
  }
  uploader.finish();
  for (const auto& [key, slice] : arriving) loaded_.insert_or_assign(key, slice);
  std::ranges::move(slabs, std::back_inserter(slabs_));
}

ConstantParts WeightStore::parts_of(const Value& value) {
  ConstantParts parts = source_.find(value.name, value.shape, value.dtype);
  uint64_t elements = 0;
  for (const ConstantPart& part : parts) elements += part.bytes.size() / size_of(part.dtype);
  if (elements != value.shape.elements()) {
    throw Error(ErrorCode::bad_file, "the tensor '" + value.name + "' holds " + std::to_string(elements) +
                                         " values, expected " + std::to_string(value.shape.elements()) +
                                         " for " + value.shape.to_string());
  }
  return parts;
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
