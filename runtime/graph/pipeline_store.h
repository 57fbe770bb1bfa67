// The pipelines of one device, each made once: two dispatches with the same shader, constants and
// subgroup size share one.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "runtime/graph/go_on.h"
#include "runtime/graph/op.h"
#include "runtime/vk/device.h"
#include "runtime/vk/pipeline.h"
#include "runtime/vk/pipeline_cache.h"

namespace vitrine {

class PipelineStore {
 public:
  // `capture_statistics`: keep what the driver's compiler says of each pipeline.
  explicit PipelineStore(Device& device, bool capture_statistics = false);
  ~PipelineStore();

  Device& device() { return device_; }
  // The pipelines of these dispatches, in order. Missing ones are compiled on several threads, each of which
  // asks `go_on` before it begins one; after a "no" Interrupted is thrown, and those that are made stay. Any
  // thread may call.
  std::vector<std::shared_ptr<const Pipeline>> get(std::span<const Dispatch* const> dispatches,
                                                   const GoOn& go_on = {});

 private:
  // The whole content is the key: no hash stands in for it.
  struct Key {
    const ShaderVariant* shader;
    std::vector<uint32_t> constants;
    uint32_t subgroup_size;
    auto operator<=>(const Key&) const = default;
  };

  Device& device_;
  bool capture_statistics_;
  std::mutex lock_;  // of what follows
  PipelineCache cache_;
  std::map<Key, std::shared_ptr<const Pipeline>> pipelines_;
};

}  // namespace vitrine
