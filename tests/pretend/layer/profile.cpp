#include "tests/pretend/layer/profile.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "runtime/util/error.h"
#include "runtime/util/json.h"
#include "tests/pretend/layer/features.h"
#include "tests/pretend/layer/limits.h"

namespace vitrine::pretend {
namespace {

using Json = nlohmann::json;

template <typename Value>
using Words = std::span<const std::pair<std::string_view, Value>>;

constexpr std::pair<std::string_view, VkPhysicalDeviceType> device_types[] = {
    {"discrete", VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU},
    {"integrated", VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU},
    {"virtual", VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU},
    {"cpu", VK_PHYSICAL_DEVICE_TYPE_CPU},
    {"other", VK_PHYSICAL_DEVICE_TYPE_OTHER}};
constexpr std::pair<std::string_view, VkMemoryPropertyFlagBits> memory_words[] = {
    {"device_local", VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT},
    {"host_visible", VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT},
    {"host_coherent", VK_MEMORY_PROPERTY_HOST_COHERENT_BIT},
    {"host_cached", VK_MEMORY_PROPERTY_HOST_CACHED_BIT},
    {"lazily_allocated", VK_MEMORY_PROPERTY_LAZILY_ALLOCATED_BIT}};
constexpr std::pair<std::string_view, VkQueueFlagBits> queue_words[] = {{"graphics", VK_QUEUE_GRAPHICS_BIT},
                                                                        {"compute", VK_QUEUE_COMPUTE_BIT},
                                                                        {"transfer", VK_QUEUE_TRANSFER_BIT}};

// One object of the file. Every key has to be asked for: what nobody reads is a spelling mistake.
class Object {
 public:
  Object(const Json& json, std::string where) : json_(json), where_(std::move(where)) {
    if (!json.is_object()) fail("is no object");
  }

  const Json* find(const std::string& key) {
    asked_.push_back(key);
    const auto found = json_.find(key);
    return found == json_.end() ? nullptr : &*found;
  }
  const Json& get(const std::string& key) {
    const Json* found = find(key);
    if (!found) fail("lacks '" + key + "'");
    return *found;
  }
  uint64_t number(const std::string& key) { return as_number(get(key), key); }
  uint64_t number(const std::string& key, uint64_t otherwise) {
    const Json* found = find(key);
    return found ? as_number(*found, key) : otherwise;
  }
  bool truth(const std::string& key, bool otherwise) {
    const Json* found = find(key);
    if (!found) return otherwise;
    if (!found->is_boolean()) fail("'" + key + "' is neither true nor false");
    return found->get<bool>();
  }
  std::string text(const std::string& key) { return as_text(get(key), key); }
  std::vector<std::string> texts(const std::string& key) {
    std::vector<std::string> all;
    for (const Json& one : items(key)) all.push_back(as_text(one, key));
    return all;
  }
  template <typename Value, size_t count>
  Value word(const std::string& key, const std::pair<std::string_view, Value> (&words)[count]) {
    return value_of(text(key), key, Words<Value>(words));
  }
  template <typename Value, size_t count>
  uint32_t flags(const std::string& key, const std::pair<std::string_view, Value> (&words)[count]) {
    uint32_t all = 0;
    for (const std::string& one : texts(key)) {
      all |= static_cast<uint32_t>(value_of(one, key, Words<Value>(words)));
    }
    return all;
  }
  const Json& items(const std::string& key) {
    const Json& list = get(key);
    if (!list.is_array()) fail("'" + key + "' is no list");
    return list;
  }
  std::vector<Object> objects(const std::string& key) {
    std::vector<Object> all;
    for (const Json& one : items(key))
      all.emplace_back(one, where_ + ", " + key + "[" + std::to_string(all.size()) + "]");
    return all;
  }
  std::vector<std::string> keys() const {
    std::vector<std::string> all;
    for (const auto& [key, value] : json_.items()) all.push_back(key);
    return all;
  }

  void require_all_asked() const {
    for (const std::string& key : keys()) {
      if (std::ranges::find(asked_, key) == asked_.end()) fail("has '" + key + "', which nothing goes by");
    }
  }
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(ErrorCode::bad_file, where_ + " " + what);
  }
  uint64_t as_number(const Json& value, const std::string& key) const {
    if (!value.is_number_unsigned()) fail("'" + key + "' is no whole number");
    return value.get<uint64_t>();
  }

 private:
  std::string as_text(const Json& value, const std::string& key) const {
    if (!value.is_string()) fail("'" + key + "' is no text");
    return value.get<std::string>();
  }
  template <typename Value>
  Value value_of(const std::string& name, const std::string& key, Words<Value> words) const {
    for (const auto& [word, value] : words) {
      if (word == name) return value;
    }
    fail("'" + key + "' is '" + name + "', which is no word for it");
  }

