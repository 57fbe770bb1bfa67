#include "tests/support/test_device.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/reporters/catch_reporter_event_listener.hpp>
#include <catch2/reporters/catch_reporter_registrars.hpp>
#include <cstdio>
#include <cstdlib>
#include <mutex>

#include "runtime/util/error.h"
#include "runtime/vk/device_choice.h"
#include "runtime/vk/instance.h"
#include "tests/support/system.h"

namespace vitrine::test {
namespace {

std::mutex message_lock;
std::vector<std::string> messages;

std::vector<std::string> take_messages() {
  const std::lock_guard lock(message_lock);
  return std::exchange(messages, {});
}

std::unique_ptr<TestDevice> shared_device;

// Ends the device while the layers still live: at exit, their own statics go before ours. What they say
// of the device's end counts too.
class DeviceEnd final : public Catch::EventListenerBase {
 public:
  using EventListenerBase::EventListenerBase;
  void testRunEnded(const Catch::TestRunStats&) override {
    if (!shared_device) return;
    shared_device->pipelines.reset();
    shared_device->device.reset();
    shared_device->instance.reset();
    shared_device.reset();
    const std::vector<std::string> last = take_messages();
    for (const std::string& message : last) {
      std::fprintf(stderr, "validation message after the last test: %s\n", message.c_str());
    }
    if (!last.empty()) std::_Exit(1);
  }
};
CATCH_REGISTER_LISTENER(DeviceEnd)

std::unique_ptr<TestDevice> make() {
  auto made = std::make_unique<TestDevice>();
  InstanceOptions options;
  options.validation = validation_from_environment();
  if (options.validation == Validation::off) options.validation = usual_validation();
  options.sink = [](const ValidationMessage& message) {
    if (message.about_setup()) return;
    const std::lock_guard lock(message_lock);
    messages.push_back(message.id + ": " + message.text);
  };
  made->instance = std::make_shared<Instance>(options);
  const std::vector<PhysicalDevice> devices = made->instance->devices();
  std::vector<Capabilities> capabilities;
  for (const PhysicalDevice& physical : devices) capabilities.push_back(physical.capabilities);
  const size_t chosen = choose_device(capabilities, wanted_device("")).index();
  keep_drivers_loaded();
  made->device = std::make_unique<Device>(made->instance, devices[chosen]);
  made->pipelines = std::make_unique<PipelineStore>(*made->device);
  return made;
}

}  // namespace

TestDevice& test_device() {
  if (!shared_device) {
    std::string reason;
    try {
      shared_device = make();
    } catch (const Error& error) {
      if (error.code() != ErrorCode::no_device) throw;
      reason = error.what();
    }
    if (!shared_device) {
      const char* required = std::getenv("VITRINE_REQUIRE_DEVICE");
      if (required && (std::string(required) == "1" || std::string(required) == "all"))
        FAIL("VITRINE_REQUIRE_DEVICE=" << required << " and " << reason);
      SKIP("no device: " << reason);
    }
  }
  return *shared_device;
}

void leave_out(const std::string& why) {
  // Catch2 counts the skip when it is asked for; only what it throws would end the test.
  try {
    SKIP("left out: " << why);
  } catch (...) {
  }
}

bool stores(DType dtype) {
  if (size_of(dtype) == 4 || test_device().device->capabilities().supports(Need::storage16)) return true;
  leave_out(std::string(name_of(dtype)) + ": " + std::string(no_storage16));
  return false;
}

void skip_without_f16() {
  if (!test_device().device->capabilities().supports(Need::storage16)) SKIP(no_storage16);
}

bool compiles_slowly() { return test_device().device->capabilities().loops_gather; }

void skip_without_timestamps() {
  if (test_device().device->capabilities().timestamp_valid_bits == 0) SKIP("the device has no timestamps");
}

bool has_cpu_kernels() {
  const Capabilities& device = test_device().device->capabilities();
  return device.type == DeviceType::cpu && device.supports(Need::addresses | Need::int64);
}

bool computes_slowly() {
  return test_device().device->capabilities().type == DeviceType::cpu && !has_cpu_kernels();
}

bool compiles_for_gpus_on_a_cpu() {
  // The layer of make-believe devices hides whose driver is below it.
  const bool pretends = std::getenv("VITRINE_PRETEND") != nullptr;
  return !has_cpu_kernels() && (pretends || test_device().device->capabilities().type == DeviceType::cpu);
}

void require_no_validation_messages() {
  for (const std::string& message : take_messages()) FAIL("validation: " << message);
}

}  // namespace vitrine::test
