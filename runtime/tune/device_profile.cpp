#include "runtime/tune/device_profile.h"

#include <vulkan/vulkan_core.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <concepts>
#include <cstdio>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "runtime/util/error.h"
#include "runtime/util/json.h"
#include "runtime/util/text.h"
#include "runtime/vk/device_facts.h"

namespace vitrine {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* format_name = "vitrine device profile";
constexpr int format_version = 1;

// Every member by its name, for Writer and Reader alike: `must` has to be in a file, `may` can be left out.
void visit(auto& fields, auto& matrix) requires requires { matrix.result; }
{
  fields.must("m", matrix.m);
  fields.must("n", matrix.n);
  fields.must("k", matrix.k);
  fields.must("a", matrix.a);
  fields.must("b", matrix.b);
  fields.must("c", matrix.c);
  fields.must("result", matrix.result);
  if constexpr (requires { matrix.workgroup; }) fields.must("workgroup", matrix.workgroup);
}

void visit(auto& fields, auto& heap) requires requires { heap.bytes; }
{
  fields.must("bytes", heap.bytes);
  fields.may("device_local", heap.device_local);
}

void visit(auto& fields, auto& type) requires requires { type.host_visible; }
{
  fields.must("heap", type.heap);
  fields.may("device_local", type.device_local);
  fields.may("host_visible", type.host_visible);
  fields.may("host_coherent", type.host_coherent);
  fields.may("host_cached", type.host_cached);
}

void visit(auto& fields, auto& rates) requires requires { rates.clock_ghz; }
{
  fields.may("clock_ghz", rates.clock_ghz);
  fields.may("memory_gb_per_second", rates.memory_gb_per_second);
  fields.may("cache_mib", rates.cache_mib);
  fields.may("multiply_adds", rates.multiply_adds);
  fields.may("matrix_multiply_adds", rates.matrix_multiply_adds);
  fields.may("shared_bytes", rates.shared_bytes);
  fields.may("cache_bytes", rates.cache_bytes);
  fields.may("schedulers", rates.schedulers);
  fields.may("shared_kib", rates.shared_kib);
  fields.may("registers", rates.registers);
}

void visit(auto& fields, auto& device) requires requires { device.cooperative_shapes; }
{
  fields.must("name", device.name);
  fields.must("kind", device.type);
  fields.must("vendor_id", device.vendor_id);
  fields.may("device_id", device.device_id);
  fields.may("driver_name", device.driver_name);
  fields.may("driver_info", device.driver_info);
  fields.may("driver_id", device.driver_id);
  fields.may("driver_version", device.driver_version);
  fields.version("vulkan", device.api_version);
  fields.must("supports", device.has);
  fields.must("subgroup_size", device.subgroup_size);
  fields.must("min_subgroup_size", device.min_subgroup_size);
  fields.must("max_subgroup_size", device.max_subgroup_size);
  fields.must("subgroup_operations", device.subgroup_operations);
  fields.may("max_workgroup_subgroups", device.max_workgroup_subgroups);
  fields.may("multiprocessors", device.multiprocessors);
  fields.may("unit_subgroups", device.unit_subgroups);
  fields.may("lane_registers", device.lane_registers);
  fields.may("subgroup_registers", device.subgroup_registers);
  fields.may("matrix_subgroup_size", device.matrix_subgroup_size);
  fields.may("matrix_operand_lanes", device.matrix_operand_lanes);
  fields.may("matrix_sums", device.matrix_sums);
  fields.may("published", device.published);
  fields.may("cooperative_shapes", device.cooperative_shapes);
  fields.may("flexible_shapes", device.flexible_shapes);
  fields.may("flexible_max_dimension", device.flexible_max_dimension);
  fields.may("flexible_reserved_shared", device.flexible_reserved_shared);
  fields.may("pipeline_statistics", device.pipeline_statistics);
  fields.may("memory_budget", device.memory_budget);
  fields.may("scalar_layout", device.scalar_layout);
  fields.may("mixed_dot_product", device.mixed_dot_product);
  fields.may("memory_model", device.memory_model);
  fields.may("robust_buffer_access", device.robust_buffer_access);
  fields.may("portability_subset", device.portability_subset);
  fields.may("loops_gather", device.loops_gather);
  fields.may("ignores_specialization", device.ignores_specialization);
  fields.may("max_loop_rounds", device.max_loop_rounds);
  fields.must("max_workgroup_count", device.max_workgroup_count);
  fields.must("max_workgroup_size", device.max_workgroup_size);
  fields.must("max_workgroup_invocations", device.max_workgroup_invocations);
  fields.must("max_shared_bytes", device.max_shared_bytes);
  fields.must("max_push_bytes", device.max_push_bytes);
  fields.must("max_storage_buffers", device.max_storage_buffers);
  fields.must("max_storage_range", device.max_storage_range);
  fields.must("max_allocation", device.max_allocation);
  fields.must("max_buffer_bytes", device.max_buffer_bytes);
  fields.must("storage_alignment", device.storage_alignment);
  fields.may("timestamp_period_ns", device.timestamp_period_ns);
  fields.may("timestamp_valid_bits", device.timestamp_valid_bits);
  fields.may("heaps", device.heaps);
  fields.may("memory_types", device.memory_types);
  fields.may("quirks", device.quirks);
  fields.may("advice", device.advice);
}

constexpr uint32_t need_bits = 32;
std::vector<std::string> names_of(Need needs) {
  std::vector<std::string> names;
  for (uint32_t bit = 0; bit < need_bits; ++bit) {
    const auto need = static_cast<Need>(1u << bit);
    if (contains(needs, need)) names.push_back(to_string(need));
  }
  return names;
}

class Writer {
 public:
  template <typename T>
  void must(const char* key, const T& value) {
    object_[key] = json_of(value);
  }
  template <typename T>
  void may(const char* key, const T& value) {
    if (value != T{}) must(key, value);
  }
  void version(const char* key, uint32_t value) { object_[key] = version_text(value); }
  Json object() && { return std::move(object_); }

