#include "train/run/checkpoint.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "model/files/safetensors.h"
#include "model/files/safetensors_writer.h"
#include "runtime/util/error.h"

namespace vitrine {
namespace {

// The format's name ended in the number, 1, before there was a version to count: no losses that aren't
// finite.
constexpr std::string_view format = "vitrine training", first_format = "vitrine training 1";
constexpr uint64_t version = 2;

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

uint64_t version_of(const Fields& fields) {
  const std::string& found = fields.text("format");
  if (found == first_format) return 1;
  if (found != format) fields.fail("the format", "'" + found + "'", "'" + std::string(format) + "'");
  const uint64_t written = fields.whole("version");
  if (written < 2 || written > version) {
    fields.fail("the version", std::to_string(written),
                "at most " + std::to_string(version) + ", which is what this program writes");
  }
  return written;
}

// What may change while a training rests.
constexpr std::string_view free_settings[] = {"/max_skipped_steps", "/validate_every", "/patience", "/keep",
                                              "/tensorboard"};

// Whether each update so far had the learning rate that it would have had now.
bool same_rates(const TrainConfig& before, const TrainConfig& now, uint64_t updates_an_epoch,
                uint64_t updates) {
  // A file may claim any number of them.
  const uint64_t possible = before.epochs * updates_an_epoch;
  for (uint64_t i = 0; i < std::min(updates, possible); ++i) {
    if (learning_rate(before, i, before.epochs * updates_an_epoch) !=
        learning_rate(now, i, now.epochs * updates_an_epoch)) {
      return false;
    }
  }
  return true;
}

// Refuses the first setting in which two configurations differ, and by which the numbers would.
void require_same_config(const Fields& fields, const std::string& path, const TrainingIdentity& identity) {
  const auto saved = nlohmann::json::parse(fields.text("config"), nullptr, false);
  if (saved.is_discarded()) fields.fail("the configuration", "no JSON", "the one of a training");
  // What an older version didn't know is what it did without.
  TrainConfig before = train_config_of(saved, path);
  const uint64_t updates = fields.whole("updates"), epochs = fields.whole("epoch");
  const auto refuse = [&](const std::string& setting, const std::string& was, const std::string& now,
                          const std::string& why) {
    fields.fail("the training's setting " + setting, was, now + " as now: " + why);
  };
  if (before.epochs != identity.config.epochs) {
    const std::string was = std::to_string(before.epochs), now = std::to_string(identity.config.epochs);
    if (identity.config.epochs < epochs) {
      refuse("epochs", was, now, std::to_string(epochs) + " of them are done");
    }
    TrainConfig longer = before;
    longer.epochs = identity.config.epochs;
    if (!same_rates(before, longer, identity.updates_an_epoch, updates)) {
      refuse("epochs", was, now,
             "by the schedule '" + std::string(name_of(before.schedule)) +
                 "' the learning rates of the updates that are made would have been others");
    }
    before.epochs = identity.config.epochs;
  }
  const nlohmann::json had = nlohmann::json(to_json(before)).flatten(),
                       wanted = nlohmann::json(to_json(identity.config)).flatten();
  for (const nlohmann::json& keys : {wanted, had}) {
    for (const auto& [key, value] : keys.items()) {
      if (std::ranges::find(free_settings, key) != std::end(free_settings)) continue;
      const std::string was = had.contains(key) ? had[key].dump() : "nothing";
      const std::string now = wanted.contains(key) ? wanted[key].dump() : "nothing";
      if (was != now) {
        refuse(key.substr(1), was, now, "a training goes on with the settings that it began with");
      }
    }
  }
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
  const TrainingHistory& history = position.history;
  write_safetensors(path, tensors,
                    {{"format", std::string(format)},
                     {"version", std::to_string(version)},
                     {"config", to_json(identity.config).dump()},
                     {"data", identity.data},
                     {"frozen_weights", std::to_string(identity.frozen)},
                     {"teacher", std::to_string(identity.teacher)},
                     {"updates", std::to_string(counts.updates)},
                     {"passes", std::to_string(counts.passes)},
                     {"skipped", std::to_string(counts.skipped)},
                     {"epoch", std::to_string(position.epoch)},
                     {"batch", std::to_string(position.batch)},
                     {"samples", std::to_string(position.samples)},
                     {"loss_sum", text_of(position.loss_sum)},
                     {"losses", std::to_string(position.losses)},
                     {"seconds", text_of(position.seconds)},
                     {"epoch_skipped", std::to_string(position.skipped)},
                     {"skipped_in_a_row", std::to_string(history.skipped_in_a_row)},
                     {"validations", std::to_string(history.best.count)},
                     {"validations_since_best", std::to_string(history.best.since)},
                     {"validated_at", std::to_string(history.best.newest)},
                     {"log_bytes", std::to_string(history.log.csv)},
                     {"event_bytes", std::to_string(history.log.events)},
                     {"best_loss", text_of(history.best.loss)},
                     {"best_accuracy", text_of(history.best.accuracy)}});
}

uint64_t parts_in_checkpoint(const std::filesystem::path& path) {
  const SafetensorsFile file(path);
  const auto saved = nlohmann::json::parse(Fields(file).text("config"), nullptr, false);
  const auto parts = saved.is_object() ? saved.find("parts") : saved.end();
  // What else it may be is said by whoever reads all of it.
  return parts != saved.end() && parts->is_number_unsigned() ? std::max<uint64_t>(parts->get<uint64_t>(), 1)
                                                             : 1;
}

TrainingPosition load_checkpoint(const std::filesystem::path& path, Trainer& trainer,
                                 const TrainingIdentity& identity) {
  const SafetensorsFile file(path);
  const Fields fields(file);
  const uint64_t written = version_of(fields);
  require_same_config(fields, path.string(), identity);
  if (fields.text("data") != identity.data) {
    fields.fail("the data set", fields.text("data"), identity.data + ", on which this training is to go on");
  }
  const auto require_at_most = [&](const char* key, uint64_t most) {
    if (fields.whole(key) <= most) return;
    fields.fail("the number '" + std::string(key) + "'", fields.text(key),
                "at most the " + std::to_string(most) + " of this training");
  };
  const TrainConfig& config = identity.config;
  const uint64_t batches = identity.updates_an_epoch * config.accumulation;
  require_at_most("epoch", config.epochs);
  require_at_most("batch", batches);
  require_at_most("updates", config.epochs * identity.updates_an_epoch);
  require_at_most("passes", config.epochs * batches);
  const uint64_t frozen = written >= 2 ? fields.whole("frozen_weights") : 0;
  if (frozen != identity.frozen) {
    fields.fail("the checksum of the weights that aren't trained", std::to_string(frozen),
                std::to_string(identity.frozen) + ", that of the model that this training is to go on with");
  }
  const uint64_t teacher = written >= 2 ? fields.whole("teacher") : 0;
  if (teacher != identity.teacher) {
    fields.fail("the checksum of the teacher's weights", std::to_string(teacher),
                std::to_string(identity.teacher) + ", that of the model that the configuration names now");
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
  TrainingPosition position{.epoch = fields.whole("epoch"),
                            .batch = fields.whole("batch"),
                            .loss_sum = fields.number("loss_sum"),
                            .losses = fields.whole("batch"),
                            .samples = fields.whole("samples"),
                            .seconds = fields.number("seconds")};
  TrainerCounts counts{.updates = fields.whole("updates"), .passes = fields.whole("passes")};
  if (written >= 2) {
    position.losses = fields.whole("losses");
    position.skipped = fields.whole("epoch_skipped");
    position.history = {.skipped_in_a_row = fields.whole("skipped_in_a_row"),
                        .best = {.count = fields.whole("validations"),
                                 .since = fields.whole("validations_since_best"),
                                 .newest = fields.whole("validated_at"),
                                 .loss = fields.number("best_loss"),
                                 .accuracy = fields.number("best_accuracy")},
                        .log = {.csv = fields.whole("log_bytes"), .events = fields.whole("event_bytes")}};
    counts.skipped = fields.whole("skipped");
    if (counts.skipped > counts.updates) {
      fields.fail("skipped", std::to_string(counts.skipped), "no more than the updates");
    }
  }
  for (const auto& [name, values] : buffers) trainer.write(name, values);
  trainer.set_counts(counts);
  return position;
}

}  // namespace vitrine
