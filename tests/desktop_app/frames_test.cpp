// Frames on a surface without a display: what is said when the device is lost, and who waits for whom.
#include "apps/desktop/gpu/frames.h"

#include <imgui.h>
#include <volk.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/util/error.h"
#include "runtime/vk/facts/snapshot.h"
#include "tests/support/test_device.h"

namespace vitrine::desktop {
namespace {

// A device that draws, with a surface that shows nothing.
struct Screen {
  std::vector<std::string> messages;
  std::shared_ptr<Instance> instance;
  VkSurfaceKHR surface = VK_NULL_HANDLE;
  std::unique_ptr<Device> device;

  explicit Screen(Validation validation = Validation::sync) {
    test::test_device();  // says why, where there is none
    InstanceOptions options;
    options.validation = validation;
    options.sink = [this](const ValidationMessage& message) {
      if (!message.about_setup()) messages.push_back(message.text);
    };
    options.extensions = {VK_KHR_SURFACE_EXTENSION_NAME, VK_EXT_HEADLESS_SURFACE_EXTENSION_NAME};
    try {
      instance = std::make_shared<Instance>(options);
    } catch (const Error& error) {
      SKIP(error.what());
    }
    const VkHeadlessSurfaceCreateInfoEXT info{VK_STRUCTURE_TYPE_HEADLESS_SURFACE_CREATE_INFO_EXT};
    const auto create = function<PFN_vkCreateHeadlessSurfaceEXT>("vkCreateHeadlessSurfaceEXT");
    REQUIRE(create(instance->handle(), &info, nullptr, &surface) == VK_SUCCESS);
    const auto presents =
        function<PFN_vkGetPhysicalDeviceSurfaceSupportKHR>("vkGetPhysicalDeviceSurfaceSupportKHR");
    for (const PhysicalDevice& physical : instance->devices()) {
      const auto families = queue_families(instance->functions(), physical.handle);
      for (uint32_t i = 0; i < families.size() && !device; ++i) {
        constexpr VkQueueFlags needed = VK_QUEUE_COMPUTE_BIT | VK_QUEUE_GRAPHICS_BIT;
        VkBool32 supported = VK_FALSE;
        presents(physical.handle, i, surface, &supported);
        if (supported == VK_TRUE && (families[i].queueFlags & needed) == needed)
          device = std::make_unique<Device>(instance, physical, DeviceOptions{.drawing_family = i});
      }
    }
    if (!device) SKIP("no device draws to a surface without a display");
  }
  ~Screen() {
    device.reset();
    if (surface)
      function<PFN_vkDestroySurfaceKHR>("vkDestroySurfaceKHR")(instance->handle(), surface, nullptr);
  }
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  template <typename Function>
  Function function(const char* name) const {
    return reinterpret_cast<Function>(instance->functions().get_instance_proc_addr(instance->handle(), name));
  }
};

constexpr VkExtent2D size{64, 48};

// A window with nothing in it but letters that it could show.
struct Interface {
  Interface() {
    ImGui::CreateContext();
    ImGui::GetIO().IniFilename = nullptr;
    ImGui::GetIO().Fonts->AddFontDefault();
    ImGui::GetIO().DisplaySize = {static_cast<float>(size.width), static_cast<float>(size.height)};
  }
  ~Interface() { ImGui::DestroyContext(); }
  Interface(const Interface&) = delete;
  Interface& operator=(const Interface&) = delete;

