#include "apps/desktop/engine/training_request.h"

#include <optional>
#include <system_error>

#include "apps/desktop/engine/digit_data.h"
#include "apps/desktop/engine/model_list.h"
#include "runtime/util/error.h"
#include "runtime/util/text.h"
#include "runtime/vk/pipeline_cache.h"
#include "train/run/training_run.h"

namespace vitrine::desktop {

TrainingRequest training_of(const std::string& config, const std::filesystem::path& data) {
  const std::filesystem::path given = config;
  std::error_code none;
  if (given == given.filename()) {
    const std::filesystem::path named = find_asset("configs").value_or("configs") / (config + ".json");
    if (std::filesystem::exists(named, none))
      return {.name = config, .config = read_train_config(named), .data = data};
  }
  if (std::filesystem::is_directory(given, none)) return saved_training(config, data);
  return {.name = shown(given.stem()), .config = read_train_config(given), .data = data};
}

TrainingRequest saved_training(const std::string& folder, const std::filesystem::path& data) {
  const std::filesystem::path from = folder;
  return {.name = shown((from / "").parent_path().filename()),
          .config = read_train_config(settings_in(from)),
          .from = from,
          .data = data};
}

std::filesystem::path data_folder(const TrainingRequest& request,
                                  const std::function<void(double)>& progress) {
  if (!request.data.empty()) return request.data;
  const ViTConfig& model = request.config.model;
  if (model.channels != 1 || model.image_height != model.image_width || model.classes < 10) {
    throw Error(ErrorCode::usage,
                "digits are drawn for models of 10 classes and square grey pictures, this one "
                "has " +
                    std::to_string(model.classes) + " classes and pictures of " +
                    std::to_string(model.channels) + " x " + std::to_string(model.image_height) + " x " +
                    std::to_string(model.image_width));
  }
  std::filesystem::path cache = request.cache;
  if (cache.empty()) {
    const std::optional<std::filesystem::path> users = cache_folder();
    if (!users) {
      throw Error(ErrorCode::failed,
                  "found no folder to keep drawn digits in, expected HOME, XDG_CACHE_HOME or "
                  "VITRINE_CACHE_DIR to name one");
    }
    cache = *users;
  }
  DigitSet digits = request.digits;
  digits.size = static_cast<uint32_t>(model.image_height);
  return drawn_digits(cache, digits, progress);
}

}  // namespace vitrine::desktop
