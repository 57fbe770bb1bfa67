// Whole steps of training against PyTorch in float64: losses, every parameter's gradient, and what comes out.
#include <algorithm>
#include <array>
#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "images/png_writer.h"
#include "model/files/safetensors.h"
#include "model/files/weights.h"
#include "runtime/util/json.h"
#include "runtime/util/npy.h"
#include "runtime/util/philox.h"
#include "tests/support/matrix_units.h"
#include "tests/support/noise_picture.h"
#include "tests/support/op_test.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/test_device.h"
#include "tests/support/turns.h"
#include "train/data/augmentation.h"
#include "train/run/training_run.h"
#include "train/start_model.h"
#include "train/trainer.h"
#include "train/training_graph.h"

using namespace vitrine;

namespace {

const std::filesystem::path folder = std::filesystem::path(VITRINE_TEST_DATA) / "parity" / "train";
constexpr int projections = 16;
// Where products are rounded to f16: some three times what Mesa's software driver comes to.
const nlohmann::json rounded_limits{
    {"loss", 1e-3}, {"first_gradient", 2e-3}, {"last_gradient", 6e-2}, {"final", 1e-2}};

// One epoch, gone through in the same order every time.
struct Samples {
  uint64_t count = 0, elements = 0;
  std::vector<float> images;
  std::vector<uint32_t> labels;
};

Samples read_samples(const std::filesystem::path& fixture, const TrainConfig& config) {
  const NpyFile images(fixture / "images.npy");
  const std::vector<uint8_t> bytes = images.values<uint8_t>();
  const std::vector<float> values = preprocessing_of(config).values(config.model.channels);
  Samples samples{.count = images.header().shape[0], .elements = bytes.size() / images.header().shape[0]};
  const uint64_t plane = samples.elements / config.model.channels;
  for (size_t i = 0; i < bytes.size(); ++i) {
    samples.images.push_back(values[i / plane % config.model.channels * 256 + bytes[i]]);
  }
  for (const uint8_t label : NpyFile(fixture / "labels.npy").values<uint8_t>())
    samples.labels.push_back(label);
  return samples;
}

using Tensors = std::map<std::string, std::vector<double>>;

Tensors tensors_of(Trainer& trainer, std::string_view buffer) {
  std::vector<float> values(trainer.layout().elements);
  trainer.read(buffer, values);
  Tensors tensors;
  for (const auto& [parameter, first] : trainer.layout().places) {
    const auto begin = values.begin() + static_cast<ptrdiff_t>(first);
    tensors[parameter.name] = {begin, begin + static_cast<ptrdiff_t>(parameter.shape.elements())};
  }
  return tensors;
}

// F32 alone.
Tensors tensors_of(ConstantSource& weights, const Trainer& trainer) {
  Tensors tensors;
  for (const auto& [parameter, first] : trainer.layout().places) {
    std::vector<double>& values = tensors[parameter.name];
    for (const ConstantPart& part : weights.find(parameter.name, parameter.shape, DType::f32)) {
      REQUIRE(part.dtype == DType::f32);
      std::vector<float> floats(part.bytes.size() / sizeof(float));
      std::memcpy(floats.data(), part.bytes.data(), part.bytes.size());
      values.insert(values.end(), floats.begin(), floats.end());
    }
  }
  return tensors;
}

Tensors read_tensors(const std::filesystem::path& file) {
  const SafetensorsFile stored(file);
  Tensors tensors;
  for (const TensorInfo& info : stored.tensors()) {
    const auto values = stored.floats(info);
    tensors[info.name] = {values.begin(), values.end()};
  }
  return tensors;
}

double norm(std::span<const double> values) {
  return std::sqrt(std::inner_product(values.begin(), values.end(), values.begin(), 0.0));
}

Tensors difference(const Tensors& a, const Tensors& b) {
  Tensors result = a;
  for (auto& [name, values] : result) {
    for (size_t i = 0; i < values.size(); ++i) values[i] -= b.at(name)[i];
  }
  return result;
}

// Rows that no result depends on: nothing but rounding.
void clear_inert(Tensors& tensors, const nlohmann::json& inert, const Trainer& trainer) {
  for (const auto& [name, rows] : inert.items()) {
    const uint64_t width = tensors.at(name).size() / trainer.layout().find(name).parameter.shape[0];
    const uint64_t first = rows[0].get<uint64_t>() * width, last = rows[1].get<uint64_t>() * width;
    std::fill(tensors.at(name).begin() + static_cast<ptrdiff_t>(first),
              tensors.at(name).begin() + static_cast<ptrdiff_t>(last), 0.0);
  }
}

// Each tensor's relative error.
void check_tensors(const Tensors& found, const Tensors& expected, double limit, const char* what) {
  REQUIRE(found.size() == expected.size());
  for (const auto& [name, values] : found) {
    REQUIRE(values.size() == expected.at(name).size());
    const double size = norm(expected.at(name));
    std::vector<double> off = values;
    for (size_t i = 0; i < off.size(); ++i) off[i] -= expected.at(name)[i];
    // A tensor of inert rows alone is nothing on both sides.
    const double error = size > 0 ? norm(off) / size : norm(off);
    INFO(what << " of " << name << ": " << error);
    CHECK(error <= limit);
  }
}

// What stands for tensors that are too many to be kept: their norms, and sums with random signs.
void check_projections(const Tensors& found, const nlohmann::json& expected, const std::string& what,
                       double limit) {
  for (const auto& [name, values] : found) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (const char c : name) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3u;
    const RandomStream stream(expected.at("seed").get<uint64_t>(), hash);
    std::array<double, projections> sums{};
    for (size_t i = 0; i < values.size(); ++i) {
      const uint32_t word = stream.block(i / 4)[i % 4];
      for (int k = 0; k < projections; ++k)
        sums[static_cast<size_t>(k)] += (word >> k & 1) ? -values[i] : values[i];
    }
    const nlohmann::json& wanted = expected.at(what).at(name);
    double square = 0;
    for (size_t k = 0; k < projections; ++k) {
      const double off = sums[k] - wanted.at("projections")[k].get<double>();
      square += off * off;
    }
    const double size = wanted.at("norm").get<double>();
    const double error = std::sqrt(square / projections) / size;
    INFO(what << " of " << name << ": " << error);
    CHECK(error <= limit);
  }
}

