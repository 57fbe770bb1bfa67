#include "runtime/graph/constant_uploader.h"

#include <volk.h>

#include <algorithm>
#include <cstring>

#include "runtime/graph/conversion.h"
#include "runtime/util/half.h"
#include "runtime/vk/result.h"

namespace vitrine {
namespace {

constexpr uint64_t batch_bytes = 32ull << 20;

// What a shader would make of it, bit for bit. The tensors of a file begin at any byte.
void widen(std::span<const std::byte> from, DType dtype, std::span<std::byte> to) {
  for (size_t i = 0; i < from.size() / sizeof(uint16_t); ++i) {
    uint16_t bits = 0;
    std::memcpy(&bits, from.data() + i * sizeof bits, sizeof bits);
    const float value = dtype == DType::f16 ? f16_to_f32(bits) : bf16_to_f32(bits);
    std::memcpy(to.data() + i * sizeof value, &value, sizeof value);
  }
}

}  // namespace

ConstantUploader::ConstantUploader(PipelineStore& pipelines)
    : pipelines_(pipelines),
      device_(pipelines.device()),
      alignment_(std::max<uint64_t>(device_.capabilities().storage_alignment, 256)) {
  for (auto& batch : batches_) {
    batch = std::make_unique<Batch>(device_);
    const VkFenceCreateInfo info{VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
    check(device_.vk().vkCreateFence(device_.handle(), &info, nullptr, &batch->fence), "vkCreateFence");
  }
}

ConstantUploader::~ConstantUploader() {
  // After a failure, batches may still be on their way. A lost device answers at once.
  for (const auto& batch : batches_) {
    if (!batch) continue;
    if (batch->submitted) {
      device_.vk().vkWaitForFences(device_.handle(), 1, &batch->fence, VK_TRUE, UINT64_MAX);
    }
    device_.vk().vkDestroyFence(device_.handle(), batch->fence, nullptr);
  }
}

void ConstantUploader::add(const ConstantParts& parts, DType dtype, const Dispatch* pack,
                           const BufferSlice& target) {
  const bool stores_16_bits = device_.capabilities().supports(Need::storage16);
  // What is staged of a part: itself, or what the host makes of it where the device can't.
  const auto staged_as = [&](const ConstantPart& part) {
    const bool is_16_bits = part.dtype == DType::f16 || part.dtype == DType::bf16;
    return is_16_bits && dtype == DType::f32 && !stores_16_bits ? dtype : part.dtype;
  };
  // What the parts hold as they are staged, as `dtype` where that can't be written to its place at once,
  // and put together where they are packed.
  uint64_t room = 0, plain_bytes = 0;
  for (const ConstantPart& part : parts) {
    const uint64_t count = part.bytes.size() / size_of(part.dtype), bytes = count * size_of(dtype);
    room += round_up(count * size_of(staged_as(part)), alignment_);
    if (staged_as(part) != dtype) room += round_up(bytes, alignment_);
    plain_bytes += bytes;
  }
  const bool gathered = pack != nullptr && (parts.size() > 1 || staged_as(parts.front()) != dtype);
  if (gathered) room += round_up(plain_bytes, alignment_);
  Batch& batch = room_for(room);

  BufferSlice plain = gathered ? region(batch, plain_bytes) : target;
  uint64_t offset = 0;
  for (const ConstantPart& part : parts) {
    const uint64_t count = part.bytes.size() / size_of(part.dtype);
    const DType staged_dtype = staged_as(part);
    const BufferSlice place{plain.buffer, plain.offset + offset, count * size_of(dtype)};
    const BufferSlice raw = region(batch, count * size_of(staged_dtype));
    const auto staging = batch.staging->mapped().subspan(raw.offset, raw.bytes);
    if (staged_dtype == part.dtype) {
      std::memcpy(staging.data(), part.bytes.data(), part.bytes.size());
    } else {
      widen(part.bytes, part.dtype, staging);
    }
    const BufferSlice staged{batch.staging.get(), raw.offset, raw.bytes};
    if (staged_dtype == dtype && (pack == nullptr || gathered)) {
      copy(batch, staged, place);
    } else {
      if (batch.work) copy(batch, staged, raw);
      barrier(batch);
    }
    if (staged_dtype != dtype) {
      // No descriptor can begin at any offset: where the place is not aligned, convert elsewhere and copy.
      const bool aligned = place.offset % alignment_ == 0;
      const BufferSlice converted = aligned ? place : region(batch, place.bytes);
      // In pieces that can be bound, of which each begins where a descriptor may.
      const uint64_t largest = std::max(size_of(staged_dtype), size_of(dtype));
      const uint64_t most = device_.capabilities().max_storage_range / largest / alignment_ * alignment_;
      for (uint64_t first = 0; first < count; first += most) {
        const uint64_t piece = std::min(most, count - first);
        const auto of_piece = [&](const BufferSlice& all, DType type) {
          return BufferSlice{all.buffer, all.offset + first * size_of(type), piece * size_of(type)};
        };
        const Lowered lowered = lower_conversion(staged_dtype, dtype, piece, device_.capabilities());
        for (const Dispatch& step : lowered.dispatches)
          dispatch(batch, step, of_piece(raw, staged_dtype), of_piece(converted, dtype));
      }
      if (!aligned) {
        barrier(batch);
        copy(batch, converted, place);
      }
    } else if (pack != nullptr && !gathered) {
      plain = raw;
    }
    offset += place.bytes;
  }
  if (pack != nullptr) {
    if (gathered) barrier(batch);
    dispatch(batch, *pack, plain, target);
  }
}

void ConstantUploader::finish() {
  submit(*batches_[current_]);
  for (const auto& batch : batches_) wait(*batch);
}

// The batch that is being filled, if it has room; else the other one, once it is free.
ConstantUploader::Batch& ConstantUploader::room_for(uint64_t bytes) {
  Batch* batch = batches_[current_].get();
  if (batch->recording && batch->used + bytes > batch->staging->bytes()) {
    submit(*batch);
    current_ = 1 - current_;
    batch = batches_[current_].get();
  }
  if (!batch->recording) {
    wait(*batch);
    if (!batch->staging || batch->staging->bytes() < bytes) make_buffers(*batch, bytes);
    batch->recording = batch->commands.begin(VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT);
  }
  return *batch;
}

void ConstantUploader::make_buffers(Batch& batch, uint64_t bytes) {
  const bool unified = device_.capabilities().unified_memory();
  bytes = std::max(bytes, batch_bytes);
  batch.staging.reset();
  batch.work.reset();
  batch.staging = std::make_unique<Buffer>(device_, unified ? BufferKind::direct : BufferKind::upload, bytes,
                                           "constants as stored");
  if (!unified)
    batch.work = std::make_unique<Buffer>(device_, BufferKind::device, bytes, "constants to be packed");
}

void ConstantUploader::submit(Batch& batch) {
  if (!batch.recording) return;
  batch.staging->flush();
  batch.commands.end(batch.recording);
  VkCommandBufferSubmitInfo commands{VK_STRUCTURE_TYPE_COMMAND_BUFFER_SUBMIT_INFO};
  commands.commandBuffer = batch.recording;
  VkSubmitInfo2 info{VK_STRUCTURE_TYPE_SUBMIT_INFO_2};
  info.commandBufferInfoCount = 1;
  info.pCommandBufferInfos = &commands;
  device_.submit({&info, 1}, batch.fence);
  batch.recording = VK_NULL_HANDLE;
  batch.submitted = true;
}

void ConstantUploader::wait(Batch& batch) {
  if (!batch.submitted) return;
  check(device_.vk().vkWaitForFences(device_.handle(), 1, &batch.fence, VK_TRUE, UINT64_MAX),
        "vkWaitForFences");
  check(device_.vk().vkResetFences(device_.handle(), 1, &batch.fence), "vkResetFences");
  batch.submitted = false;
  batch.used = 0;
  batch.dispatches.clear();
  batch.sets.clear();
  batch.commands.reset();
}

// The next `bytes` of the batch, as shaders see them.
BufferSlice ConstantUploader::region(Batch& batch, uint64_t bytes) const {
  const BufferSlice slice{batch.work ? batch.work.get() : batch.staging.get(), batch.used, bytes};
  batch.used += round_up(bytes, alignment_);
  return slice;
}

void ConstantUploader::copy(Batch& batch, const BufferSlice& from, const BufferSlice& to) {
  const VkBufferCopy copied{from.offset, to.offset, to.bytes};
  device_.vk().vkCmdCopyBuffer(batch.recording, from.buffer->handle(), to.buffer->handle(), 1, &copied);
}

void ConstantUploader::dispatch(Batch& batch, const Dispatch& dispatch, const BufferSlice& from,
                                const BufferSlice& to) {
  std::vector<BufferSlice> slices;
  for (const Operand& operand : dispatch.operands) {
    const bool written = operand.kind == Operand::Kind::packed || operand.kind == Operand::Kind::output;
    slices.push_back(written ? to : from);
  }
  const Dispatch* const one = &dispatch;
  batch.sets.push_back(std::make_unique<DescriptorSets>(device_, std::span(&one, 1), 1));
  batch.dispatches.emplace_back(dispatch, pipelines_.get({&one, 1}).front(), *batch.sets.back(), slices);
  batch.dispatches.back().record(device_, batch.recording);
}

// What was copied or written is seen by the copies and dispatches that follow.
void ConstantUploader::barrier(Batch& batch) { record_queue_barrier(device_, batch.recording); }

}  // namespace vitrine
