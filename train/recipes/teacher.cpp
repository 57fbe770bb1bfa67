#include "train/recipes/teacher.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/files/parameter_values.h"
#include "model/files/preprocess_files.h"
#include "model/vit/vision_transformer.h"
#include "runtime/ops/elementwise/binary.h"
#include "runtime/util/error.h"
#include "runtime/util/text.h"

namespace vitrine {
namespace {

constexpr std::string_view prefix = "teacher.";
// What brings the student's numbers to the teacher's: [C, H, W] each, multiplied and then added.
constexpr std::string_view factor_name = "teacher.image.factor", shift_name = "teacher.image.shift";

// A channel's numbers are a linear function of its bytes, for both: the teacher's are factor * x + shift of
// the student's.
struct Renormalized {
  bool differs = false;
  std::vector<float> factor, shift;  // [C, H, W]
};

Renormalized renormalized(const TrainConfig& config, const Preprocess& teacher) {
  const ViTConfig& c = config.model;
  const auto channels = static_cast<uint32_t>(c.channels);
  const std::vector<float> here = preprocessing_of(config).values(channels);
  const std::vector<float> there = teacher.values(channels);
  Renormalized result{.differs = here != there};
  const uint64_t plane = c.image_height * c.image_width;
  for (uint32_t channel = 0; channel < channels; ++channel) {
    const auto ends = [&](const std::vector<float>& values) {
      return std::pair<double, double>{values[channel * 256], values[channel * 256 + 255]};
    };
    const auto [low, high] = ends(here);
    const auto [low_there, high_there] = ends(there);
    const double factor = (high_there - low_there) / (high - low);
    result.factor.insert(result.factor.end(), plane, static_cast<float>(factor));
    result.shift.insert(result.shift.end(), plane, static_cast<float>(low_there - factor * low));
  }
  return result;
}

// A teacher's weights, and how its images are to be.
class TeacherConstants final : public ConstantSource {
 public:
  TeacherConstants(std::unique_ptr<ConstantSource> weights, Renormalized images)
      : weights_(std::move(weights)), images_(std::move(images)) {}

  ConstantParts find(const std::string& name, const Shape& shape, DType dtype) override {
    if (name == factor_name) return {{DType::f32, std::as_bytes(std::span(images_.factor))}};
    if (name == shift_name) return {{DType::f32, std::as_bytes(std::span(images_.shift))}};
    return weights_->find(name.substr(prefix.size()), shape, dtype);
  }

 private:
  std::unique_ptr<ConstantSource> weights_;
  Renormalized images_;
};

class BothConstants final : public ConstantSource {
 public:
  BothConstants(ConstantSource& own, ConstantSource& teacher) : own_(own), teacher_(teacher) {}
  ConstantParts find(const std::string& name, const Shape& shape, DType dtype) override {
    return (name.starts_with(prefix) ? teacher_ : own_).find(name, shape, dtype);
  }

 private:
  ConstantSource& own_;
  ConstantSource& teacher_;
};

std::string pictures_of(const ViTConfig& c) {
  return std::to_string(c.channels) + " x " + std::to_string(c.image_height) + " x " +
         std::to_string(c.image_width);
}

}  // namespace

std::optional<Teacher> open_teacher(const TrainConfig& config) {
  const Distillation& d = config.recipe.distillation;
  if (!d.on()) return std::nullopt;
  Model model = open_model({.model = d.model, .seed = config.seed});
  const auto require = [&](const char* what, const std::string& found, const std::string& expected) {
    if (found != expected)
      throw Error(ErrorCode::bad_file, "the teacher " + shown(d.model) + " has " + what + " " + found +
                                           ", the student's " + expected + " was expected");
  };
  require("pictures of", pictures_of(model.config), pictures_of(config.model));
  require("a number of classes of", std::to_string(model.config.classes),
          std::to_string(config.model.classes));
  Renormalized images = renormalized(config, read_preprocess(model.path, model.family, model.config));
  model.config.dropout = model.config.attention_dropout = model.config.stochastic_depth = 0;
  Teacher teacher{.model = {.config = model.config, .renormalizes = images.differs}};
  teacher.constants = std::make_unique<TeacherConstants>(std::move(model.constants), std::move(images));
  return teacher;
}

uint64_t checksum_of(Teacher& teacher) {
  std::vector<Parameter> parameters = parameters_of(teacher.model.config);
  std::erase_if(parameters, [](const Parameter& parameter) { return !parameter.learned(); });
  for (Parameter& parameter : parameters) parameter.name.insert(0, prefix);
  return checksum_of(*teacher.constants, parameters);
}

std::unique_ptr<ConstantSource> with_teacher(ConstantSource& own, Teacher& teacher) {
  return std::make_unique<BothConstants>(own, *teacher.constants);
}

ValueId append_teacher(GraphBuilder& builder, const TeacherModel& teacher, ValueId images) {
  Graph& graph = builder.graph();
  const ViTConfig& c = teacher.config;
  if (teacher.renormalizes) {
    const Shape shape{c.channels, c.image_height, c.image_width};
    images = multiply(graph, "teacher.image.scaled", images, graph.constant(std::string(factor_name), shape));
    images = add(graph, "teacher.image", images, graph.constant(std::string(shift_name), shape));
  }
  return VisionTransformer(c, "teacher")(builder, images, Result::logits);
}

}  // namespace vitrine
