// Constants on their way to the device, in batches: while the device copies, converts and packs one batch,
// the host fills the next.
#pragma once

#include <vulkan/vulkan_core.h>

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/graph/bound_dispatch.h"
#include "runtime/graph/constants.h"
#include "runtime/graph/pipeline_store.h"

namespace vitrine {

class ConstantUploader {
 public:
  explicit ConstantUploader(PipelineStore& pipelines);
  ~ConstantUploader();
  ConstantUploader(const ConstantUploader&) = delete;
  ConstantUploader& operator=(const ConstantUploader&) = delete;

  // Puts the parts one after the other into `target` as `dtype`, or, with `pack`, what that dispatch makes
  // of them. The parts' bytes and `pack` are no longer needed when it returns, `target` until finish().
  void add(const ConstantParts& parts, DType dtype, const Dispatch* pack, const BufferSlice& target);
  // Returns when everything is in its place.
  void finish();

 private:
  struct Batch {
    explicit Batch(Device& device) : commands(device) {}
    std::unique_ptr<Buffer> staging;  // what the host fills
    std::unique_ptr<Buffer> work;     // the same offsets on the device; none where shaders can read `staging`
    uint64_t used = 0;
    CommandPool commands;
    VkCommandBuffer recording = VK_NULL_HANDLE;
    VkFence fence = VK_NULL_HANDLE;
    bool submitted = false;
    std::vector<std::unique_ptr<DescriptorSets>> sets;
    std::vector<BoundDispatch> dispatches;
  };

  Batch& room_for(uint64_t bytes);
  void make_buffers(Batch& batch, uint64_t bytes);
  void submit(Batch& batch);
  void wait(Batch& batch);
  BufferSlice region(Batch& batch, uint64_t bytes) const;
  void copy(Batch& batch, const BufferSlice& from, const BufferSlice& to);
  void dispatch(Batch& batch, const Dispatch& dispatch, const BufferSlice& from, const BufferSlice& to);
  void barrier(Batch& batch);

  PipelineStore& pipelines_;
  Device& device_;
  uint64_t alignment_;
  std::array<std::unique_ptr<Batch>, 2> batches_;
  size_t current_ = 0;
};

}  // namespace vitrine