 private:
  template <typename T>
  static Json json_of(const T& value) {
    if constexpr (std::same_as<T, DeviceType> || std::same_as<T, MatrixSums>) {
      return name_of(value);
    } else if constexpr (std::same_as<T, Need>) {
      return names_of(value);
    } else if constexpr (std::constructible_from<Json, T>) {
      return value;
    } else if constexpr (requires { value.begin(); }) {
      Json list = Json::array();
      for (const auto& each : value) list.push_back(json_of(each));
      return list;
    } else {
      Writer writer;
      visit(writer, value);
      return std::move(writer.object_);
    }
  }

  Json object_ = Json::object();
};

class Reader {
 public:
  Reader(const nlohmann::json& object, std::string path, const std::string& file)
      : object_(object), path_(std::move(path)), file_(file) {
    if (!object.is_object()) refuse(path_, object, "an object");
  }

  template <typename T>
  void must(const char* key, T& value) {
    seen_.insert(key);
    const auto member = object_.find(key);
    if (member == object_.end())
      throw Error(ErrorCode::bad_file, file_ + ": found no \"" + at(key) + "\", expected one");
    read(*member, at(key), value);
  }
  template <typename T>
  void may(const char* key, T& value) {
    seen_.insert(key);
    if (object_.contains(key)) must(key, value);
  }
  void version(const char* key, uint32_t& value) {
    std::string text;
    must(key, text);
    unsigned major = 0, minor = 0, patch = 0;
    int end = 0;
    const bool right = std::sscanf(text.c_str(), "%3u.%3u.%4u%n", &major, &minor, &patch, &end) == 3 &&
                       static_cast<size_t>(end) == text.size() && major < 128 && minor < 1024 && patch < 4096;
    if (!right) refuse(at(key), text, "a version such as \"1.3.0\"");
    value = VK_MAKE_API_VERSION(0, major, minor, patch);
  }
  // Throws for members that nobody asked for.
  void done() const {
    for (const auto& [key, value] : object_.items()) {
      if (!seen_.contains(key))
        throw Error(ErrorCode::bad_file, file_ + ": found " +
                                             in_quotes(path_.empty() ? key : path_ + "." + key) +
                                             ", which is no member of a device profile");
    }
  }