// A large fixture's first steps alone where all of them would take many minutes.
void check(const std::string& name, const TrainerOptions& options = {}, bool large = false,
           Precision precision = Precision::f32) {
  test::TestDevice& device = test::test_device();
  const std::filesystem::path fixture = folder / name;
  INFO("fixture " << name);
  TrainConfig config = read_train_config(fixture / "train.json");
  config.precision = precision;
  std::string& teacher = config.recipe.distillation.model;
  if (!teacher.empty()) teacher = (fixture / teacher).string();
  const nlohmann::json expected = read_json(fixture / "expected.json");
  const bool rounded = precision == Precision::f16;
  const nlohmann::json limits = rounded ? rounded_limits : expected.at("limits"),
                       inert = expected.at("inert");
  const Samples samples = read_samples(fixture, config);
  const uint64_t all_steps = expected.at("steps"), group = config.batch_size * config.accumulation;
  const bool slow = test::computes_slowly(), shorter = large && (slow || test::takes_turns());
  if (large && slow) test::skip_until_turn(4);
  const uint64_t steps = !shorter ? all_steps : slow && test::takes_turns() ? 1 : 2;
  REQUIRE(samples.count % group == 0);

  const uint64_t steps_an_epoch = samples.count / group;
  TrainerOptions own = options;
  StartModel start;
  if (expected.contains("start")) {
    start = start_model(open_model({.model = fixture,
                                    .image_height = config.model.image_height,
                                    .image_width = config.model.image_width}),
                        {config.model.classes, {}}, config.head_init, config.seed);
    config.model = start.config;
    own.frozen = start.weights.get();
  }
  Trainer trainer(*device.pipelines, config, config.epochs * steps_an_epoch, own);
  REQUIRE(trainer.rounds() == rounded);
  if (start.weights) {
    trainer.initialize(*start.weights);
  } else if (std::filesystem::exists(fixture / "model.safetensors")) {
    trainer.initialize(*open_model({.model = fixture}).constants);
  } else {
    trainer.initialize(*random_weights(config.model, config.seed));
  }
  const Tensors initial = tensors_of(trainer, parameters_buffer);
  std::vector<double> losses;
  Tensors first, last;
  for (uint64_t step = 0; step < steps; ++step) {
    double loss = 0;
    for (uint64_t batch = 0; batch < config.accumulation; ++batch) {
      const Trainer::Slot slot = trainer.slot();
      const uint64_t at = (step % steps_an_epoch * config.accumulation + batch) * config.batch_size;
      const auto from = samples.images.begin() + static_cast<ptrdiff_t>(at * samples.elements);
      std::copy_n(from, config.batch_size * samples.elements, slot.images.begin());
      std::copy_n(samples.labels.begin() + static_cast<ptrdiff_t>(at), config.batch_size,
                  slot.labels.begin());
      trainer.submit(config.batch_size, group, batch + 1 == config.accumulation);
    }
    trainer.finish();
    std::vector<BatchResult> results;
    trainer.take_results(results);
    REQUIRE(results.size() == config.accumulation);
    for (const BatchResult& result : results) {
      loss += result.loss / static_cast<double>(config.accumulation);
    }
    losses.push_back(loss);
    if (step == 0) first = tensors_of(trainer, trainer.gradients());
    if (step + 1 == all_steps) last = tensors_of(trainer, trainer.gradients());
  }
  for (uint64_t step = 0; step < steps; ++step) {
    const double wanted = expected.at("losses")[step];
    INFO("loss of step " << step << ": " << losses[step] << " instead of " << wanted);
    CHECK(std::abs(losses[step] - wanted) / wanted <= limits.at("loss").get<double>());
  }

  const auto check_gradient = [&](Tensors& found, const std::string& which) {
    clear_inert(found, inert, trainer);
    if (expected.contains("projections")) {
      check_projections(found, expected["projections"], which, limits.at(which));
    } else {
      check_tensors(found, read_tensors(fixture / (which + ".safetensors")), limits.at(which), which.c_str());
    }
  };
  check_gradient(first, "first_gradient");
  if (shorter) {
    if (slow)
      test::leave_out(name + " behind its first steps: a CPU without kernels of its own takes minutes");
  } else {
    check_gradient(last, "last_gradient");
    Tensors change = difference(tensors_of(trainer, result_buffer(config)), initial);
    clear_inert(change, inert, trainer);
    if (expected.contains("projections")) {
      check_projections(change, expected["projections"], "change", limits.at("final"));
    } else {
      Tensors change_wanted = difference(read_tensors(fixture / "final.safetensors"), initial);
      clear_inert(change_wanted, inert, trainer);
      check_tensors(change, change_wanted, limits.at("final"), "change");
    }
  }
  test::require_no_validation_messages();
}

