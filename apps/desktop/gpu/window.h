// The window, its Vulkan surface, and the devices that can draw into it.
#pragma once

#include <vulkan/vulkan_core.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/desktop/gpu/display_scale.h"
#include "runtime/vk/device.h"
#include "runtime/vk/instance.h"

struct GLFWwindow;

namespace vitrine::desktop {

struct WindowOptions {
  std::string title = "Vitrine";
  int width = 1280, height = 800;
};

// A device as a window's user sees it: one to draw and compute with, or why it can't be used.
struct WindowDevice {
  PhysicalDevice physical;
  std::optional<uint32_t> family;  // computes, draws and presents
  std::string why_not;             // empty when it can be used
};

// What actions ask of a window, and what is asked of it for them; tests do without one.
class WindowControl {
 public:
  virtual ~WindowControl() = default;
  virtual void resize(int width, int height) = 0;
  virtual void minimise() = 0;
  virtual void restore() = 0;
  virtual std::string clipboard() const = 0;  // empty where there is no text on it
  // Nobody can see what is drawn. Displays do not always tell: under Wayland they never do.
  virtual bool hidden() const = 0;
};

class Window : public WindowControl {
 public:
  // Error(no_device) in one sentence where there is no display, no Vulkan loader or no driver.
  explicit Window(const WindowOptions& options, InstanceOptions instance = {});
  ~Window() override;
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  GLFWwindow* handle() const { return window_; }
  const std::shared_ptr<Instance>& instance() const { return instance_; }
  VkSurfaceKHR surface() const { return surface_; }

  std::vector<WindowDevice> devices() const;
  // Opens the one that `wanted` (an index, a part of a name, or empty: the best one) means.
  std::unique_ptr<Device> open_device(const std::string& wanted) const;
  std::unique_ptr<Device> open_device(const WindowDevice& device) const;

  VkExtent2D framebuffer() const;
  DisplayScale scale() const;
  void resize(int width, int height) override;
  void minimise() override;
  void restore() override;
  std::string clipboard() const override;
  bool hidden() const override;

  std::function<void(std::vector<std::string>)> on_drop;

 private:
  void create_window(const WindowOptions& options);

  GLFWwindow* window_ = nullptr;
  std::shared_ptr<Instance> instance_;
  VkSurfaceKHR surface_ = VK_NULL_HANDLE;
};

}  // namespace vitrine::desktop
