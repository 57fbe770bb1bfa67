#include "python/src/devices.h"

#include <atomic>
#include <map>
#include <mutex>

#include "runtime/util/error.h"
#include "runtime/util/system.h"

namespace vitrine::python {
namespace {

// The process that loaded drivers; 0: none did. It is written before any driver is loaded.
std::atomic<uint64_t> loaded_in = 0;

void claim_process() {
  require_unforked();
  loaded_in = system::process_number();
}

}  // namespace

bool is_forked() {
  const uint64_t owner = loaded_in;
  return owner != 0 && owner != system::process_number();
}

void require_unforked() {
  if (!is_forked()) return;
  throw Error(ErrorCode::no_device,
              "found a process that was forked after Vitrine had looked for devices, expected one that was "
              "spawned (multiprocessing.get_context(\"spawn\")) or forked before: a driver's threads don't "
              "come along");
}

DeviceList devices_for(const std::string& wanted) {
  claim_process();
  return list_devices(wanted);
}

std::shared_ptr<OpenDevice> device_named(const std::string& wanted) {
  const DeviceList list = devices_for(wanted);
  const size_t index = list.choice.index();
  static std::mutex mutex;
  static std::map<size_t, std::weak_ptr<OpenDevice>> opened;
  const std::scoped_lock lock(mutex);
  std::shared_ptr<OpenDevice> device = opened[index].lock();
  if (!device) {
    device = std::make_shared<OpenDevice>(std::make_unique<Device>(list.instance, list.devices[index]));
    opened[index] = device;
  }
  return device;
}

}  // namespace vitrine::python
