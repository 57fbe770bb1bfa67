#include "train/run/run_folder.h"

#include <algorithm>
#include <cstdio>
#include <string_view>
#include <system_error>

#include "runtime/util/atomic_file.h"
#include "runtime/util/atomic_folder.h"
#include "runtime/util/error.h"
#include "runtime/util/mapped_file.h"
#include "runtime/util/paths.h"
#include "runtime/util/text.h"

namespace vitrine {
namespace {

using Path = std::filesystem::path;

// A second name for a file that is replaced, and never changed: as good as a copy of it.
void link_or_copy(const Path& from, const Path& to) {
  std::error_code error;
  std::filesystem::create_hard_link(from, to, error);
  if (!error) return;
  write_file_atomically(to, MappedFile(from).bytes());
}

// The number of a name that checkpoint_of_epoch() gives; 0 for others.
uint64_t epoch_of(const Path& file, const Path& out) {
  const std::string name = file.filename().string();
  const size_t first = name.find_first_of("0123456789");
  if (first == std::string::npos || name.size() > 64) return 0;
  uint64_t epoch = 0;
  for (size_t i = first; i < name.size() && name[i] >= '0' && name[i] <= '9'; ++i) {
    epoch = 10 * epoch + static_cast<uint64_t>(name[i] - '0');
  }
  return checkpoint_of_epoch(out, epoch).filename() == name ? epoch : 0;
}

}  // namespace

Path checkpoint_in(const Path& out) { return out / "checkpoint.safetensors"; }
Path settings_in(const Path& out) { return out / "training.json"; }
Path best_in(const Path& out) { return out / "best"; }
Path last_in(const Path& out) { return out / "last"; }

Path checkpoint_of_epoch(const Path& out, uint64_t epoch) {
  char name[64];
  std::snprintf(name, sizeof name, "epoch-%06llu.safetensors", static_cast<unsigned long long>(epoch));
  return out / "checkpoints" / name;
}

const std::vector<std::string>& model_file_names() {
  static const std::vector<std::string> names{"config.json", "preprocessor_config.json", "model.safetensors",
                                              "adapter_config.json", "adapter_model.safetensors"};
  return names;
}

void keep_checkpoint(const Path& out, uint64_t epochs, uint64_t keep) {
  const Path wanted = checkpoint_of_epoch(out, epochs), folder = wanted.parent_path();
  if (keep <= 1) return;
  make_folders(folder);
  // Bytes of its own: whoever goes back copies another over the checkpoint, and that may write in place.
  write_file_atomically(wanted, MappedFile(checkpoint_in(out)).bytes());
  std::error_code error;
  std::vector<Path> old;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const uint64_t epoch = epoch_of(entry->path(), out);
    if (epoch > 0 && (epoch + keep <= epochs || epoch > epochs)) old.push_back(entry->path());
  }
  // What can't be taken away is in nobody's way.
  for (const Path& path : old) std::filesystem::remove(path, error);
}

void remove_left_behind_in(const Path& out) {
  std::vector<std::string> names = model_file_names();
  for (const Path& path : {checkpoint_in({}), settings_in({}), best_in({}), last_in({})})
    names.push_back(path.string());
  remove_left_behind(out,
                     [&](std::string_view name) { return std::ranges::find(names, name) != names.end(); });
  remove_left_behind(checkpoint_of_epoch(out, 0).parent_path(),
                     [&](std::string_view name) { return epoch_of(name, out) > 0; });
}

void link_model(const Path& from, const Path& to) {
  AtomicFolder folder(to, model_file_names());
  for (const std::string& name : model_file_names()) {
    if (path_exists(from / name, ErrorCode::failed)) link_or_copy(from / name, folder.path() / name);
  }
  folder.commit();
}

}  // namespace vitrine
