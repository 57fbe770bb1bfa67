#include "model/files/tensor_files.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>

#include "runtime/util/error.h"
#include "runtime/util/json.h"
#include "runtime/util/text.h"

namespace vitrine {
namespace {

namespace fs = std::filesystem;

constexpr const char* single_name = "model.safetensors";
constexpr const char* index_name = "model.safetensors.index.json";

[[noreturn]] void fail(const fs::path& file, const std::string& what) {
  throw Error(ErrorCode::bad_file, shown(file) + ": " + what);
}

fs::path find_in_folder(const fs::path& path) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) return path;
  for (const char* name : {single_name, index_name}) {
    if (fs::exists(path / name, ignored)) return path / name;
  }
  for (const char* name : {"pytorch_model.bin", "pytorch_model.bin.index.json"}) {
    if (fs::exists(path / name, ignored))
      fail(path, std::string("the folder has ") + name + " and no " + single_name +
                     ", expected safetensors, the only weights that are read");
  }
  fail(path, std::string("the folder has neither ") + single_name + " nor " + index_name);
}

fs::path folder_of(const fs::path& file) {
  return file.has_parent_path() ? file.parent_path() : fs::path(".");
}

// The folder that files named by an index may lie in once links are followed: the index's own. In
// Hugging Face's cache, models--NAME/snapshots/REVISION holds links to models--NAME/blobs.
fs::path allowed_folder(const fs::path& folder) {
  const fs::path repository = folder.parent_path().parent_path();
  const bool in_cache = folder.parent_path().filename() == "snapshots" &&
                        repository.filename().string().starts_with("models--");
  return in_cache ? repository : folder;
}

bool lies_in(const fs::path& file, const fs::path& folder) {
  return std::mismatch(folder.begin(), folder.end(), file.begin(), file.end()).first == folder.end();
}

bool is_plain_name(const std::string& name) {
  return name.ends_with(".safetensors") && name.find_first_of(std::string("/\\\0", 3)) == std::string::npos;
}

}  // namespace

TensorFiles::TensorFiles(const fs::path& path) : path_(find_in_folder(path)) {
  if (path_.extension() == ".json") {
    open_index();
  } else {
    files_.push_back(std::make_unique<SafetensorsFile>(path_));
    for (const TensorInfo& info : files_[0]->tensors()) tensors_.push_back({files_[0].get(), &info});
  }
  std::sort(tensors_.begin(), tensors_.end(),
            [](const StoredTensor& a, const StoredTensor& b) { return a.info->name < b.info->name; });
}

void TensorFiles::open_index() {
  const nlohmann::json index = read_json(path_);
  if (!index.is_object() || !index.contains("weight_map") || !index["weight_map"].is_object()) {
    fail(path_, "the index has no weight_map, expected an object of tensor names and files");
  }
  std::error_code error;
  const fs::path folder = fs::canonical(folder_of(path_), error);
  if (error) fail(path_, "its folder cannot be found: " + error.message());
  std::map<std::string, const SafetensorsFile*> opened;
  for (const auto& [tensor, value] : index["weight_map"].items()) {
    if (!value.is_string()) {
      fail(path_, "weight_map has a JSON " + std::string(value.type_name()) + " for tensor " +
                      in_quotes(tensor) + ", expected the name of a file");
    }
    const std::string name = value.get<std::string>();
    const std::string where = "weight_map has " + in_quotes(name) + " for tensor " + in_quotes(tensor);
    if (!is_plain_name(name)) fail(path_, where + ", expected the plain name of a .safetensors file");
    if (!opened.contains(name)) {
      const fs::path file = fs::canonical(folder / name, error);
      if (error) fail(path_, where + ", but there is no such file beside it");
      if (!lies_in(file, allowed_folder(folder)))
        fail(path_, where + ", a link that leads out of its folder");
      files_.push_back(std::make_unique<SafetensorsFile>(folder_of(path_) / name));
      opened[name] = files_.back().get();
    }
    const TensorInfo* info = opened[name]->find(tensor);
    if (info == nullptr) fail(path_, where + ", which that file does not hold");
    tensors_.push_back({opened[name], info});
  }
}

const StoredTensor* TensorFiles::find(std::string_view name) const {
  const auto found = std::lower_bound(
      tensors_.begin(), tensors_.end(), name,
      [](const StoredTensor& a, std::string_view b) { return std::string_view(a.info->name) < b; });
  return found != tensors_.end() && found->info->name == name ? &*found : nullptr;
}

}  // namespace vitrine