  const ImDrawData& frame() {
    ImGui::NewFrame();
    ImGui::Render();
    return *ImGui::GetDrawData();
  }
};

// As the app's loop does it.
void draw_frame(Frames& frames, Interface& interface) {
  do {
    frames.textures().collect();
    frames.collect();
    std::this_thread::yield();
  } while (!frames.ready(size));
  frames.draw(interface.frame());
}
void finish(Frames& frames) {
  while (!frames.idle()) frames.collect();
}

}  // namespace

TEST_CASE("frames are drawn to a surface without a display") {
  Screen screen;
  Interface interface;
  {
    Frames frames(*screen.device, screen.surface, size);
    frames.upload_fonts();
    Image shown;
    for (int i = 0; i < 5; ++i) {
      frames.capture([&](const Image& image) { shown = image; });
      draw_frame(frames, interface);
      finish(frames);
      CHECK(shown.width == size.width);
      CHECK(shown.height == size.height);
      shown = {};
    }
  }
  CHECK(screen.device->allocations() == 0);
  CHECK(screen.messages == std::vector<std::string>{});
}

TEST_CASE("where the device is lost while it draws, that is one sentence, and all is taken down in order") {
  struct Fault {
    const char* call;
    void (*inject)(VolkDeviceTable&);
  };
  const Fault faults[] = {
      {"vkQueuePresentKHR",
       [](VolkDeviceTable& vk) {
         vk.vkQueuePresentKHR = [](VkQueue, const VkPresentInfoKHR*) { return VK_ERROR_DEVICE_LOST; };
       }},
      {"vkAcquireNextImageKHR",
       [](VolkDeviceTable& vk) {
         vk.vkAcquireNextImageKHR = [](VkDevice, VkSwapchainKHR, uint64_t, VkSemaphore, VkFence, uint32_t*) {
           return VK_ERROR_DEVICE_LOST;
         };
       }},
      {"vkQueueSubmit2",
       [](VolkDeviceTable& vk) {
         vk.vkQueueSubmit2 = [](VkQueue, uint32_t, const VkSubmitInfo2*, VkFence) {
           return VK_ERROR_DEVICE_LOST;
         };
       }},
      {"vkGetFenceStatus",
       [](VolkDeviceTable& vk) {
         vk.vkGetFenceStatus = [](VkDevice, VkFence) { return VK_ERROR_DEVICE_LOST; };
       }},
  };
  for (const Fault& fault : faults) {
    INFO(fault.call);
    Screen screen;
    Interface interface;
    VolkDeviceTable& vk = screen.device->vk();
    auto frames = std::make_unique<Frames>(*screen.device, screen.surface, size);
    frames->upload_fonts();
    draw_frame(*frames, interface);
    finish(*frames);
    const VolkDeviceTable working = vk;
    fault.inject(vk);
    std::string said;
    try {
      for (int i = 0; i < 3; ++i) {
        draw_frame(*frames, interface);
        finish(*frames);
      }
    } catch (const Error& error) {
      CHECK(error.exit_status() == 1);
      said = error.what();
    }
    CHECK(said == "device '" + screen.device->capabilities().name +
                      "' can't draw into the window any more: " + fault.call +
                      " failed with VK_ERROR_DEVICE_LOST");
    // A device that is lost says so to whoever waits for it, too.
    static PFN_vkDeviceWaitIdle wait_idle;
    wait_idle = working.vkDeviceWaitIdle;
    vk.vkDeviceWaitIdle = [](VkDevice device) {
      wait_idle(device);  // this one is not lost
      return VK_ERROR_DEVICE_LOST;
    };
    frames.reset();
    vk = working;
    CHECK(screen.device->allocations() == 0);
  }
}

TEST_CASE("a display that takes no frames holds up nobody who computes, where there is a second queue") {
  Screen screen(Validation::off);
  const Device& opened = *screen.device;
  static PFN_vkGetPhysicalDeviceQueueFamilyProperties families;
  static PFN_vkCreateDevice create;
  static uint32_t queues;
  queues = 0;
  if (!opened.presents_apart()) {
    // The device is made to believe in a second queue; nothing here gets to the driver on it.
    InstanceFunctions& functions = const_cast<InstanceFunctions&>(screen.instance->functions());
    families = std::exchange(functions.get_queue_family_properties,
                             [](VkPhysicalDevice device, uint32_t* count, VkQueueFamilyProperties* list) {
                               families(device, count, list);
                               for (uint32_t i = 0; list && i < *count; ++i) list[i].queueCount = 2;
                             });
    create =
        std::exchange(functions.create_device, [](VkPhysicalDevice device, const VkDeviceCreateInfo* info,
                                                  const VkAllocationCallbacks* allocator, VkDevice* made) {
          VkDeviceQueueCreateInfo queue = *info->pQueueCreateInfos;
          VkDeviceCreateInfo changed = *info;
          queues = std::exchange(queue.queueCount, 1);
          changed.pQueueCreateInfos = &queue;
          return create(device, &changed, allocator, made);
        });
  }
  Device device(screen.instance, {opened.physical(), opened.capabilities()},
                {.drawing_family = opened.queue_family()});
  if (!opened.presents_apart()) CHECK(queues == 2);
  REQUIRE(device.presents_apart());

  static std::promise<void> begun, shown;
  begun = {}, shown = {};
  device.vk().vkQueuePresentKHR = [](VkQueue, const VkPresentInfoKHR*) {
    begun.set_value();
    shown.get_future().wait();
    return VK_SUCCESS;
  };
  std::future<VkResult> presenting =
      std::async(std::launch::async, [&] { return device.present(VkPresentInfoKHR{}); });
  begun.get_future().wait();
  std::future<void> computing = std::async(std::launch::async, [&] { device.submit({}); });
  // Who waits for the display here never comes back; the limit only makes a failure of that.
  CHECK(computing.wait_for(std::chrono::seconds(60)) == std::future_status::ready);
  shown.set_value();
  CHECK(presenting.get() == VK_SUCCESS);
  computing.get();
}

TEST_CASE("a queue that computes and presents does one thing at a time") {
  Screen screen;
  Device& device = *screen.device;
  if (device.presents_apart()) SKIP("this device presents on a queue of its own");
  static std::atomic<int> inside, most;
  inside = most = 0;
  static const auto visit = [] {
    most = std::max<int>(most, ++inside);
    for (int i = 0; i < 100; ++i) std::this_thread::yield();
    --inside;
    return VK_SUCCESS;
  };
  device.vk().vkQueuePresentKHR = [](VkQueue, const VkPresentInfoKHR*) { return visit(); };
  device.vk().vkQueueSubmit2 = [](VkQueue, uint32_t, const VkSubmitInfo2*, VkFence) { return visit(); };
  std::thread presenter([&] {
    for (int i = 0; i < 200; ++i) device.present(VkPresentInfoKHR{});
  });
  for (int i = 0; i < 200; ++i) device.submit({});
  presenter.join();
  CHECK(most == 1);
}

}  // namespace vitrine::desktop