  const Json& json_;
  std::string where_;
  std::vector<std::string> asked_;
};

constexpr uint64_t mib = uint64_t{1} << 20;

std::vector<Heap> read_heaps(Object& file) {
  std::vector<Heap> heaps;
  for (Object& one : file.objects("heaps")) {
    const uint64_t bytes = one.number("MiB") * mib;
    heaps.push_back({bytes, one.number("budget_MiB", bytes / mib) * mib, one.truth("device_local", false)});
    if (bytes == 0 || heaps.back().budget > bytes) one.fail("has no memory, or a budget beyond it");
    one.require_all_asked();
  }
  if (heaps.empty() || heaps.size() > VK_MAX_MEMORY_HEAPS) file.fail("has no heap, or too many");
  return heaps;
}

std::vector<MemoryType> read_memory_types(Object& file, size_t heaps) {
  std::vector<MemoryType> types;
  for (Object& one : file.objects("memory_types")) {
    const uint64_t heap = one.number("heap");
    if (heap >= heaps) one.fail("is of a heap that there isn't");
    types.push_back(
        {static_cast<uint32_t>(heap), one.flags("is", memory_words), one.truth("for_buffers", true)});
    one.require_all_asked();
  }
  // Vulkan promises these two of every device.
  const auto some = [&](VkMemoryPropertyFlags flags) {
    return std::ranges::any_of(types, [&](const MemoryType& type) { return (type.flags & flags) == flags; });
  };
  if (!some(VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT) ||
      !some(VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT)) {
    file.fail("has no memory type that is device_local, or none that is host_visible and host_coherent");
  }
  if (types.size() > VK_MAX_MEMORY_TYPES) file.fail("has too many memory types");
  return types;
}

std::vector<QueueFamily> read_families(Object& file) {
  std::vector<QueueFamily> families;
  for (Object& one : file.objects("queue_families")) {
    families.push_back({one.flags("can", queue_words), static_cast<uint32_t>(one.number("queues", 1)),
                        static_cast<uint32_t>(one.number("timestamp_bits"))});
    one.require_all_asked();
  }
  if (families.empty()) file.fail("has no queue family");
  return families;
}

std::vector<Limit> read_limits(Object& file) {
  std::vector<Limit> limits;
  const Json* found = file.find("limits");
  if (!found) return limits;
  Object object(*found, "limits");
  for (const std::string& name : object.keys()) {
    if (!is_limit(name)) file.fail("has the limit '" + name + "', which isn't known");
    Limit limit{name, {}};
    const Json& value = object.get(name);
    if (value.is_array()) {
      if (value.size() != 3) file.fail("has the limit '" + name + "' with other than three numbers");
      for (size_t i = 0; i < 3; ++i) limit.values[i] = object.as_number(value[i], name);
    } else {
      limit.values.fill(object.as_number(value, name));
    }
    limits.push_back(limit);
  }
  return limits;
}

}  // namespace

uint64_t fingerprint_of(std::string_view bytes, uint64_t begin) {
  uint64_t hash = begin;
  for (const char byte : bytes) hash = (hash ^ static_cast<uint8_t>(byte)) * 0x100000001b3u;
  return hash;
}

Profile read_profile(const std::filesystem::path& path) {
  const Json json = read_json(path);
  Object file(json, path.string());
  Profile profile;
  file.find("about");  // for who reads it
  if (const Json* found = file.find("identity")) {
    Object identity(*found, path.string() + ", identity");
    profile.identity = {identity.text("name"), identity.word("type", device_types),
                        static_cast<uint32_t>(identity.number("vendor_id")),
                        static_cast<uint32_t>(identity.number("device_id"))};
    if (profile.identity->name.size() >= VK_MAX_PHYSICAL_DEVICE_NAME_SIZE)
      identity.fail("has too long a name");
    identity.require_all_asked();
  }
  profile.limits = read_limits(file);
  if (file.find("hidden")) profile.hidden = file.texts("hidden");
  for (const std::string& name : profile.hidden) {
    if (!can_be_hidden(name)) file.fail("hides '" + name + "', which isn't known");
  }
  profile.heaps = read_heaps(file);
  profile.memory_types = read_memory_types(file, profile.heaps.size());
  profile.queue_families = read_families(file);
  file.require_all_asked();
  profile.fingerprint = fingerprint_of(json.dump());
  return profile;
}

}  // namespace vitrine::pretend
