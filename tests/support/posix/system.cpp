#include "tests/support/system.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/stat.h>

#include <cstdlib>
#include <stdexcept>
#include <string_view>

namespace vitrine::test {

void set_variable(const std::string& name, const std::optional<std::string>& value) {
  if (value) {
    setenv(name.c_str(), value->c_str(), 1);
  } else {
    unsetenv(name.c_str());
  }
}

void make_pipe(const std::filesystem::path& path) {
  if (mkfifo(path.c_str(), 0600) != 0) throw std::runtime_error("cannot make the pipe " + path.string());
}

std::string name_beyond_unicode(const std::string& name) { return name; }

const std::string no_such_file = "No such file or directory";
const std::filesystem::path cache_below_home = ".cache";

std::string no_driver_files() { return "/nonexistent"; }

Validation usual_validation() { return Validation::sync; }
const std::string usual_validation_name = "sync";

void keep_drivers_loaded() {
  dl_iterate_phdr(
      [](dl_phdr_info* library, size_t, void*) {
        if (std::string_view(library->dlpi_name).find("libvulkan_") != std::string_view::npos) {
          dlopen(library->dlpi_name, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
        }
        return 0;
      },
      nullptr);
}

}  // namespace vitrine::test