 private:
  std::string at(const char* key) const { return path_.empty() ? key : path_ + "." + key; }

  [[noreturn]] void refuse(const std::string& where, const nlohmann::json& found,
                           const std::string& expected) const {
    const std::string text = found.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    throw Error(ErrorCode::bad_file, file_ + ": \"" + (where.empty() ? "the file" : where) + "\" is " +
                                         (text.size() > 60 ? text.substr(0, 57) + "..." : text) +
                                         ", expected " + expected);
  }

  void read(const nlohmann::json& json, const std::string& where, std::string& value) const {
    if (!json.is_string()) refuse(where, json, "a text");
    value = json.get<std::string>();
  }
  void read(const nlohmann::json& json, const std::string& where, bool& value) const {
    if (!json.is_boolean()) refuse(where, json, "true or false");
    value = json.get<bool>();
  }
  void read(const nlohmann::json& json, const std::string& where, double& value) const {
    if (!json.is_number() || !(json.get<double>() >= 0) || json.get<double>() > 1e9)
      refuse(where, json, "a number from 0 to 1e9");
    value = json.get<double>();
  }
  template <std::unsigned_integral T>
  void read(const nlohmann::json& json, const std::string& where, T& value) const {
    if (!json.is_number_unsigned() || json.get<uint64_t>() > std::numeric_limits<T>::max())
      refuse(where, json, "a whole number from 0 to " + std::to_string(std::numeric_limits<T>::max()));
    value = json.get<T>();
  }
  void read(const nlohmann::json& json, const std::string& where, DeviceType& value) const {
    for (const DeviceType type : {DeviceType::other, DeviceType::integrated, DeviceType::discrete,
                                  DeviceType::virtual_gpu, DeviceType::cpu}) {
      if (json.is_string() && json.get<std::string>() == name_of(type)) {
        value = type;
        return;
      }
    }
    refuse(where, json, "other, integrated, discrete, virtual or cpu");
  }
  void read(const nlohmann::json& json, const std::string& where, MatrixSums& value) const {
    for (const MatrixSums sums :
         {MatrixSums::unknown, MatrixSums::operands, MatrixSums::alternate, MatrixSums::transposed}) {
      if (json.is_string() && json.get<std::string>() == name_of(sums)) {
        value = sums;
        return;
      }
    }
    refuse(where, json, "unknown, operands, alternate or transposed");
  }
  void read(const nlohmann::json& json, const std::string& where, Need& value) const {
    std::vector<std::string> names;
    read(json, where, names);
    for (const std::string& name : names) {
      uint32_t bit = 0;
      while (bit < need_bits && to_string(static_cast<Need>(1u << bit)) != name) ++bit;
      if (bit == need_bits || name == "none")
        refuse(where, name, "names that `vitrine devices --json` lists");
      value = value | static_cast<Need>(1u << bit);
    }
  }
  template <typename T, size_t n>
  void read(const nlohmann::json& json, const std::string& where, std::array<T, n>& value) const {
    if (!json.is_array() || json.size() != n) refuse(where, json, std::to_string(n) + " numbers");
    for (size_t i = 0; i < n; ++i) read(json[i], where, value[i]);
  }
  template <typename T>
  void read(const nlohmann::json& json, const std::string& where, std::vector<T>& value) const {
    if (!json.is_array()) refuse(where, json, "a list");
    for (const nlohmann::json& each : json) read(each, where, value.emplace_back());
  }
  template <typename T>
  requires std::is_class_v<T>
  void read(const nlohmann::json& json, const std::string& where, T& value) const {
    Reader reader(json, where, file_);
    visit(reader, value);
    reader.done();
  }

