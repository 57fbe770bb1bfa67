#include "apps/desktop/gpu/window.h"

#include <GLFW/glfw3.h>

#include <algorithm>
#include <cstdlib>

#include "runtime/util/error.h"
#include "runtime/vk/device_choice.h"
#include "runtime/vk/facts/snapshot.h"
#include "runtime/vk/result.h"

// GLFW declares these where Vulkan's header came first with prototypes; here it came without them.
extern "C" {
GLFWAPI VkResult glfwCreateWindowSurface(VkInstance instance, GLFWwindow* window,
                                         const VkAllocationCallbacks* allocator, VkSurfaceKHR* surface);
}

namespace vitrine::desktop {
namespace {

Error no_display(const std::string& why) {
  return {ErrorCode::no_device,
          "there is no display to open a window on (" + why +
              "); start it from a desktop session, or use the command-line tool vitrine, which needs none"};
}

std::string glfw_error() {
  const char* text = nullptr;
  glfwGetError(&text);
  return text ? text : "no reason was given";
}

// A family that does everything, one that tells the time before one that doesn't.
std::optional<uint32_t> drawing_family(const Instance& instance, VkPhysicalDevice device,
                                       VkSurfaceKHR surface) {
  const auto presents = reinterpret_cast<PFN_vkGetPhysicalDeviceSurfaceSupportKHR>(
      instance.functions().get_instance_proc_addr(instance.handle(), "vkGetPhysicalDeviceSurfaceSupportKHR"));
  const std::vector<VkQueueFamilyProperties> families = queue_families(instance.functions(), device);
  std::optional<uint32_t> found;
  for (uint32_t i = 0; i < families.size(); ++i) {
    constexpr VkQueueFlags needed = VK_QUEUE_COMPUTE_BIT | VK_QUEUE_GRAPHICS_BIT;
    if ((families[i].queueFlags & needed) != needed || families[i].queueCount == 0) continue;
    VkBool32 supported = VK_FALSE;
    if (presents(device, i, surface, &supported) != VK_SUCCESS || supported == VK_FALSE) continue;
    if (families[i].timestampValidBits != 0) return i;
    if (!found) found = i;
  }
  return found;
}

VkExtent2D size_of(void (*get)(GLFWwindow*, int*, int*), GLFWwindow* window) {
  int width = 0, height = 0;
  get(window, &width, &height);
  return {static_cast<uint32_t>(std::max(width, 0)), static_cast<uint32_t>(std::max(height, 0))};
}

}  // namespace

Window::Window(const WindowOptions& options, InstanceOptions instance) {
  glfwInitHint(GLFW_COCOA_CHDIR_RESOURCES, GLFW_FALSE);
#ifdef GLFW_PLATFORM_X11
  // Without this folder there is no Wayland to be found, and its library would say so on stderr.
  if (glfwPlatformSupported(GLFW_PLATFORM_X11) == GLFW_TRUE && !std::getenv("XDG_RUNTIME_DIR"))
    glfwInitHint(GLFW_PLATFORM, GLFW_PLATFORM_X11);
#endif
  if (glfwInit() == GLFW_FALSE) throw no_display(glfw_error());
  try {
    create_window(options);
    uint32_t count = 0;
    const char** names = glfwGetRequiredInstanceExtensions(&count);
    if (!names) {
      // Without a loader or without any driver the instance says best what to install.
      const Instance without_windows(instance);
      without_windows.devices();
      throw Error(ErrorCode::no_device, "the Vulkan drivers here can't draw into windows: " + glfw_error());
    }
    instance.extensions.assign(names, names + count);
    instance_ = std::make_shared<Instance>(std::move(instance));
    const VkResult made = glfwCreateWindowSurface(instance_->handle(), window_, nullptr, &surface_);
    if (made != VK_SUCCESS) {
      throw Error(ErrorCode::no_device,
                  "Vulkan can't draw into this display's windows: " + name_of(made) + ", " + glfw_error());
    }
  } catch (...) {
    if (window_) glfwDestroyWindow(window_);
    glfwTerminate();
    throw;
  }
}

void Window::create_window(const WindowOptions& options) {
  glfwWindowHint(GLFW_CLIENT_API, GLFW_NO_API);
  glfwWindowHint(GLFW_SCALE_TO_MONITOR, GLFW_TRUE);
  glfwWindowHintString(GLFW_X11_CLASS_NAME, "vitrine-desktop");
#ifdef GLFW_WAYLAND_APP_ID
  glfwWindowHintString(GLFW_WAYLAND_APP_ID, "vitrine-desktop");
#endif
  window_ = glfwCreateWindow(options.width, options.height, options.title.c_str(), nullptr, nullptr);
  if (!window_) throw no_display(glfw_error());
  glfwSetWindowUserPointer(window_, this);
  glfwSetDropCallback(window_, [](GLFWwindow* window, int count, const char** paths) {
    const Window& self = *static_cast<Window*>(glfwGetWindowUserPointer(window));
    if (self.on_drop) self.on_drop({paths, paths + count});
  });
}

Window::~Window() {
  const auto destroy = reinterpret_cast<PFN_vkDestroySurfaceKHR>(
      instance_->functions().get_instance_proc_addr(instance_->handle(), "vkDestroySurfaceKHR"));
  destroy(instance_->handle(), surface_, nullptr);
  instance_.reset();
  glfwDestroyWindow(window_);
  glfwTerminate();
}

std::vector<WindowDevice> Window::devices() const {
  std::vector<WindowDevice> devices;
  for (PhysicalDevice& physical : instance_->devices()) {
    WindowDevice device{std::move(physical), {}, {}};
    const VkPhysicalDevice handle = device.physical.handle;
    if (const auto why = why_unusable(device.physical.capabilities)) {
      device.why_not = *why;
    } else if (!DeviceExtensions(instance_->functions(), handle).has(VK_KHR_SWAPCHAIN_EXTENSION_NAME)) {
      device.why_not = "it draws into no windows";
    } else {
      device.family = drawing_family(*instance_, handle, surface_);
      if (!device.family) device.why_not = "it can't draw into this window";
    }
    devices.push_back(std::move(device));
  }
  return devices;
}

std::unique_ptr<Device> Window::open_device(const std::string& wanted) const {
  const std::vector<WindowDevice> all = devices();
  std::vector<Capabilities> capabilities;
  for (const WindowDevice& device : all) capabilities.push_back(device.physical.capabilities);
  // What was named is opened or refused; the best one is looked for among those that can draw.
  const std::string name = wanted_device(wanted);
  if (!name.empty()) return open_device(all[choose_device(capabilities, name).index()]);
  std::vector<size_t> drawing;
  std::vector<Capabilities> candidates;
  for (size_t i = 0; i < all.size(); ++i) {
    if (!all[i].family) continue;
    drawing.push_back(i);
    candidates.push_back(capabilities[i]);
  }
  if (drawing.empty()) return open_device(all[choose_device(capabilities, name).index()]);
  return open_device(all[drawing[choose_device(candidates, name).index()]]);
}

std::unique_ptr<Device> Window::open_device(const WindowDevice& device) const {
  if (!device.family) {
    throw Error(ErrorCode::no_device,
                "device '" + device.physical.capabilities.name + "' can't be used: " + device.why_not);
  }
  return std::make_unique<Device>(instance_, device.physical, DeviceOptions{.drawing_family = device.family});
}

VkExtent2D Window::framebuffer() const { return size_of(glfwGetFramebufferSize, window_); }

DisplayScale Window::scale() const {
  float across = 1, down = 1;
  glfwGetWindowContentScale(window_, &across, &down);
  return display_scale(std::max(across, down), framebuffer(), size_of(glfwGetWindowSize, window_));
}

void Window::resize(int width, int height) { glfwSetWindowSize(window_, width, height); }
void Window::minimise() { glfwIconifyWindow(window_); }
void Window::restore() { glfwRestoreWindow(window_); }

std::string Window::clipboard() const {
  const char* text = glfwGetClipboardString(window_);
  return text ? text : "";
}

bool Window::hidden() const {
  const VkExtent2D size = framebuffer();
  return size.width == 0 || size.height == 0 || glfwGetWindowAttrib(window_, GLFW_ICONIFIED) == GLFW_TRUE ||
         glfwGetWindowAttrib(window_, GLFW_VISIBLE) == GLFW_FALSE;
}

}  // namespace vitrine::desktop