// The pictures of make_augmented_training.py, in folders of their classes.
void write_pictures(const test::TemporaryFolder& to, const nlohmann::json& pictures) {
  uint64_t number = 0;
  for (const nlohmann::json& picture : pictures) {
    const uint32_t width = picture.at("width"), height = picture.at("height");
    std::vector<uint8_t> bytes;
    for (const uint32_t pixel : test::noise_picture(number, width, height)) {
      for (uint32_t c = 0; c < 3; ++c) bytes.push_back(static_cast<uint8_t>(pixel >> (8 * c)));
    }
    const std::string name = (number < 10 ? "0" : "") + std::to_string(number) + ".png";
    const std::filesystem::path file = to / ("train/" + picture.at("class").get<std::string>() + "/" + name);
    std::filesystem::create_directories(file.parent_path());
    write_png(file, width, height, 3, bytes);
    ++number;
  }
  std::filesystem::create_directories(to / "test/a");
  std::filesystem::copy_file(to / "train/a/00.png", to / "test/a/00.png");
}

}  // namespace

// Crops, mirrors, RandAugment and color jitter, and mixing and erasing behind them, each by the numbers that
// are drawn here, on the device and on the host.
TEST_CASE("ten steps on pictures that chance changes are those of torchvision, timm and PyTorch") {
  PipelineStore& pipelines = *test::test_device().pipelines;
  const std::filesystem::path fixture = folder.parent_path() / "train_pictures";
  const nlohmann::json expected = read_json(fixture / "expected.json"), &limits = expected.at("limits");
  TrainConfig config = read_train_config(fixture / "train.json");
  const test::TemporaryFolder pictures;
  write_pictures(pictures, expected.at("pictures"));
  const auto data = open_dataset(pictures.path(), Split::train, dataset_options(config));
  for (const bool on_host : test::of_turn<bool>({false, true})) {
    INFO((on_host ? "changed on the host" : "changed on the device"));
    const std::string out = (pictures / (on_host ? "host" : "device")).string();
    TrainingRun run(pipelines, config, *data, {.out = out, .pictures_on_host = on_host});
    std::vector<double> losses;
    const std::atomic<bool> never{false};
    REQUIRE(
        run.run({.progress = [&](const TrainingProgress& at) { losses.push_back(at.batch_loss); }}, never));
    REQUIRE(losses.size() == 10);
    for (size_t step = 0; step < losses.size(); ++step) {
      const double wanted = expected.at("losses")[step];
      INFO("loss of step " << step << ": " << losses[step] << " instead of " << wanted);
      CHECK(std::abs(losses[step] - wanted) / wanted <= limits.at("loss").get<double>());
    }
    Tensors change = difference(tensors_of(*open_model({.model = out}).constants, run.trainer()),
                                tensors_of(*random_weights(config.model, config.seed), run.trainer()));
    clear_inert(change, expected.at("inert"), run.trainer());
    check_projections(change, expected["projections"], "change", limits.at("final"));
  }
  test::require_no_validation_messages();
}

