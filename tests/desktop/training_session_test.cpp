// Trainings that are watched, paused, saved and let go.
#include "apps/desktop/engine/training_session.h"

#include <algorithm>
#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>
#include <utility>

#include "apps/desktop/engine/digit_data.h"
#include "apps/desktop/engine/digit_reader.h"
#include "model/files/safetensors.h"
#include "model/files/weights.h"
#include "runtime/util/philox.h"
#include "tests/desktop/bell.h"
#include "tests/desktop/hand_digits.h"
#include "tests/support/system_fonts.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/test_device.h"

using namespace vitrine;
using namespace vitrine::desktop;

namespace {

const test::Path source = test::Path(VITRINE_TEST_DATA).parent_path();

std::string big_endian(uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift & 255);
  return bytes;
}

// Four classes that are easy to tell: which quarter of an 8 x 8 picture is bright.
void write_quarters(const test::TemporaryFolder& folder, const std::string& prefix, uint32_t count) {
  const RandomStream noise{5, count};
  std::string pictures = big_endian(0x803) + big_endian(count) + big_endian(8) + big_endian(8);
  std::string labels = big_endian(0x801) + big_endian(count);
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t label = noise.block(uint64_t{i} << 20)[0] % 4;
    labels += static_cast<char>(label);
    for (uint32_t p = 0; p < 64; ++p) {
      const bool bright = (p / 8 >= 4) == (label >= 2) && (p % 8 >= 4) == (label % 2 == 1);
      pictures += static_cast<char>((bright ? 150 : 20) + noise.block((uint64_t{i} << 20) + p + 1)[0] % 80);
    }
  }
  folder.file(prefix + "-images-idx3-ubyte", pictures);
  folder.file(prefix + "-labels-idx1-ubyte", labels);
}

struct Quarters {
  test::TemporaryFolder folder;
  Quarters() {
    write_quarters(folder, "train", 210);
    write_quarters(folder, "t10k", 61);
  }
};

TrainConfig tiny_config(uint64_t epochs, uint64_t accumulation = 1) {
  auto json = nlohmann::json::parse(R"({
    "model": {"image_size": 8, "patch_size": 4, "channels": 1, "classes": 4, "dim": 16, "depth": 2, "heads": 2,
              "mlp_hidden": 32, "init": "torch", "dropout": 0.05},
    "data": {"class_names": ["upper left", "upper right", "lower left", "lower right"],
             "mean": [0.3], "std": [0.3], "crop_padding": 1},
    "lr": 0.01, "clip_norm": 1, "batch_size": 16, "schedule": "cosine", "warmup_steps": 3, "seed": 11})");
  json["epochs"] = epochs;
  json["accumulation"] = accumulation;
  return train_config_of(json, "tiny");
}

