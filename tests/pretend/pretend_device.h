// A make-believe device of a profile (tests/pretend/profiles), opened beside whatever else a test has open.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/graph/pipeline_store.h"
#include "runtime/vk/device.h"

namespace vitrine::test {

std::filesystem::path profile_path(const std::string& name);
std::vector<std::string> profile_names();

// Messages of an instance, from whichever thread and layer.
class Messages {
 public:
  std::function<void(const ValidationMessage&)> sink();
  // Those since the last call, as "id: text".
  std::vector<std::string> take();

 private:
  std::mutex mutex_;
  std::vector<std::string> all_;
};

// How many of the messages are of this id.
size_t count_of(const std::vector<std::string>& messages, const std::string& id);

struct OpenedDevice {
  std::unique_ptr<Messages> messages = std::make_unique<Messages>();
  std::shared_ptr<Instance> instance;
  std::unique_ptr<Device> device;
  std::unique_ptr<PipelineStore> pipelines;

  // Fails the test case if anything was said since the last look.
  void require_silence() const;
};

// Without a layer: the driver that all profiles lie over. Skips the test case where there is none.
std::shared_ptr<Instance> plain_instance(Messages& messages);
PhysicalDevice software_device(const Instance& instance);

// An instance with the layer. Only one thread may make instances meanwhile: the loader is told by the
// environment.
std::shared_ptr<Instance> pretending_instance(const std::filesystem::path& profile, Messages& messages,
                                              Validation validation = Validation::sync);
OpenedDevice open_pretended(const std::filesystem::path& profile, Validation validation = Validation::sync);
// The same for a profile of this project's, by its name.
OpenedDevice open_pretended(const char* name, Validation validation = Validation::sync);
OpenedDevice open_pretended(const std::string& name, Validation validation = Validation::sync);
// The driver without the layer, held to be what it pretends to be on the other side but for the memory, which
// is its own: the same kernels are chosen there.
OpenedDevice open_plain_with_capabilities_of(const Capabilities& pretended);

}  // namespace vitrine::test
