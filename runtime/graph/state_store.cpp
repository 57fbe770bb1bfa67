#include "runtime/graph/state_store.h"

#include <volk.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/graph/bound_dispatch.h"
#include "runtime/util/error.h"

namespace vitrine {
namespace {

// Copies go through host memory of at most this size.
constexpr uint64_t piece_bytes = 16 << 20;

}  // namespace

void StateStore::make(const std::string& name, uint64_t bytes, uint64_t tail) {
  tail = round_up(tail, 4);
  Entry made{std::make_unique<Buffer>(device_, BufferKind::device, bytes + tail, name), bytes, tail};
  run_once(device_, [&](VkCommandBuffer commands) {
    device_.vk().vkCmdFillBuffer(commands, made.buffer->handle(), 0, VK_WHOLE_SIZE, 0);
  });
  if (!entries_.emplace(name, std::move(made)).second) {
    throw Error(ErrorCode::usage, "there is a buffer of states '" + name + "' already");
  }
  names_.push_back(name);
}

const StateStore::Entry& StateStore::entry(std::string_view name) const {
  const auto found = entries_.find(name);
  if (found == entries_.end()) {
    throw Error(ErrorCode::usage, "there is no buffer of states '" + std::string(name) + "'");
  }
  return found->second;
}

void StateStore::require(std::string_view name, uint64_t bytes, uint64_t tail) const {
  const Entry& found = entry(name);
  if (bytes > found.bytes || tail > found.tail) {
    throw Error(ErrorCode::usage, "the buffer of states '" + std::string(name) + "' has " +
                                      std::to_string(found.bytes) + " bytes and " +
                                      std::to_string(found.tail) + " behind it, " + std::to_string(bytes) +
                                      " and " + std::to_string(tail) + " are needed");
  }
}

const Buffer& StateStore::find(std::string_view name) const { return *entry(name).buffer; }
uint64_t StateStore::bytes(std::string_view name) const { return entry(name).bytes; }

uint64_t StateStore::total_bytes() const {
  uint64_t sum = 0;
  for (const auto& [name, entry] : entries_) sum += entry.buffer->bytes();
  return sum;
}

namespace {

void require_within(std::string_view name, uint64_t whole, uint64_t offset, uint64_t bytes) {
  if (offset <= whole && bytes <= whole - offset && offset % 4 == 0 && bytes % 4 == 0) return;
  throw Error(ErrorCode::usage, "bytes " + std::to_string(offset) + " to " + std::to_string(offset + bytes) +
                                    " of '" + std::string(name) + "' were asked for, it has " +
                                    std::to_string(whole));
}

}  // namespace

void StateStore::write(std::string_view name, uint64_t offset, std::span<const std::byte> bytes) {
  const Entry& to = entry(name);
  require_within(name, to.bytes, offset, bytes.size());
  if (bytes.empty()) return;
  const Buffer staging(device_, BufferKind::upload, std::min<uint64_t>(piece_bytes, bytes.size()),
                       "states upload");
  while (!bytes.empty()) {
    const auto piece = bytes.first(std::min<size_t>(bytes.size(), piece_bytes));
    std::memcpy(staging.mapped().data(), piece.data(), piece.size());
    staging.flush();
    run_once(device_, [&](VkCommandBuffer commands) {
      const VkBufferCopy region{0, offset, piece.size()};
      device_.vk().vkCmdCopyBuffer(commands, staging.handle(), to.buffer->handle(), 1, &region);
    });
    offset += piece.size();
    bytes = bytes.subspan(piece.size());
  }
}

void StateStore::read(std::string_view name, uint64_t offset, std::span<std::byte> bytes) const {
  const Entry& from = entry(name);
  require_within(name, from.bytes, offset, bytes.size());
  if (bytes.empty()) return;
  const Buffer staging(device_, BufferKind::readback, std::min<uint64_t>(piece_bytes, bytes.size()),
                       "states readback");
  while (!bytes.empty()) {
    const auto piece = bytes.first(std::min<size_t>(bytes.size(), piece_bytes));
    run_once(device_, [&](VkCommandBuffer commands) {
      const VkBufferCopy region{offset, 0, piece.size()};
      device_.vk().vkCmdCopyBuffer(commands, from.buffer->handle(), staging.handle(), 1, &region);
    });
    staging.invalidate();
    std::memcpy(piece.data(), staging.mapped().data(), piece.size());
    offset += piece.size();
    bytes = bytes.subspan(piece.size());
  }
}

}  // namespace vitrine
