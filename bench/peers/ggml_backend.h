// Finds ggml's backends, for the programs that measure it.
#pragma once

#include <ggml-backend.h>
#include <ggml-cpp.h>
#include <ggml.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <iostream>
#include <stdexcept>
#include <string>

namespace peer {

// The first device of a backend, "vulkan" or "cpu"; of Vulkan's the one of this number, where one is given.
inline ggml_backend_ptr open_backend(const std::string& wanted, const std::string& number, int threads) {
  // ggml looks at this when it loads its backends, and passes over software drivers that are not named.
  if (!number.empty()) setenv("GGML_VK_VISIBLE_DEVICES", number.c_str(), 1);
  ggml_backend_load_all();
  for (size_t i = 0; i < ggml_backend_dev_count(); ++i) {
    ggml_backend_dev_t device = ggml_backend_dev_get(i);
    ggml_backend_reg_t family = ggml_backend_dev_backend_reg(device);
    std::string name = ggml_backend_reg_name(family);
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
    if (name != wanted) continue;
    ggml_backend_ptr backend(ggml_backend_dev_init(device, nullptr));
    if (!backend)
      throw std::runtime_error("ggml can't open its device " + std::string(ggml_backend_dev_name(device)));
    auto* set_threads = reinterpret_cast<ggml_backend_set_n_threads_t>(
        ggml_backend_reg_get_proc_address(family, "ggml_backend_set_n_threads"));
    if (set_threads) set_threads(backend.get(), threads);
    return backend;
  }
  throw std::runtime_error("ggml finds no " + wanted +
                           " device on this machine (it uses a software driver only with --device N)");
}

// ggml logs its devices and buffers; only what goes wrong is of interest here.
inline void log_errors_only() {
  ggml_log_set(
      [](ggml_log_level level, const char* text, void*) {
        if (level == GGML_LOG_LEVEL_ERROR) std::cerr << text;
      },
      nullptr);
}

}  // namespace peer
