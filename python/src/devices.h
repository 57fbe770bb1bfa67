// The devices of this process, each opened once however many models are on it.
#pragma once

#include <memory>
#include <string>

#include "runtime/graph/pipeline_store.h"
#include "runtime/vk/open_device.h"

namespace vitrine::python {

struct OpenDevice {
  explicit OpenDevice(std::unique_ptr<Device> opened) : device(std::move(opened)), pipelines(*device) {}
  std::unique_ptr<Device> device;
  PipelineStore pipelines;
};

// `wanted` as in list_devices(). Any thread may call.
std::shared_ptr<OpenDevice> device_named(const std::string& wanted);

// The same list as vitrine::list_devices().
DeviceList devices_for(const std::string& wanted);

// Throws Error(no_device) in a process that was forked from one which had drivers loaded: their threads are
// not there, so whatever asks them would wait for ever.
void require_unforked();
// For who has things that only the process which made them may destroy.
bool is_forked();

}  // namespace vitrine::python
