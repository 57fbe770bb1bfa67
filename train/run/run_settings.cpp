#include "train/run/run_settings.h"

#include <exception>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>

#include "runtime/util/error.h"
#include "runtime/util/json.h"
#include "runtime/util/mapped_file.h"
#include "runtime/util/text.h"
#include "train/run/run_folder.h"

namespace vitrine {
namespace {

uint64_t parts_in_settings(const std::filesystem::path& file) {
  try {
    const nlohmann::json settings = read_json(file);
    return settings.is_object() ? settings.value("parts", uint64_t{1}) : 1;
  } catch (const std::exception&) {
    return 1;  // it isn't ours
  }
}

}  // namespace

std::string settings_text(const TrainConfig& config) { return to_json(config).dump(2) + "\n"; }

bool holds_text(const std::filesystem::path& file, const std::string& text) {
  const MappedFile there(file);
  return text == std::string_view(reinterpret_cast<const char*>(there.bytes().data()), there.bytes().size());
}

void require_no_other_settings(const TrainConfig& config, const std::filesystem::path& out) {
  const std::filesystem::path file = settings_in(out);
  std::error_code none;
  if (!std::filesystem::exists(file, none) || std::filesystem::exists(checkpoint_in(out), none)) return;
  // How its batches are cut may have been found out anew.
  for (const uint64_t parts : {config.parts, parts_in_settings(file)}) {
    TrainConfig cut = config;
    cut.parts = parts;
    if (holds_text(file, settings_text(cut))) return;
  }
  throw Error(ErrorCode::usage, shown(file) +
                                    " is there already, and would be overwritten with this training's "
                                    "settings, expected another folder to write to");
}

}  // namespace vitrine
