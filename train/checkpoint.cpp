#include "train/checkpoint.h"

#include <charconv>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "model/files/safetensors.h"
#include "model/files/safetensors_writer.h"
#include "runtime/util/error.h"

namespace vitrine {
namespace {

constexpr std::string_view format = "vitrine training 1";

// Hexadecimal, so that the same bits come back.
std::string text_of(double value) {
  char text[64];
  const auto end = std::to_chars(text, text + sizeof text, value, std::chars_format::hex).ptr;
  return {text, end};
}

class Fields {
 public:
  explicit Fields(const SafetensorsFile& file) : file_(file) {}

  const std::string& text(const char* key) const {
    const auto found = file_.metadata().find(key);
    if (found == file_.metadata().end()) fail(key, "nothing", "an entry");
    return found->second;
  }
  uint64_t whole(const char* key) const {
    uint64_t value = 0;
    const std::string& from = text(key);
    const auto [end, error] = std::from_chars(from.data(), from.data() + from.size(), value);
    if (error != std::errc() || end != from.data() + from.size())
      fail(key, "'" + from + "'", "a whole number");
    return value;
  }
  double number(const char* key) const {
    double value = 0;
    const std::string& from = text(key);
    const auto [end, error] =
        std::from_chars(from.data(), from.data() + from.size(), value, std::chars_format::hex);
    if (error != std::errc() || end != from.data() + from.size()) {
      fail(key, "'" + from + "'", "a hexadecimal number");
    }
    return value;
  }
  [[noreturn]] void fail(const std::string& what, const std::string& found,
                         const std::string& expected) const {
    throw Error(ErrorCode::bad_file,
                file_.path().string() + ": " + what + " is " + found + ", expected " + expected);
  }

 private:
  const SafetensorsFile& file_;
};

// The first setting in which two configurations differ.
void require_same_config(const Fields& fields, const std::string& saved, const std::string& now) {
  if (saved == now) return;
  const auto before = nlohmann::json::parse(saved, nullptr, false).flatten();
  const auto wanted = nlohmann::json::parse(now, nullptr, false).flatten();
  for (const auto& [key, value] : wanted.items()) {
    const std::string was = before.contains(key) ? before[key].dump() : "nothing";
    if (was != value.dump()) {
      fields.fail("the training's setting " + key.substr(1), was,
                  value.dump() + " as now: a training goes on with the settings that it began with");
    }
  }
  fields.fail("the configuration", "another", "the one of this training");
}

}  // namespace

void save_checkpoint(const std::filesystem::path& path, Trainer& trainer, const TrainingPosition& position,
                     const TrainingIdentity& identity) {
  std::vector<std::vector<float>> buffers;
  std::vector<TensorToWrite> tensors;
  for (const std::string& name : trainer.buffers()) {
    std::vector<float>& values = buffers.emplace_back(trainer.layout().elements);
    trainer.read(name, values);
    for (const auto& [parameter, first] : trainer.layout().places) {
      const auto dims = parameter.shape.dims();
      tensors.push_back(
          {.name = name + "." + parameter.name,
           .shape = {dims.begin(), dims.end()},
           .data = std::as_bytes(std::span(values).subspan(first, parameter.shape.elements()))});
    }
  }
  const TrainerCounts& counts = trainer.counts();
  write_safetensors(path, tensors,
                    {{"format", std::string(format)},
                     {"config", identity.config},
                     {"data", identity.data},
                     {"updates", std::to_string(counts.updates)},
                     {"passes", std::to_string(counts.passes)},
                     {"epoch", std::to_string(position.epoch)},
                     {"batch", std::to_string(position.batch)},
                     {"samples", std::to_string(position.samples)},
                     {"loss_sum", text_of(position.loss_sum)},
                     {"seconds", text_of(position.seconds)}});
}

TrainingPosition load_checkpoint(const std::filesystem::path& path, Trainer& trainer,
                                 const TrainingIdentity& identity) {
  const SafetensorsFile file(path);
  const Fields fields(file);
  if (fields.text("format") != format) {
    fields.fail("the format", "'" + fields.text("format") + "'", "'" + std::string(format) + "'");
  }
  require_same_config(fields, fields.text("config"), identity.config);
  if (fields.text("data") != identity.data) {
    fields.fail("the data set", fields.text("data"), identity.data + ", on which this training is to go on");
  }
  // All of it is looked at before anything changes.
  std::map<std::string, std::vector<float>> buffers;
  for (const std::string& name : trainer.buffers()) {
    std::vector<float>& values = buffers[name];
    values.resize(trainer.layout().elements);
    for (const auto& [parameter, first] : trainer.layout().places) {
      const std::string full = name + "." + parameter.name;
      const TensorInfo* tensor = file.find(full);
      if (!tensor) fields.fail("the tensor '" + full + "'", "missing", "one of this model's");
      const Shape shape = tensor->shape.size() <= Shape::max_rank ? Shape(tensor->shape) : Shape{0};
      if (tensor->dtype != FileDType::f32 || !(shape == parameter.shape)) {
        fields.fail("the tensor '" + full + "'",
                    std::string(name_of(tensor->dtype)) + " " + shape.to_string(),
                    "F32 " + parameter.shape.to_string());
      }
      std::memcpy(values.data() + first, file.bytes(*tensor).data(), file.bytes(*tensor).size());
    }
  }
  const TrainingPosition position{.epoch = fields.whole("epoch"),
                                  .batch = fields.whole("batch"),
                                  .loss_sum = fields.number("loss_sum"),
                                  .samples = fields.whole("samples"),
                                  .seconds = fields.number("seconds")};
  const TrainerCounts counts{.updates = fields.whole("updates"), .passes = fields.whole("passes")};
  for (const auto& [name, values] : buffers) trainer.write(name, values);
  trainer.set_counts(counts);
  return position;
}

}  // namespace vitrine
