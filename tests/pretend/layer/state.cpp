#include "tests/pretend/layer/state.h"

#include <cstdlib>
#include <shared_mutex>

namespace vitrine::pretend {
namespace {

// The loader's table for the object, and so its instance's or device's.
const void* key_of(const void* object) { return *static_cast<const void* const*>(object); }

template <typename State>
class Kept {
 public:
  State& find(const void* object) const {
    const std::shared_lock lock(mutex_);
    return *states_.at(key_of(object));
  }
  void keep(std::unique_ptr<State> state) {
    const void* key = key_of(state->handle);
    const std::unique_lock lock(mutex_);
    states_[key] = std::move(state);
  }
  std::unique_ptr<State> release(const void* object) {
    const std::unique_lock lock(mutex_);
    auto node = states_.extract(key_of(object));
    return std::move(node.mapped());
  }

 private:
  mutable std::shared_mutex mutex_;
  std::unordered_map<const void*, std::unique_ptr<State>> states_;
};

// Never destroyed: programs may end with devices alive.
Kept<Instance>& instances() {
  static auto* kept = new Kept<Instance>;
  return *kept;
}
Kept<Device>& devices() {
  static auto* kept = new Kept<Device>;
  return *kept;
}

}  // namespace

void FreedMemory::operator()(void* memory) const { std::free(memory); }

const Profile& PhysicalDevice::profile() const { return instance->profile; }

uint32_t PhysicalDevice::told_types(uint32_t real_bits, bool for_buffers) const {
  uint32_t told = 0;
  for (uint32_t i = 0; i < real_types.size(); ++i) {
    if (for_buffers && !profile().memory_types[i].for_buffers) continue;
    if ((real_bits >> real_types[i] & 1) != 0) told |= 1u << i;
  }
  return told;
}

std::optional<MemoryRange> Device::late_range(VkBuffer buffer, uint64_t offset, uint64_t bytes) const {
  const auto found = buffers.find(buffer);
  if (found == buffers.end() || !found->second.two_copies) return std::nullopt;
  const BufferRecord& record = found->second;
  const uint64_t begin = std::min(offset, record.bytes);
  const uint64_t end = begin + std::min(bytes, record.bytes - begin);
  return MemoryRange{record.memory, record.offset + begin, record.offset + end};
}

Instance& instance_of(const void* instance_or_physical_device) {
  return instances().find(instance_or_physical_device);
}
PhysicalDevice& physical_of(VkPhysicalDevice handle) { return instance_of(handle).of(handle); }
Device& device_of(const void* device_or_command_buffer) { return devices().find(device_or_command_buffer); }

void keep(std::unique_ptr<Instance> instance) { instances().keep(std::move(instance)); }
void keep(std::unique_ptr<Device> device) { devices().keep(std::move(device)); }
std::unique_ptr<Instance> release_instance(VkInstance instance) { return instances().release(instance); }
std::unique_ptr<Device> release_device(VkDevice device) { return devices().release(device); }

}  // namespace vitrine::pretend
