#include "runtime/tune/choice_store.h"

#include <nlohmann/json.hpp>
#include <span>

#include "runtime/util/atomic_file.h"
#include "runtime/util/error.h"
#include "runtime/util/json.h"
#include "runtime/util/text.h"

namespace vitrine {
namespace {

using Json = nlohmann::ordered_json;
using Table = std::map<std::string, std::string, std::less<>>;

constexpr const char* format_name = "vitrine kernel choices";
constexpr int format_version = 1;

std::string hex(std::span<const uint8_t> bytes) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (const uint8_t byte : bytes) {
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

// For whom the file is; every line must agree.
Json header_of(const Capabilities& device) {
  return {{"format", format_name},
          {"version", format_version},
          {"device", device.name},
          {"device_uuid", hex(device.device_uuid)},
          {"driver", device.driver_name},
          {"driver_info", device.driver_info},
          {"driver_version", device.driver_version}};
}

[[noreturn]] void refuse(const std::string& name, const std::string& found, const std::string& expected) {
  throw Error(ErrorCode::bad_file, name + ": found " + found + ", expected " + expected);
}

Table table_of(const nlohmann::json& file, const char* key, const std::string& name) {
  const auto member = file.find(key);
  if (member == file.end() || !member->is_object())
    refuse(name, std::string("no object \"") + key + "\"", "one");
  Table table;
  for (const auto& [row, value] : member->items()) {
    if (!value.is_string()) refuse(name, "no text at " + in_quotes(row), "one");
    table.emplace(row, value.get<std::string>());
  }
  return table;
}

// Throws Error(bad_file), naming `name`, for what is no such file or is another device's.
KernelChoices choices_in(const nlohmann::json& file, const std::string& name, const Capabilities& device) {
  if (!file.is_object()) refuse(name, "no JSON object", "one");
  const Json header = header_of(device);
  for (const auto& [key, value] : header.items()) {
    const auto member = file.find(key);
    if (member == file.end()) refuse(name, "no \"" + key + "\"", value.dump());
    // Compared as text: a driver's name may hold bytes that JSON replaced.
    const auto dump = [](const auto& json) {
      return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    };
    if (dump(*member) != dump(value)) refuse(name, "\"" + key + "\" " + dump(*member), dump(value));
  }
  return {.tuned = table_of(file, "tuned", name), .certificates = table_of(file, "certificates", name)};
}

}  // namespace

std::string kernel_choices_name(const Capabilities& device) {
  return device_file_name("kernels", device, ".json");
}

std::string kernel_choices_to_json(const Capabilities& device, const KernelChoices& choices) {
  Json file = header_of(device);
  file["tuned"] = choices.tuned;
  file["certificates"] = choices.certificates;
  return file.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

KernelChoices load_kernel_choices(const Capabilities& device,
                                  const std::function<void(const std::string&)>& warn,
                                  const std::optional<std::filesystem::path>& folder) {
  if (!folder) return {};
  const std::filesystem::path path = *folder / kernel_choices_name(device);
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return {};
  try {
    return choices_in(read_json(path), shown(path), device);
  } catch (const Error& broken) {
    if (warn) warn(std::string(broken.what()) + "; the file is ignored");
    return {};
  }
}

std::filesystem::path add_kernel_choices(const Capabilities& device, const KernelChoices& choices,
                                         const std::optional<std::filesystem::path>& folder) {
  if (!folder) {
    throw Error(ErrorCode::failed,
                "found none of VITRINE_CACHE_DIR, XDG_CACHE_HOME and HOME, expected one of them to keep what "
                "was learnt of the device in");
  }
  KernelChoices all = load_kernel_choices(device, {}, folder);
  for (const auto& [key, value] : choices.tuned) all.tuned.insert_or_assign(key, value);
  for (const auto& [key, value] : choices.certificates) all.certificates.insert_or_assign(key, value);
  std::error_code ignored;
  std::filesystem::create_directories(*folder, ignored);
  const std::filesystem::path path = *folder / kernel_choices_name(device);
  const std::string text = kernel_choices_to_json(device, all);
  write_file_atomically(path, std::as_bytes(std::span(text)));
  return path;
}

PlanOptions with_stored_choices(PlanOptions options, const Capabilities& device,
                                const std::function<void(const std::string&)>& warn) {
  if (warn) options.warn = warn;
  if (options.known) return options;
  KernelChoices stored = load_kernel_choices(device, warn);
  if (options.untuned) stored.tuned.clear();
  options.known = std::make_shared<const KernelChoices>(std::move(stored));
  return options;
}

}  // namespace vitrine