TEST_CASE("MyViT trains as in PyTorch") { check("myvit", {}, true); }
TEST_CASE("four blocks of width 192 train as in PyTorch") {
  test::skip_until_turn(2);
  check("vit192", {}, true);
}
TEST_CASE("a model with SwiGLU, layer scale, registers and mean pooling trains as in PyTorch") {
  check("swiglu");
}
TEST_CASE("models of every other kind train as in PyTorch") {
  for (const char* name :
       test::of_turn<const char*>({"beit", "branches", "dinov3", "distilled", "eva02", "map", "parallel",
                                   "representation", "shared_relative", "talking_heads", "token_and_mean"}))
    check(name);
}
// Ten steps each, with the random numbers drawn here and there alike.
TEST_CASE("mixup and cutmix train as in timm") {
  for (const char* name : test::of_turn<const char*>({"mixup", "cutmix", "mix_both", "mix_elem"}))
    check(name);
}
TEST_CASE("binary cross-entropy trains as in timm") {
  for (const char* name : test::of_turn<const char*>({"bce", "bce_mixed"})) check(name);
}
TEST_CASE("random erasing trains as in timm") { check("erasing"); }
TEST_CASE("distillation trains as in timm and DeiT") {
  for (const char* name : test::of_turn<const char*>(
           {"distilled_hard", "distilled_soft", "distilled_plain", "distilled_plain_hard"}))
    check(name);
}
TEST_CASE("a recipe's blocks that are computed again train as in timm") {
  check("distilled_hard", {.recompute = true});
}
// The limits are f16's: of a step's operands each is off by 2^-12.3 in the mean, and a gradient has been
// through four blocks of them.
TEST_CASE("four blocks whose products are rounded on matrix units train beside PyTorch's in float64") {
  const std::filesystem::path fixture = folder / "vit192";
  TrainConfig config = read_train_config(fixture / "train.json");
  config.precision = Precision::f16;
  TrainerOptions options;
  size_t without_block = 0;
  const size_t rounded =
      test::prefer_matrix_units(config, layout_of(config.model), options.plan, without_block);
  if (without_block > 0) test::leave_out("attention's derivative: no block of its matrices fits the device");
  if (rounded == 0) SKIP("the device has no matrix units that these products use");
  test::skip_until_turn(4);
  // A layer has a product, and two in its derivative; a block has four layers, and attention twice.
  CHECK(rounded + without_block >= (3 * 4 + 2) * config.model.depth);
  check("vit192", options, true, Precision::f16);
}
TEST_CASE("a training that begins with another model goes on as in PyTorch") {
  for (const char* name : test::of_turn<const char*>(
           {"new_head", "f16_other_size", "head_alone", "last_two", "layers_and_average"}))
    check(name);
}
TEST_CASE("blocks that are computed again train as in PyTorch") { check("swiglu", {.recompute = true}); }
TEST_CASE("four blocks of width 192 that are computed again train as in PyTorch") {
  test::skip_until_turn(2);
  check("vit192", {.recompute = true}, true);
}
