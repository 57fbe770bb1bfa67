#include "runtime/vk/capabilities.h"

#include <algorithm>
#include <utility>

namespace vitrine {

std::string_view name_of(DeviceType type) {
  switch (type) {
    case DeviceType::other:
      return "other";
    case DeviceType::integrated:
      return "integrated";
    case DeviceType::discrete:
      return "discrete";
    case DeviceType::virtual_gpu:
      return "virtual";
    case DeviceType::cpu:
      return "cpu";
  }
  return "?";
}

std::string_view name_of(MatrixSums sums) {
  switch (sums) {
    case MatrixSums::unknown:
      return "unknown";
    case MatrixSums::operands:
      return "operands";
    case MatrixSums::alternate:
      return "alternate";
    case MatrixSums::transposed:
      return "transposed";
  }
  return "?";
}

std::string to_string(Need needs) {
  static constexpr std::pair<Need, std::string_view> names[] = {
      {Need::storage16, "storage16"},
      {Need::fp16, "fp16"},
      {Need::int8, "int8"},
      {Need::int64, "int64"},
      {Need::addresses, "addresses"},
      {Need::coopmat, "coopmat"},
      {Need::coopmat2, "coopmat2"},
      {Need::subgroup_control, "subgroup_control"},
      {Need::subgroup_arithmetic, "subgroup_arithmetic"},
      {Need::coopmat2_elements, "coopmat2_elements"},
      {Need::coopmat2_reductions, "coopmat2_reductions"},
      {Need::coopmat2_conversions, "coopmat2_conversions"},
      {Need::coopmat2_tensors, "coopmat2_tensors"},
      {Need::coopmat2_workgroups, "coopmat2_workgroups"}};
  std::string text;
  for (const auto& [need, name] : names) {
    if (!contains(needs, need)) continue;
    if (!text.empty()) text += ", ";
    text += name;
  }
  return text.empty() ? "none" : text;
}

namespace {

// Whether the host sees the memory that holds whole models as such a type. A small window into a discrete
// card's memory (256 MiB without resizable BAR) doesn't count: only the device's largest local heap does.
bool host_sees_local_memory(const Capabilities& device, bool MemoryType::*as) {
  uint64_t largest = 0;
  for (const MemoryHeap& heap : device.heaps) {
    if (heap.device_local) largest = std::max(largest, heap.bytes);
  }
  return std::ranges::any_of(device.memory_types, [&](const MemoryType& memory) {
    return memory.device_local && memory.host_visible && memory.*as && memory.heap < device.heaps.size() &&
           device.heaps[memory.heap].device_local && device.heaps[memory.heap].bytes == largest;
  });
}

}  // namespace

bool Capabilities::unified_memory() const {
  return host_sees_local_memory(*this, &MemoryType::host_coherent);
}

bool Capabilities::unified_cached_memory() const {
  return host_sees_local_memory(*this, &MemoryType::host_cached);
}

std::optional<CooperativeShape> Capabilities::coopmat(std::string_view a, std::string_view b,
                                                      std::string_view c) const {
  const auto found = std::ranges::find_if(cooperative_shapes, [&](const CooperativeShape& shape) {
    return shape.a == a && shape.b == b && shape.c == c && shape.result == c;
  });
  if (found == cooperative_shapes.end()) return std::nullopt;
  return *found;
}

}  // namespace vitrine
