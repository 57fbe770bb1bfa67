#include "tests/pretend/pretend_device.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cstdlib>

#include "runtime/util/error.h"
#include "tests/support/system.h"

namespace vitrine::test {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void skip_without_device(const std::string& reason) {
  const char* required = std::getenv("VITRINE_REQUIRE_DEVICE");
  if (required != nullptr && *required != '\0') FAIL("VITRINE_REQUIRE_DEVICE=" << required << ": " << reason);
  SKIP(reason);
  std::abort();  // never: both throw
}

std::shared_ptr<Instance> make_instance(Messages& messages, Validation validation) {
  try {
    return std::make_shared<Instance>(InstanceOptions{.validation = validation, .sink = messages.sink()});
  } catch (const Error& error) {
    if (error.code() != ErrorCode::no_device) throw;
    skip_without_device(error.what());
  }
}

}  // namespace

fs::path profile_path(const std::string& name) {
  return fs::path(VITRINE_TEST_DATA) / "pretend/profiles" / (name + ".json");
}

std::vector<std::string> profile_names() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(profile_path("any").parent_path()))
    names.push_back(entry.path().stem());
  std::ranges::sort(names);
  return names;
}

std::function<void(const ValidationMessage&)> Messages::sink() {
  return [this](const ValidationMessage& message) {
    if (message.about_setup()) return;
    const std::scoped_lock lock(mutex_);
    all_.push_back(message.id + ": " + message.text);
  };
}

std::vector<std::string> Messages::take() {
  const std::scoped_lock lock(mutex_);
  return std::exchange(all_, {});
}

size_t count_of(const std::vector<std::string>& messages, const std::string& id) {
  return static_cast<size_t>(
      std::ranges::count_if(messages, [&](const std::string& one) { return one.starts_with(id + ":"); }));
}

void OpenedDevice::require_silence() const {
  for (const std::string& message : messages->take()) FAIL("validation: " << message);
}

std::shared_ptr<Instance> plain_instance(Messages& messages) {
  const Variables environment({{"VK_INSTANCE_LAYERS", std::nullopt}});
  return make_instance(messages, Validation::sync);
}

PhysicalDevice software_device(const Instance& instance) {
  std::vector<PhysicalDevice> devices;
  try {
    devices = instance.devices();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::no_device) throw;
    skip_without_device(error.what());
  }
  const auto found = std::ranges::find_if(
      devices, [](const PhysicalDevice& one) { return one.capabilities.type == DeviceType::cpu; });
  if (found == devices.end()) skip_without_device("there is no software driver to pretend over");
  return *found;
}

std::shared_ptr<Instance> pretending_instance(const fs::path& profile, Messages& messages,
                                              Validation validation) {
  // Validation lies above, and so holds the program to what is pretended.
  const std::string layer = "VK_LAYER_VITRINE_pretend";
  const Variables environment(
      {{"VK_ADD_LAYER_PATH", VITRINE_PRETEND_FOLDER},
       {"VK_INSTANCE_LAYERS", (validation == Validation::off ? "" : "VK_LAYER_KHRONOS_validation:") + layer},
       {"VITRINE_PRETEND", profile.string()}});
  return make_instance(messages, validation);
}

OpenedDevice open_pretended(const char* name, Validation validation) {
  return open_pretended(profile_path(name), validation);
}
OpenedDevice open_pretended(const std::string& name, Validation validation) {
  return open_pretended(profile_path(name), validation);
}

OpenedDevice open_pretended(const fs::path& profile, Validation validation) {
  OpenedDevice opened;
  opened.instance = pretending_instance(profile, *opened.messages, validation);
  std::vector<PhysicalDevice> devices;
  try {
    devices = opened.instance->devices();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::no_device) throw;
    skip_without_device(error.what());
  }
  opened.device = std::make_unique<Device>(opened.instance, devices.front());
  opened.pipelines = std::make_unique<PipelineStore>(*opened.device);
  opened.require_silence();
  return opened;
}

OpenedDevice open_plain_with_capabilities_of(const Capabilities& pretended) {
  OpenedDevice opened;
  opened.instance = plain_instance(*opened.messages);
  PhysicalDevice physical = software_device(*opened.instance);
  const Capabilities own = std::exchange(physical.capabilities, pretended);
  Capabilities& told = physical.capabilities;
  told.heaps = own.heaps;
  told.memory_types = own.memory_types;
  told.memory_budget = own.memory_budget;
  told.device_uuid = own.device_uuid;
  told.pipeline_cache_uuid = own.pipeline_cache_uuid;
  told.vendor_id = own.vendor_id;
  told.device_id = own.device_id;
  opened.device = std::make_unique<Device>(opened.instance, physical);
  opened.pipelines = std::make_unique<PipelineStore>(*opened.device);
  return opened;
}

}  // namespace vitrine::test
