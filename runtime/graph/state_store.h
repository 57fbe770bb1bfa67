// What outlives the runs of an Executable: parameters while they are trained, an optimiser's moments. Named
// buffers, shared by all executables that have states in them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/vk/device.h"
#include "runtime/vk/memory.h"

namespace vitrine {

class StateStore {
 public:
  explicit StateStore(Device& device) : device_(device) {}

  // Makes a buffer of zeros. Throws where there is one of this name. Behind it shaders may read `tail` bytes:
  // the most that any plan with states in it reads (Plan::tail_bytes), which is known once all are made.
  void make(const std::string& name, uint64_t bytes, uint64_t tail = 0);
  // Throws an Error unless there is a buffer of this name, of at least so many bytes, behind which shaders
  // may read `tail` more.
  void require(std::string_view name, uint64_t bytes, uint64_t tail) const;
  const Buffer& find(std::string_view name) const;
  uint64_t bytes(std::string_view name) const;                   // as it was made
  std::span<const std::string> names() const { return names_; }  // in the order of making
  uint64_t total_bytes() const;

  // From and to the host, by copies on the device, behind all runs that were submitted before.
  void write(std::string_view name, uint64_t offset, std::span<const std::byte> bytes);
  void read(std::string_view name, uint64_t offset, std::span<std::byte> bytes) const;

 private:
  struct Entry {
    std::unique_ptr<Buffer> buffer;
    uint64_t bytes = 0, tail = 0;
  };
  const Entry& entry(std::string_view name) const;

  Device& device_;
  std::map<std::string, Entry, std::less<>> entries_;
  std::vector<std::string> names_;
};

}  // namespace vitrine
