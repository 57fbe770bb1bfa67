#include "model/files/hub_cache.h"

#include <algorithm>
#include <fstream>
#include <optional>
#include <system_error>
#include <vector>

#include "runtime/util/error.h"
#include "runtime/util/system.h"
#include "runtime/util/text.h"

namespace vitrine {
namespace {

namespace fs = std::filesystem;

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
         c == '.';
}

// A plain name, so that nothing that a file says leads out of the cache.
bool is_plain(std::string_view text) {
  return !text.empty() && text.size() <= 96 && text.front() != '.' && text.front() != '-' &&
         std::ranges::all_of(text, is_name_character);
}

// The revision that refs/main names, where there is one.
std::optional<std::string> main_revision(const fs::path& repository) {
  std::ifstream file(repository / "refs" / "main");
  std::string revision;
  if (!(file >> revision) || !is_plain(revision)) return std::nullopt;
  return revision;
}

std::vector<fs::path> snapshots_newest_first(const fs::path& repository) {
  std::vector<std::pair<fs::file_time_type, fs::path>> found;
  std::error_code error;
  for (fs::directory_iterator entry(repository / "snapshots", error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code ignored;
    if (entry->is_directory(ignored)) found.emplace_back(entry->last_write_time(ignored), entry->path());
  }
  // Of two that are equally old, always the same one.
  std::ranges::sort(found, std::ranges::greater{});
  std::vector<fs::path> paths;
  for (auto& [time, path] : found) paths.push_back(std::move(path));
  return paths;
}

}  // namespace

const char* process_variable(const char* name) { return system::variable(name); }

fs::path hub_cache_folder(const Environment& environment) {
  // What a variable names, if it is set to anything; a leading ~ is the home folder.
  const auto folder = [&](const char* name) -> std::optional<fs::path> {
    const char* value = environment(name);
    if (!value || !*value) return std::nullopt;
    const std::string_view text = value;
    const char* home = environment("HOME");
    if (home && (text == "~" || text.starts_with("~/"))) return fs::path(std::string(home) + (value + 1));
    return fs::path(text);
  };
  // The second is the first one's older name.
  for (const char* name : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"}) {
    if (const auto cache = folder(name)) return *cache;
  }
  if (const auto home = folder("HF_HOME")) return *home / "hub";
  if (const auto cache = folder("XDG_CACHE_HOME")) return *cache / "huggingface" / "hub";
  return folder("HOME").value_or("/") / ".cache" / "huggingface" / "hub";
}

bool is_hub_name(std::string_view text) {
  const size_t slash = text.find('/');
  return slash != std::string_view::npos && is_plain(text.substr(0, slash)) &&
         is_plain(text.substr(slash + 1));
}

fs::path find_in_hub_cache(const std::string& name, const std::function<void(const std::string&)>& warn,
                           const Environment& environment) {
  const fs::path cache = hub_cache_folder(environment);
  std::string folder = "models--" + name;
  if (const size_t slash = folder.find('/'); slash != std::string::npos) folder.replace(slash, 1, "--");
  const fs::path repository = cache / folder;
  std::error_code error;
  const std::string how = " (hf download " + name + " fetches it)";
  if (!fs::is_directory(repository, error)) {
    throw Error(ErrorCode::bad_file, name + ": found neither a file or folder of this name nor '" + folder +
                                         "' in Hugging Face's cache " + shown(cache) +
                                         ", expected one of them" + how);
  }
  const std::optional<std::string> main = main_revision(repository);
  if (main && fs::is_directory(repository / "snapshots" / *main, error))
    return repository / "snapshots" / *main;
  const std::vector<fs::path> snapshots = snapshots_newest_first(repository);
  if (snapshots.empty()) {
    throw Error(ErrorCode::bad_file, name + ": found no snapshot in " + shown(repository) +
                                         ", expected one of the model's revisions" + how);
  }
  if (warn) {
    const std::string reason = main ? "refs/main names a revision that isn't there" : "there is no refs/main";
    warn(name + ": " + reason + " in " + shown(repository) +
         ", the newest snapshot is used: " + shown(snapshots.front().filename()));
  }
  return snapshots.front();
}

std::vector<std::string> names_in_hub_cache(const Environment& environment) {
  constexpr std::string_view kind = "models--";
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(hub_cache_folder(environment), error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string folder = entry->path().filename().string();
    if (!folder.starts_with(kind)) continue;
    std::string name = folder.substr(kind.size());
    const size_t between = name.find("--");
    if (between == std::string::npos) continue;
    name.replace(between, 2, "/");
    std::error_code ignored;
    const std::optional<std::string> main = main_revision(entry->path());
    const bool has_main = main && fs::is_directory(entry->path() / "snapshots" / *main, ignored);
    if (is_hub_name(name) && (has_main || !snapshots_newest_first(entry->path()).empty()))
      names.push_back(std::move(name));
  }
  std::ranges::sort(names);
  return names;
}

}  // namespace vitrine