// The tensors' bytes, by name.
std::map<std::string, std::string> tensors_in(const std::filesystem::path& file) {
  const SafetensorsFile stored(file);
  std::map<std::string, std::string> tensors;
  for (const TensorInfo& info : stored.tensors()) {
    const auto bytes = stored.bytes(info);
    tensors[info.name] = {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  return tensors;
}

// What a training comes to that nobody looks at.
test::Path train_plainly(const TrainConfig& config, const std::filesystem::path& data,
                         const std::filesystem::path& out, bool resume = false) {
  const auto set = open_dataset(data, Split::train, dataset_options(config));
  TrainingRun run(*test::test_device().pipelines, config, *set, {.out = out, .resume = resume});
  REQUIRE(run.run({}, std::atomic<bool>(false)));
  return out;
}

// A session, and the means to wait for it.
struct Watched {
  test::Bell bell;
  TrainingSession session{*test::test_device().pipelines, [this] { bell.ring(); }};

  std::shared_ptr<const TrainingState> wait_for(const std::function<bool(const TrainingState&)>& there) {
    std::shared_ptr<const TrainingState> state;
    bell.wait([&] {
      state = session.state();
      return there(*state) || state->stage == TrainingStage::failed;
    });
    INFO(state->error);
    REQUIRE(there(*state));
    return state;
  }
  std::shared_ptr<const TrainingState> wait_for(TrainingStage stage) {
    return wait_for([&](const TrainingState& state) { return state.stage == stage; });
  }
  void save(const std::filesystem::path& folder) {
    session.save(folder);
    bell.wait([&] { return !session.busy(); });
  }
};

}  // namespace

TEST_CASE("a training that was to be in f16 and is in f32 says so") {
  const Quarters data;
  TrainConfig config = tiny_config(1);
  for (const Precision precision : {Precision::f32, Precision::f16}) {
    config.precision = precision;
    Watched watched;
    watched.session.start({.config = config, .data = data.folder.path()});
    const auto state = watched.wait_for(TrainingStage::finished);
    // Products of so few numbers are worth no matrix unit on any device.
    CHECK((state->remark.find("it is in f32") != std::string::npos) == (precision == Precision::f16));
  }
}

TEST_CASE("a training that is watched, tested, paused and saved has the bytes of one that is not") {
  const Quarters data;
  for (const uint64_t accumulation : {1u, 3u}) {
    const test::TemporaryFolder folder;
    const TrainConfig config = tiny_config(3, accumulation);
    const auto plain = train_plainly(config, data.folder.path(), folder / "plain");

    Watched watched;
    CHECK_FALSE(watched.session.busy());
    watched.session.start(
        {.config = config, .data = data.folder.path(), .step_limit = 13, .test_every = 4, .test_batches = 2});
    const auto first = watched.wait_for(TrainingStage::paused);
    CHECK_FALSE(watched.session.busy());
    CHECK(first->step >= 13);
    CHECK(first->step < 13 + accumulation);
    CHECK(first->step == first->losses.back().last);
    watched.save(folder / "half");
    CHECK(watched.session.state()->save_error.empty());
    CHECK(watched.session.state()->saved == folder / "half");
    CHECK(watched.session.state()->saved_step == first->step);
    // The model in the middle can be opened, and isn't the one at the end.
    CHECK(open_model({.model = folder / "half"}).config == config.model);
    CHECK_FALSE(tensors_in(folder / "half" / "model.safetensors") == tensors_in(plain / "model.safetensors"));

    // Paused a few times more, wherever that is.
    for (int pauses = 0; pauses < 4; ++pauses) {
      watched.session.resume();
      watched.session.pause();
      watched.bell.wait([&] { return !watched.session.busy(); });
    }
    watched.session.resume();
    const auto last = watched.wait_for(TrainingStage::finished);
    CHECK(last->step == last->steps);
    CHECK(last->reports.size() == 3);
    watched.save(folder / "watched");
    CHECK(tensors_in(folder / "watched" / "model.safetensors") == tensors_in(plain / "model.safetensors"));
    CHECK(tensors_in(folder / "watched" / "checkpoint.safetensors") ==
          tensors_in(plain / "checkpoint.safetensors"));
    CHECK(test::read_whole_file(folder / "watched" / "config.json") ==
          test::read_whole_file(plain / "config.json"));

    // What was saved in the middle goes on in another session, with the settings that lie beside it.
    const TrainConfig saved = read_train_config(settings_in(folder / "half"));
    CHECK(saved == config);
    const auto half = tensors_in(checkpoint_in(folder / "half"));
    Watched again;
    const uint64_t limit = first->step + accumulation;
    again.session.start(
        {.config = saved, .from = folder / "half", .data = data.folder.path(), .step_limit = limit});
    CHECK(again.wait_for(TrainingStage::paused)->step == limit);
    again.session.resume();
    const auto end = again.wait_for(TrainingStage::finished);
    CHECK(end->step == last->step);
    CHECK(end->losses.front().first == first->step + 1);
    CHECK(end->tests.front().step == first->step);
    again.save(folder / "again");
    CHECK(tensors_in(folder / "again" / "model.safetensors") == tensors_in(plain / "model.safetensors"));
    CHECK(tensors_in(checkpoint_in(folder / "again")) == tensors_in(checkpoint_in(plain)));
    // Nothing was written to where it came from.
    CHECK(tensors_in(checkpoint_in(folder / "half")) == half);

    // So does what a training without the app left when it was stopped.
    std::atomic<bool> stop(false);
    const auto set = open_dataset(data.folder.path(), Split::train, dataset_options(config));
    TrainingRun stopped(*test::test_device().pipelines, config, *set, {.out = folder / "stopped"});
    CHECK_FALSE(stopped.run({.between = [&] { stop = true; }}, stop));
    again.session.start({.config = read_train_config(settings_in(folder / "stopped")),
                         .from = folder / "stopped",
                         .data = data.folder.path()});
    again.wait_for(TrainingStage::finished);
    again.save(folder / "finished");
    CHECK(tensors_in(folder / "finished" / "model.safetensors") == tensors_in(plain / "model.safetensors"));

    // One that ends before it was saved leaves none, and what isn't a training's stays.
    TrainingRun ended(*test::test_device().pipelines, config, *set, {.out = folder / "ended"});
    CHECK_THROWS_AS(ended.run({.between = [] { throw std::runtime_error("enough"); }}, false),
                    std::runtime_error);
    CHECK_FALSE(std::filesystem::exists(settings_in(folder / "ended")));
    std::filesystem::create_directory(folder / "own");
    const std::string own = folder.file("own/training.json", "{}");
    CHECK_THROWS_AS(ended.save_to(folder / "own"), Error);
    CHECK(test::read_whole_file(own) == "{}");

    // And the app's goes on without it.
    const auto resumed = train_plainly(saved, data.folder.path(), folder / "half", true);
    CHECK(tensors_in(resumed / "model.safetensors") == tensors_in(plain / "model.safetensors"));
  }
  test::require_no_validation_messages();
}

TEST_CASE("what a session tells makes sense") {
  const Quarters data;
  Watched watched;
  CHECK(watched.session.state()->stage == TrainingStage::none);
  const TrainConfig config = tiny_config(12);
  watched.session.start({.config = config, .data = data.folder.path(), .test_every = 20, .test_batches = 2});
  std::set<TrainingStage> stages;
  uint64_t step = 0;
  const auto last = watched.wait_for([&](const TrainingState& state) {
    stages.insert(state.stage);
    CHECK(state.step >= step);
    step = state.step;
    return state.stage == TrainingStage::finished;
  });
  CHECK(stages.contains(TrainingStage::training));
  CHECK_FALSE(stages.contains(TrainingStage::failed));
  CHECK(last->training_samples == 210);
  CHECK(last->test_samples == 61);
  CHECK(last->steps == 12 * 14);
  CHECK(last->step == last->steps);
  CHECK(last->epochs == 12);
  CHECK(last->images_per_second > 0);
  CHECK(last->seconds_left == 0);
  CHECK(last->class_names[3] == "lower right");
  CHECK(last->can_save);

  // Every batch is in the curve, which falls.
  REQUIRE(last->losses.size() == last->steps);
  for (uint64_t i = 0; i < last->steps; ++i) CHECK(last->losses[i].first == i + 1);
  const auto mean = [&](size_t from, size_t count) {
    double sum = 0;
    for (size_t i = from; i < from + count; ++i) sum += last->losses[i].mean;
    return sum / static_cast<double>(count);
  };
  CHECK(mean(0, 14) > 1.0);
  CHECK(mean(last->steps - 14, 14) < 0.5 * mean(0, 14));
  REQUIRE(last->reports.size() == 12);
  CHECK(std::abs(last->reports[3].loss - mean(3 * 14, 14)) < 1e-9);

  // Before the first step, on the way, and at the end on all.
  REQUIRE(last->tests.size() >= 3);
  CHECK(last->tests.front().step == 0);
  CHECK(last->tests[1].step == 20);
  CHECK(last->tests[1].samples == 32);
  CHECK(last->tests.front().accuracy < 0.6);
  CHECK(last->tests.back().step == last->steps);
  CHECK(last->tests.back().samples == 61);
  CHECK(last->tests.back().accuracy > 0.95);
  CHECK(last->tests.back().loss < last->tests.front().loss);

  REQUIRE(last->samples.size() == TrainingSession::shown_samples);
  size_t right = 0;
  for (size_t i = 0; i < last->samples.size(); ++i) {
    const SamplePrediction& sample = last->samples[i];
    CHECK(sample.label == i % 4);
    right += sample.predicted == sample.label;
    CHECK(sample.probability > 0.25);
    CHECK(sample.probability <= 1);
    REQUIRE(sample.pixels->size() == 64);
    // The quarter that the label names is bright.
    CHECK((*sample.pixels)[(sample.label >= 2 ? 5 : 2) * 8 + (sample.label % 2 == 1 ? 5 : 2)] >= 150);
  }
  CHECK(right >= 15);
  test::require_no_validation_messages();
}

TEST_CASE("a training that was closed is none any more, and the next one starts") {
  const Quarters data;
  const test::TemporaryFolder folder;
  Watched watched;
  const uint64_t allocations = test::test_device().device->allocations();
  for (int i = 0; i < 2; ++i) {
    watched.session.start({.config = tiny_config(1), .data = data.folder.path()});
    watched.wait_for(TrainingStage::finished);
    watched.session.close();
    CHECK(watched.session.state()->stage == TrainingStage::none);
    CHECK_FALSE(watched.session.busy());
    watched.session.save(folder / "model");
    CHECK_FALSE(watched.session.busy());
  }
  while (test::test_device().device->allocations() > allocations)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  CHECK(folder.names().empty());
}

TEST_CASE("a session ends at any moment, and gives all memory back") {
  const Quarters data;
  test::TestDevice& device = test::test_device();
  const MemoryStatistics before = device.device->memory();
  const uint64_t allocations = device.device->allocations();
  const test::TemporaryFolder folder;
  for (uint32_t i = 0; i < 20; ++i) {
    const uint32_t moment = RandomStream{3, 3}.block(i)[0];
    Watched watched;
    watched.session.start(
        {.config = tiny_config(50, 1 + i % 2), .data = data.folder.path(), .test_every = 3});
    if (i % 5 == 4) watched.wait_for(TrainingStage::training);
    std::this_thread::sleep_for(std::chrono::milliseconds(moment % 400));
    if (i % 4 == 1) watched.session.pause();
    if (i % 4 == 2) watched.session.save(folder / ("saved " + std::to_string(i)));
    if (i % 4 == 3) watched.session.stop();
    if (i % 8 == 3) watched.bell.wait([&] { return !watched.session.busy(); });
    if (i % 8 == 5) watched.session.start({.config = tiny_config(2), .data = data.folder.path()});
    if (i % 8 == 6) watched.session.close();
  }
  const MemoryStatistics after = device.device->memory();
  CHECK(after.device.bytes == before.device.bytes);
  CHECK(after.host.bytes == before.host.bytes);
  CHECK(device.device->allocations() == allocations);
  // What was saved is whole, and nothing lies beside it.
  for (const std::string& name : folder.names()) {
    INFO(name);
    CHECK(name.starts_with("saved "));
    CHECK(open_model({.model = folder / name}).config.classes == 4);
  }
  test::require_no_validation_messages();
}

TEST_CASE("a training may be let go while its steps are compiled") {
  const Quarters data;
  test::TestDevice& device = test::test_device();
  const TrainConfig config = tiny_config(1, 2);
  const auto set = open_dataset(data.folder.path(), Split::train, dataset_options(config));
  // None of its pipelines is there.
  PipelineStore pipelines(*device.device);
  const uint64_t before = device.device->allocations();
  int interruptions = 0;
  for (bool made = false; !made;) {
    REQUIRE(interruptions < 10'000);
    int asked = 0;
    try {
      const TrainingRun run(pipelines, config, *set, {.preparing = [&](double share) {
                              CHECK(share >= 0);
                              CHECK(share < 1);
                              return ++asked <= interruptions;
                            }});
      made = true;
    } catch (const Interrupted&) {
      ++interruptions;
    }
    CHECK(device.device->allocations() == before);
  }
  CHECK(interruptions > 0);

  {
    PipelineStore others(*device.device);
    test::Bell bell;
    std::atomic<bool> started = false;
    bool told_to_stop = false;  // the training's thread's
    TrainingSession session(others, [&] {
      // It compiles nothing before this returns.
      started.wait(false);
      if (!told_to_stop && session.state()->stage == TrainingStage::compiling) {
        session.stop();
        told_to_stop = true;
      }
      bell.ring();
    });
    session.start({.config = config, .data = data.folder.path()});
    started = true;
    started.notify_all();
    bell.wait([&] { return !session.busy(); });
    const auto state = session.state();
    CHECK(state->stage == TrainingStage::stopped);
    CHECK(state->error.empty());
    CHECK_FALSE(state->can_save);
    CHECK(state->epoch == 0);  // known as soon as there are steps
  }
  CHECK(device.device->allocations() == before);
  test::require_no_validation_messages();
}

TEST_CASE("what goes wrong is said in one sentence, and the next training starts") {
  const Quarters data;
  const test::TemporaryFolder folder;
  Watched watched;
  const auto fails_with = [&](TrainingRequest request) {
    watched.session.start(std::move(request));
    std::shared_ptr<const TrainingState> state;
    watched.bell.wait([&] {
      state = watched.session.state();
      return state->stage == TrainingStage::failed && !watched.session.busy();
    });
    CHECK_FALSE(state->can_save);
    CHECK(state->error.find('\n') == std::string::npos);
    return state->error;
  };
  CHECK(fails_with({.config = tiny_config(1), .data = folder / "nothing"}).find("nothing") !=
        std::string::npos);
  TrainConfig other = tiny_config(1);
  other.model.image_height = other.model.image_width = 12;
  CHECK(fails_with({.config = other, .data = data.folder.path()}).find("12 x 12") != std::string::npos);
  CHECK(fails_with({.config = tiny_config(1), .from = folder / "no run", .data = data.folder.path()})
            .find("no run") != std::string::npos);
  CHECK(fails_with({.config = tiny_config(1)}).find("4 classes") != std::string::npos);

  watched.session.save(folder / "model");
  watched.bell.wait([&] { return !watched.session.busy(); });
  CHECK_FALSE(watched.session.state()->save_error.empty());

  // A save that fails ends no training.
  folder.file("letter.txt", "mine");
  watched.session.start({.config = tiny_config(3), .data = data.folder.path(), .step_limit = 2});
  watched.wait_for(TrainingStage::paused);
  watched.save(folder.path());
  CHECK(watched.session.state()->save_error.find("letter.txt") != std::string::npos);
  CHECK(watched.session.state()->saved.empty());
  watched.session.resume();
  watched.wait_for(TrainingStage::finished);
  CHECK(folder.names() == std::vector<std::string>{"letter.txt"});
  // Stopped, and saved afterwards.
  watched.session.start({.config = tiny_config(500), .data = data.folder.path()});
  watched.wait_for([](const TrainingState& state) { return state.step > 3; });
  watched.session.stop();
  const auto stopped = watched.wait_for(TrainingStage::stopped);
  CHECK(stopped->step == stopped->losses.back().last);
  watched.save(folder / "model");
  CHECK(watched.session.state()->saved_step == stopped->step);
  CHECK(open_model({.model = folder / "model"}).labels[1] == "upper right");
  test::require_no_validation_messages();
}

TEST_CASE("digits are drawn once, and no half of them is left") {
  const test::TemporaryFolder cache;
  test::system_fonts();  // skips without them
  TrainConfig config = read_train_config(source / "configs" / "mnist-myvit.json");
  config.batch_size = 32;
  config.epochs = 1;
  const TrainingRequest request{.config = config,
                                .digits = {.train = 600, .test = 100, .seed = 4},
                                .cache = cache.path(),
                                .step_limit = 2};
  {
    // So many that they are not done before they are stopped.
    const test::TemporaryFolder other;
    TrainingRequest many = request;
    many.digits.train = 1'000'000;
    many.cache = other.path();
    Watched watched;
    watched.session.start(many);
    watched.wait_for([](const TrainingState& state) { return state.share_done > 0; });
    watched.session.stop();
    CHECK(watched.wait_for(TrainingStage::stopped)->training_samples == 0);
    const auto left = std::filesystem::recursive_directory_iterator(other.path());
    CHECK(std::none_of(begin(left), end(left), [](const auto& entry) { return entry.is_regular_file(); }));
  }
  const auto trained = [&] {
    Watched watched;
    watched.session.start(request);
    return watched.wait_for(TrainingStage::paused);
  };
  const auto first = trained();
  CHECK(first->training_samples == 600);
  CHECK(first->test_samples == 100);
  REQUIRE(cache.names().size() == 1);
  const auto file = cache.path() / cache.names().front() / "train-images-idx3-ubyte";
  const auto written = std::filesystem::last_write_time(file);
  const auto second = trained();
  CHECK(std::filesystem::last_write_time(file) == written);
  CHECK(*second->samples[5].pixels == *first->samples[5].pixels);
  CHECK(second->losses[1].mean == first->losses[1].mean);
  test::require_no_validation_messages();
}

TEST_CASE("a training and a reader share the device, and each comes to what it comes to alone") {
  const Quarters data;
  const test::TemporaryFolder folder;
  const TrainConfig config = tiny_config(6);
  const auto plain = train_plainly(config, data.folder.path(), folder / "plain");
  // Pipelines are compiled by both at the same time.
  PipelineStore pipelines(*test::test_device().device);
  test::Bell bell;
  {
    TrainingSession session(pipelines, [&] { bell.ring(); });
    DigitReader reader(pipelines, source / "assets" / "digits", [&] { bell.ring(); });
    session.start({.config = config, .data = data.folder.path(), .test_every = 2});
    std::map<uint32_t, std::vector<float>> answers;
    DigitCanvas canvas;
    uint64_t questions = 0;
    while (session.busy() || questions < 20) {
      for (const test::HandShape& shape : test::hand_shapes()) {
        if (!shape.plain) continue;
        canvas.clear();
        for (const Stroke& stroke : test::written(shape, {})) canvas.add_stroke(stroke.points);
        reader.ask(canvas);
        bell.wait([&] { return !reader.busy(); });
        REQUIRE_FALSE(reader.error().has_value());
        const DigitAnswer answer = *reader.answer();
        const auto best = std::ranges::max_element(answer.probabilities) - answer.probabilities.begin();
        CHECK(static_cast<uint32_t>(best) == shape.digit);
        ++questions;
      }
    }
    CHECK(session.state()->stage == TrainingStage::finished);
    session.save(folder / "shared");
    bell.wait([&] { return !session.busy(); });
  }
  CHECK(tensors_in(folder / "shared" / "model.safetensors") == tensors_in(plain / "model.safetensors"));
  test::require_no_validation_messages();
}

// Not a test: how long the device's queue belongs to a training at a time. Prints it for the configurations
// that the app offers.
TEST_CASE("measure submissions", "[.measure]") {
  const test::TemporaryFolder cache;
  for (const char* name : {"digits.json", "mnist-myvit.json"}) {
    const TrainConfig config = read_train_config(source / "configs" / name);
    const auto folder = drawn_digits(cache.path(), {.train = 128 * 12, .test = 10}, [](double) {});
    const auto data = open_dataset(folder, Split::train, dataset_options(config));
    using Clock = std::chrono::steady_clock;
    std::vector<double> milliseconds;
    Clock::time_point before;
    const auto since = [&] {
      const Clock::time_point now = Clock::now();
      const double passed =
          std::chrono::duration<double, std::milli>(now - std::exchange(before, now)).count();
      return passed;
    };
    TrainingRun run(*test::test_device().pipelines, config, *data,
                    {.plan = {.slice_seconds = 0.01}, .go_on = [&] {
                       milliseconds.push_back(since());
                       return true;
                     }});
    std::atomic<bool> stop = false;
    uint64_t steps = 0;
    double all = 0;
    before = Clock::now();
    Clock::time_point start = before;
    REQUIRE_FALSE(run.run({.between =
                               [&] {
                                 stop = ++steps == 12;
                                 since();
                               }},
                          stop));
    all = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
    std::ranges::sort(milliseconds);
    std::printf("%s: %u slices a step, %.0f ms a step", name, run.trainer().step_plan().slice_count,
                all / static_cast<double>(steps));
    if (!milliseconds.empty()) {
      std::printf("; a slice: median %.1f ms, longest %.1f ms", milliseconds[milliseconds.size() / 2],
                  milliseconds.back());
    }
    std::printf("\n");
  }
}