  const nlohmann::json& object_;
  std::string path_;
  const std::string& file_;
  std::set<std::string> seen_;
};

// What plans count on: nothing that Vulkan 1.3 doesn't promise.
void check(const Capabilities& device, const std::string& file) {
  const auto require = [&](bool right, const char* what) {
    if (!right) throw Error(ErrorCode::bad_file, file + ": found no Vulkan 1.3 device: " + what);
  };
  const auto is_size = [](uint32_t size) { return std::has_single_bit(size) && size <= 128; };
  require(device.api_version >= VK_API_VERSION_1_3, "\"vulkan\" is below 1.3.0");
  require(is_size(device.subgroup_size) && is_size(device.min_subgroup_size) &&
              is_size(device.max_subgroup_size) && device.min_subgroup_size <= device.subgroup_size &&
              device.subgroup_size <= device.max_subgroup_size,
          "the subgroup sizes are no powers of two up to 128 in ascending order");
  require(device.max_workgroup_invocations >= 128, "\"max_workgroup_invocations\" is below 128");
  require(device.max_workgroup_size[0] >= 128 && device.max_workgroup_size[1] >= 128 &&
              device.max_workgroup_size[2] >= 64,
          "\"max_workgroup_size\" is below [128, 128, 64]");
  for (const uint32_t count : device.max_workgroup_count)
    require(count >= 65535, "\"max_workgroup_count\" is below 65535");
  require(device.max_shared_bytes >= 16384, "\"max_shared_bytes\" is below 16384");
  require(device.max_push_bytes >= 128, "\"max_push_bytes\" is below 128");
  require(device.max_storage_range >= 1u << 27, "\"max_storage_range\" is below 134217728");
  require(device.max_allocation >= 1u << 30, "\"max_allocation\" is below 1073741824");
  require(std::has_single_bit(device.storage_alignment), "\"storage_alignment\" is no power of two");
  const auto is_matrix = [](const auto& shape) {
    return std::ranges::all_of(std::array{shape.m, shape.n, shape.k},
                               [](uint32_t size) { return size >= 1 && size <= 1024; });
  };
  require(std::ranges::all_of(device.cooperative_shapes, is_matrix) &&
              std::ranges::all_of(device.flexible_shapes, is_matrix),
          "a matrix is smaller than 1 or larger than 1024");
  require(device.matrix_subgroup_size == 0 || is_size(device.matrix_subgroup_size),
          "\"matrix_subgroup_size\" is no power of two up to 128");
  require(device.matrix_operand_lanes == 0 || is_size(device.matrix_operand_lanes),
          "\"matrix_operand_lanes\" is no power of two up to 128");
  for (const MemoryType& type : device.memory_types)
    require(type.heap < device.heaps.size(), "a type of memory names a heap that isn't there");
}

std::string compact(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

Capabilities device_of(const nlohmann::json& json, const std::string& name) {
  std::string format;
  uint32_t version = 0;
  Capabilities device;
  Reader reader(json, "", name);
  reader.must("format", format);
  reader.must("version", version);
  if (format != format_name || version != format_version) {
    throw Error(ErrorCode::bad_file, name + ": found " + in_quotes(format) + " version " +
                                         std::to_string(version) + ", expected \"" + format_name +
                                         "\" version " + std::to_string(format_version));
  }
  visit(reader, device);
  reader.done();
  check(device, name);
  device.has_compute_queue = device.synchronization2 = device.timeline_semaphore = device.maintenance4 = true;
  return device;
}

}  // namespace

std::string device_profile_to_json(const Capabilities& device) {
  Writer writer;
  visit(writer, device);
  std::string text = std::string("{\n  \"format\": \"") + format_name +
                     "\",\n  \"version\": " + std::to_string(format_version);
  const Json object = std::move(writer).object();
  for (const auto& [key, value] : object.items()) {
    text += ",\n  " + compact(key) + ": ";
    if (value.is_array() && !value.empty() && value[0].is_object()) {
      for (size_t i = 0; i < value.size(); ++i) text += (i == 0 ? "[\n    " : ",\n    ") + compact(value[i]);
      text += "\n  ]";
    } else {
      text += compact(value);
    }
  }
  return text + "\n}\n";
}

Capabilities parse_device_profile(std::string_view text, const std::string& name) {
  return device_of(parse_json(text, name), name);
}

Capabilities read_device_profile(const std::filesystem::path& file) {
  return device_of(read_json(file), shown(file));
}

}  // namespace vitrine
