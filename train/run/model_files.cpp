#include "train/run/model_files.h"

#include <nlohmann/json.hpp>
#include <span>

#include "model/files/preprocess_files.h"
#include "model/files/safetensors_writer.h"
#include "runtime/util/atomic_file.h"
#include "train/train_config.h"

namespace vitrine {

void write_model_settings(const std::filesystem::path& folder, const ViTConfig& config,
                          const Preprocess& preprocess, const std::vector<std::string>& class_names) {
  const auto write_json = [&](const char* name, const nlohmann::ordered_json& json) {
    const std::string text = json.dump(2) + "\n";
    write_file_atomically(folder / name, std::as_bytes(std::span(text)));
  };
  nlohmann::ordered_json description;
  description["vitrine"] = to_json(config);
  if (config.classes > 0 && class_names.size() == config.classes) description["label_names"] = class_names;
  write_json("config.json", description);
  // transformers would make three channels of a grey picture, or one of a colored model's, where its class
  // does so. What becomes of transparent colors is as it was in the training.
  nlohmann::ordered_json processor = hugging_face_json(preprocess);
  const bool colored = config.channels == 3;
  processor["do_convert_rgb"] = colored;
  if (preprocess.converts_rgb != colored) processor["vitrine"]["converts_rgb"] = preprocess.converts_rgb;
  write_json("preprocessor_config.json", processor);
}

void write_weights(const std::filesystem::path& folder, const ViTConfig& config,
                   const std::function<std::vector<float>(const Parameter&)>& values_of) {
  std::vector<std::vector<float>> values;
  std::vector<TensorToWrite> tensors;
  for (const Parameter& parameter : parameters_of(config)) {
    if (!parameter.learned()) continue;
    const auto dims = parameter.shape.dims();
    values.push_back(values_of(parameter));
    tensors.push_back({.name = parameter.name,
                       .shape = {dims.begin(), dims.end()},
                       .data = std::as_bytes(std::span(values.back()))});
  }
  write_safetensors(folder / "model.safetensors", tensors);
}

}  // namespace vitrine
