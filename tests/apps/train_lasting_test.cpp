// What a training loses to numbers that aren't finite, to being killed and to growing longer: nothing.

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string_view>

#include "model/files/safetensors.h"
#include "tests/apps/train_setting.h"
#include "tests/support/command.h"
#include "tests/support/test_device.h"

namespace vitrine {
namespace {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::WithinRel;
using test::lines_of, test::train_through_kills, test::TrainSetting;
namespace fs = std::filesystem;

bool all_finite(const fs::path& file) {
  const SafetensorsFile stored(file);
  size_t numbers = 0;
  for (const TensorInfo& info : stored.tensors()) {
    for (const float value : stored.floats(info)) {
      if (!std::isfinite(value)) return false;
      ++numbers;
    }
  }
  return numbers > 0;
}

std::set<std::string> names_in(const fs::path& folder) {
  std::set<std::string> names;
  if (!fs::exists(folder)) return names;
  for (const auto& entry : fs::directory_iterator(folder)) {
    names.insert(entry.path().filename().string());
  }
  return names;
}

// log.csv without the column that time decides.
std::string without_speed(const fs::path& file) {
  std::istringstream lines(test::read_whole_file(file));
  std::string result;
  for (std::string line; std::getline(lines, line); result += '\n') {
    std::istringstream fields(line);
    std::string field;
    for (int column = 0; std::getline(fields, field, ','); ++column) {
      if (column != 6) result += field + ",";
    }
  }
  return result;
}

// The lengths and steps of all records: an Event's step lies behind its time.
std::string steps_of_events(const fs::path& file) {
  const std::string bytes = test::read_whole_file(file);
  std::string result;
  for (size_t at = 0; at < bytes.size();) {
    uint64_t length = 0;
    std::memcpy(&length, &bytes.at(at), sizeof length);
    REQUIRE(at + 16 + length <= bytes.size());
    const auto byte = [&](size_t i) {
      return std::to_string(static_cast<unsigned char>(bytes[at + 12 + i]));
    };
    result += std::to_string(length) + " " + byte(9) + " " + byte(10) + "\n";
    at += 16 + length;
  }
  return result;
}

}  // namespace

TEST_CASE("vitrine train leaves a poisoned batch out, counts it, and saves nothing of it") {
  test::test_device();
  // Black pictures, and a white pixel in one: divided by this deviation it is beyond f32.
  const TrainSetting setting(R"({"data": {"mean": [0], "std": [2.93e-39]}, "accumulation": 1})");
  for (const auto& [prefix, count] : {std::pair{"train", 100}, {"t10k", 50}}) {
    std::string pictures = test::big_endian(0x803) + test::big_endian(count) + test::big_endian(12) +
                           test::big_endian(12) + std::string(144 * static_cast<size_t>(count), '\0');
    std::string labels = test::big_endian(0x801) + test::big_endian(count);
    for (int i = 0; i < count; ++i) labels += static_cast<char>(i % 4);
    if (count == 100) pictures[16 + 144 * 41 + 78] = '\xff';
    setting.folder.file(std::string(prefix) + "-images-idx3-ubyte", pictures);
    setting.folder.file(std::string(prefix) + "-labels-idx1-ubyte", labels);
  }
  const auto result = setting.train("out");
  INFO(result.err);
  REQUIRE(result.status == 0);
  const auto lines = lines_of(result.out);
  REQUIRE(lines.size() == 4);
  for (size_t i = 0; i < 3; ++i) {
    CHECK(lines[i].at("skipped_steps") == 1);
    CHECK(lines[i].at("loss").is_number());
  }
  CHECK(lines[3].at("test_loss").is_number());
  CHECK(all_finite(setting.folder / "out/model.safetensors"));
  CHECK(all_finite(setting.folder / "out/checkpoint.safetensors"));
}

TEST_CASE("vitrine train stops where every update would be lost, and keeps what there was before") {
  test::test_device();
  const TrainSetting setting(
      R"({"lr": 1e25, "warmup_steps": 0, "max_skipped_steps": 4, "schedule": "constant"})");
  const auto result = setting.train("out");
  INFO(result.out << result.err);
  CHECK(result.status == 1);
  CHECK(std::ranges::count(result.err, '\n') == 1);
  CHECK_THAT(result.err, ContainsSubstring("4 updates in a row were not finite, up to update") &&
                             ContainsSubstring("max_skipped_steps"));
  CHECK(all_finite(setting.folder / "out/checkpoint.safetensors"));
  CHECK(!fs::exists(setting.folder / "out/model.safetensors"));
  // Going on comes to the same end, and how many may be lost is no matter of the numbers.
  const auto again = setting.train("out", {"--resume"});
  CHECK(again.status == 1);
  CHECK_THAT(again.err, ContainsSubstring("updates in a row were not finite"));
}

TEST_CASE("a training goes on with more epochs where the schedule lets it") {
  test::test_device();
  const TrainSetting constant(R"({"schedule": "constant"})");
  REQUIRE(constant.train("whole", {"--epochs", "4"}).status == 0);
  REQUIRE(constant.train("out", {"--epochs", "2"}).status == 0);
  const auto more = constant.train("out", {"--epochs", "4", "--resume"});
  INFO(more.err);
  REQUIRE(more.status == 0);
  CHECK(lines_of(more.out).size() == 3);
  CHECK(constant.model("out") == constant.model("whole"));
  // The settings are those that it ends with.
  CHECK(test::read_whole_file(constant.folder / "out/training.json") ==
        test::read_whole_file(constant.folder / "whole/training.json"));
  check_failure(constant.train("out", {"--epochs", "3", "--resume"}), 4,
                {"epochs is 4, expected 3", "4 of them are done"});

  // With a cosine the rates would have been others, but for those of the warmup.
  const TrainSetting cosine;
  REQUIRE(cosine.train("whole", {"--epochs", "2"}).status == 0);
  REQUIRE(cosine.train("out", {"--epochs", "1"}).status == 0);
  REQUIRE(cosine.train("out", {"--epochs", "2", "--resume"}).status == 0);
  CHECK(cosine.model("out") == cosine.model("whole"));
  check_failure(cosine.train("out", {"--epochs", "3", "--resume"}), 4,
                {"checkpoint.safetensors", "epochs is 2, expected 3", "cosine", "learning rates"});
}

// Written before checkpoints had a version, by `vitrine train` on the same pictures: two epochs of MyViT's
// kind.
TEST_CASE("a checkpoint of the first version is read to the bit, and gone on from") {
  test::test_device();
  const TrainSetting setting;
  const fs::path old = fs::path(VITRINE_TEST_DATA) / "train/checkpoint_version_1";
  fs::create_directory(setting.folder / "out");
  fs::copy_file(old / "checkpoint.safetensors", setting.folder / "out/checkpoint.safetensors");
  const auto train = [&](const std::string& out, const std::vector<std::string>& more) {
    std::vector<std::string> all{VITRINE_PROGRAM, "train",
                                 "--data",        setting.folder.path().string(),
                                 "--config",      (old / "config.json").string(),
                                 "--out",         setting.folder / out};
    all.insert(all.end(), more.begin(), more.end());
    return test::run_command(all);
  };
  // Nothing is left to do but to write the model.
  const auto done = train("out", {"--resume"});
  INFO(done.err);
  REQUIRE(done.status == 0);
  CHECK(setting.model("out") == test::read_whole_file(old / "model.safetensors"));
  const auto rest = train("out", {"--resume", "--epochs", "4"}), whole = train("whole", {"--epochs", "4"});
  INFO(rest.err);
  REQUIRE(rest.status == 0);
  REQUIRE(whole.status == 0);
  const auto lines = lines_of(rest.out), all = lines_of(whole.out);
  REQUIRE(lines.size() == 3);
  REQUIRE(all.size() == 5);
  // Its first two epochs ran on another driver.
  for (size_t i = 0; i < 2; ++i) {
    CHECK(lines[i].at("epoch") == i + 3);
    CHECK_THAT(lines[i].at("loss").get<double>(), WithinRel(all[i + 2].at("loss").get<double>(), 1e-4));
  }
  CHECK_THAT(test::read_whole_file(setting.folder / "out/checkpoint.safetensors").substr(0, 4000),
             ContainsSubstring(R"("version":"2")"));
  check_failure(train("out", {"--resume", "--epochs", "4", "--seed", "3"}), 4, {"seed is 0, expected 3"});
}

TEST_CASE("a checkpoint of a version to come is refused by its number") {
  test::test_device();
  const TrainSetting setting;
  REQUIRE(setting.train("out", {"--epochs", "1"}).status == 0);
  std::string whole = test::read_whole_file(setting.folder / "out/checkpoint.safetensors");
  const size_t at = whole.find(R"("version":"2")");
  REQUIRE(at != std::string::npos);
  whole[at + 11] = '3';
  setting.folder.file("out/checkpoint.safetensors", whole);
  check_failure(setting.train("out", {"--epochs", "1", "--resume"}), 4,
                {"checkpoint.safetensors", "version is 3", "at most 2"});
}

TEST_CASE(
    "a checkpoint that says more than a training can have done is refused, and counts nothing up to it") {
  test::test_device();
  const TrainSetting setting(R"({"schedule": "constant"})");
  REQUIRE(setting.train("out", {"--epochs", "1"}).status == 0);
  const std::string whole = test::read_whole_file(setting.folder / "out/checkpoint.safetensors");
  for (const auto& [key, value] :
       {std::pair{"updates", "4"}, {"passes", "7"}, {"epoch", "1"}, {"batch", "0"}}) {
    INFO(key);
    const std::string field = std::string("\"") + key + "\":\"", found = field + value + "\"";
    std::string changed = whole;
    const size_t at = changed.find(found);
    REQUIRE(at != std::string::npos);
    changed.replace(at, found.size(), field + "18446744073709551615\"");
    // The header's size goes before it.
    uint64_t size = 0;
    std::memcpy(&size, whole.data(), sizeof size);
    size += changed.size() - whole.size();
    std::memcpy(changed.data(), &size, sizeof size);
    setting.folder.file("out/checkpoint.safetensors", changed);
    for (const char* epochs : {"1", "4"}) {
      // What is lost with fewer epochs than are done is said in other words.
      const bool fewer = std::string_view(key) == "epoch" && std::string_view(epochs) == "4";
      check_failure(setting.train("out", {"--epochs", epochs, "--resume"}), 4,
                    {"checkpoint.safetensors", "18446744073709551615", fewer ? "are done" : "at most"});
    }
  }
}

TEST_CASE("validation changes nothing of a training, and leaves the best model and the last") {
  test::test_device();
  // A rate so high that later epochs are worse than one before.
  const TrainSetting setting(R"({"lr": 0.05, "epochs": 6})");
  const auto plain = setting.train("plain");
  REQUIRE(plain.status == 0);
  for (const auto& [every, label] : {std::pair{"epoch", "epochs"}, {"3", "steps"}}) {
    INFO(label);
    const auto result = setting.train(label, {"--validate-every", every});
    INFO(result.err);
    REQUIRE(result.status == 0);
    const fs::path out = setting.folder / label;
    CHECK(test::read_whole_file(out / "last/model.safetensors") == setting.model("plain"));
    CHECK(!fs::exists(out / "model.safetensors"));
    const auto lines = lines_of(result.out);
    const auto plain_lines = lines_of(plain.out);
    size_t epochs = 0, validations = 0;
    double best_accuracy = -1, best_loss = 0;
    for (const nlohmann::json& line : lines) {
      if (line.contains("epoch")) CHECK(line.at("loss") == plain_lines.at(epochs++).at("loss"));
      if (!line.contains("val_loss")) continue;
      ++validations;
      const double accuracy = line.at("val_accuracy"), loss = line.at("val_loss");
      CHECK(line.at("val_top5") == 1);  // of four classes
      const bool better = accuracy > best_accuracy || (accuracy == best_accuracy && loss < best_loss);
      CHECK(line.at("best") == better);
      if (better) {
        best_accuracy = accuracy;
        best_loss = loss;
      }
    }
    CHECK(epochs == 6);
    // 4 updates an epoch: 3, 6, ..., 24.
    CHECK(validations == (every == std::string("epoch") ? 6 : 8));
    // The last line is the best model's, and so is what the folder is read as.
    CHECK(lines.back().at("test_accuracy") == best_accuracy);
    CHECK_THAT(lines.back().at("test_loss").get<double>(), WithinRel(best_loss, 1e-6));
    for (const char* model : {"", "/best"}) {
      const auto eval = test::run_command({VITRINE_PROGRAM, "eval", "--data", setting.folder.path().string(),
                                           "--model", out.string() + model, "--dtype", "f32"});
      INFO(eval.err);
      REQUIRE(eval.status == 0);
      const auto said = nlohmann::json::parse(eval.out);
      CHECK(said.at("test_accuracy") == best_accuracy);
      CHECK_THAT(said.at("test_loss").get<double>(), WithinRel(best_loss, 1e-4));
    }
  }
}

TEST_CASE("a training that goes on without validation says what its folder is read as") {
  test::test_device();
  const TrainSetting setting(R"({"schedule": "constant"})");
  REQUIRE(setting.train("out", {"--validate-every", "epoch"}).status == 0);
  const std::string best = test::read_whole_file(setting.folder / "out/best/model.safetensors");
  const auto more = setting.train("out", {"--epochs", "5", "--resume"});
  INFO(more.err);
  REQUIRE(more.status == 0);
  CHECK_THAT(more.err, ContainsSubstring("read as the best model of the validations before") &&
                           ContainsSubstring(test::native("out/last")));
  CHECK(test::read_whole_file(setting.folder / "out/best/model.safetensors") == best);
  const auto eval = test::run_command({VITRINE_PROGRAM, "eval", "--data", setting.folder.path().string(),
                                       "--model", setting.folder / "out/last", "--dtype", "f32"});
  REQUIRE(eval.status == 0);
  CHECK_THAT(lines_of(more.out).back().at("test_loss").get<double>(),
             WithinRel(nlohmann::json::parse(eval.out).at("test_loss").get<double>(), 1e-4));
  // Another training's best would be taken for this one's.
  for (const char* file : {"checkpoint.safetensors", "training.json"})
    fs::remove(setting.folder / "out" / file);
  check_failure(setting.train("out"), 2, {test::native("out/best"), "another folder"});
}

TEST_CASE("a folder with val and test is validated on the one and tested on the other") {
  test::test_device();
  const TrainSetting setting;
  const fs::path data = fs::path(VITRINE_TEST_DATA) / "images/pictures";
  REQUIRE(fs::exists(data));
  fs::path picture;
  for (const auto& entry : fs::directory_iterator(data)) {
    if (entry.path().extension() == ".png") picture = entry.path();
  }
  REQUIRE(!picture.empty());
  for (const auto& [part, count] : {std::pair{"train", 4}, {"val", 1}, {"test", 2}}) {
    for (const char* name : {"a", "b", "c", "d"}) {
      const fs::path folder = setting.folder.path() / "pictures" / part / name;
      fs::create_directories(folder);
      for (int i = 0; i < count; ++i) fs::copy_file(picture, folder / (std::to_string(i) + ".png"));
    }
  }
  // A broken picture is found in the part that is looked at.
  const auto train = [&](const std::string& out, const std::vector<std::string>& more) {
    std::vector<std::string> all{VITRINE_PROGRAM, "train",
                                 "--data",        (setting.folder / "pictures").string(),
                                 "--config",      setting.config,
                                 "--out",         setting.folder / out,
                                 "--epochs",      "1"};
    all.insert(all.end(), more.begin(), more.end());
    return test::run_command(all);
  };
  setting.folder.file("pictures/val/a/0.png", "broken");
  CHECK(train("one", {}).status == 0);
  const auto validated = train("two", {"--validate-every", "epoch"});
  CHECK(validated.status == 4);
  CHECK_THAT(validated.err, ContainsSubstring(test::native("val/a/0.png")));
}

TEST_CASE("vitrine train leaves a log of every update and every validation") {
  test::test_device();
  const TrainSetting setting(R"({"epochs": 2})");
  const auto result = setting.train("out", {"--validate-every", "epoch"});
  REQUIRE(result.status == 0);
  const auto said = lines_of(result.out);
  std::istringstream lines(test::read_whole_file(setting.folder / "out/log.csv"));
  std::vector<std::vector<std::string>> rows;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line + ",");
    std::vector<std::string>& row = rows.emplace_back();
    for (std::string field; std::getline(fields, field, ',');) row.push_back(field);
    REQUIRE(row.size() == 11);
  }
  REQUIRE(rows.size() == 1 + 2 * (4 + 1));
  CHECK(rows[0][0] == "step");
  // Four updates of the warmup: lr / 4 and so on. Three groups of 32 samples and one of 4.
  double loss = 0;
  for (size_t i = 0; i < 4; ++i) {
    CHECK(rows[1 + i][0] == std::to_string(i + 1));
    CHECK(rows[1 + i][1] == "1");
    loss += std::stod(rows[1 + i][2]) * (i < 3 ? 2 : 1) / 7;
    CHECK_THAT(std::stod(rows[1 + i][3]), WithinRel(0.01 * static_cast<double>(i + 1) / 4, 1e-12));
    CHECK(std::stod(rows[1 + i][4]) > 0);
    CHECK(rows[1 + i][5] == "0");
    CHECK(rows[1 + i][7].empty());
  }
  CHECK_THAT(loss, WithinRel(said[0].at("loss").get<double>(), 1e-6));
  CHECK(rows[5][0] == "4");
  CHECK(std::stod(rows[5][7]) == said[0].at("val_loss"));
  CHECK(std::stod(rows[5][8]) == said[0].at("val_accuracy"));
  CHECK(rows[5][10] == "1");
  CHECK(rows[10][0] == "8");
  CHECK(!fs::exists(setting.folder / "out/events.out.tfevents.0.vitrine"));
  // A log that is another's is nobody's to shorten.
  fs::create_directory(setting.folder / "other");
  setting.folder.file("other/log.csv", "mine\n");
  check_failure(setting.train("other"), 2, {"log.csv", "another folder"});
  CHECK(test::read_whole_file(setting.folder / "other/log.csv") == "mine\n");
}

TEST_CASE("a training ends early where it gets no better") {
  test::test_device();
  // Nothing is learnt at a rate of 0, so that the first validation stays the best.
  const TrainSetting setting(R"({"lr": 0, "epochs": 50, "validate_every": "epoch", "patience": 3})");
  const auto result = setting.train("out");
  INFO(result.err);
  REQUIRE(result.status == 0);
  CHECK(lines_of(result.out).size() == 4 + 1);
  CHECK_THAT(result.err, ContainsSubstring("ended after 16 updates: no better validation in 3"));
  // It stays ended, and goes on where it is told to be more patient.
  const auto again = setting.train("out", {"--resume"});
  CHECK(again.status == 0);
  CHECK(lines_of(again.out).size() == 1);
  const auto more = setting.train("out", {"--resume", "--patience", "5"});
  CHECK(lines_of(more.out).size() == 2 + 1);
  check_failure(setting.train("none", {"--validate-every", "0"}), 4, {"patience", "validate_every"});
  check_failure(setting.train("none", {"--validate-every", "often"}), 2,
                {"--validate-every", "often", "epoch"});
}

TEST_CASE("the last checkpoints are kept, and any of them is one to go on from") {
  test::test_device();
  const TrainSetting setting(R"({"epochs": 5, "tensorboard": true})");
  REQUIRE(setting.train("whole").status == 0);
  CHECK(!fs::exists(setting.folder / "whole/checkpoints"));
  REQUIRE(setting.train("out", {"--keep", "3"}).status == 0);
  const fs::path kept = setting.folder / "out/checkpoints";
  CHECK(names_in(kept) == std::set<std::string>{"epoch-000003.safetensors", "epoch-000004.safetensors",
                                                "epoch-000005.safetensors"});
  // The newest is the checkpoint itself, with bytes of its own: what is copied over that leaves it alone.
  const std::string newest = test::read_whole_file(kept / "epoch-000005.safetensors");
  CHECK(newest == test::read_whole_file(setting.folder / "out/checkpoint.safetensors"));
  fs::copy_file(kept / "epoch-000003.safetensors", setting.folder / "out/checkpoint.safetensors",
                fs::copy_options::overwrite_existing);
  CHECK(newest == test::read_whole_file(kept / "epoch-000005.safetensors"));
  const auto rest = setting.train("out", {"--keep", "2", "--resume"});
  INFO(rest.err);
  REQUIRE(rest.status == 0);
  CHECK(lines_of(rest.out).size() == 3);
  CHECK(setting.model("out") == setting.model("whole"));
  // Of the two epochs that were trained twice the log tells once.
  const auto logs = [&](const std::string& out) {
    return without_speed(setting.folder / (out + "/log.csv")) +
           steps_of_events(setting.folder / (out + "/events.out.tfevents.0.vitrine"));
  };
  CHECK(logs("out") == logs("whole"));
  CHECK(names_in(kept) == std::set<std::string>{"epoch-000004.safetensors", "epoch-000005.safetensors"});
  // Whoever doesn't ask for them again loses none.
  REQUIRE(setting.train("out", {"--resume"}).status == 0);
  CHECK(names_in(kept).size() == 2);
  check_failure(setting.train("none", {"--keep", "0"}), 4, {"keep is 0"});
}

TEST_CASE("training with validation that is killed at any moment comes to the same files") {
  test::test_device();
  const TrainSetting setting(
      R"({"lr": 0.05, "epochs": 5, "validate_every": 3, "keep": 2, "tensorboard": true})");
  REQUIRE(setting.train("whole").status == 0);
  const auto files = [&](const std::string& out) {
    const fs::path folder = setting.folder / out;
    return std::vector<std::string>{test::read_whole_file(folder / "best/model.safetensors"),
                                    test::read_whole_file(folder / "best/config.json"),
                                    test::read_whole_file(folder / "last/model.safetensors"),
                                    test::read_whole_file(folder / "last/preprocessor_config.json"),
                                    without_speed(folder / "log.csv"),
                                    steps_of_events(folder / "events.out.tfevents.0.vitrine")};
  };
  const std::vector<std::string> wanted = files("whole");
  CHECK(std::ranges::count(wanted[4], '\n') == 1 + 20 + 7);
  CHECK(std::ranges::count(wanted[5], '\n') == 1 + 8 + 20 + 7);
  std::mt19937 random(11);
  int killed = 0;
  for (int training = 0; killed < 12; ++training) {
    const std::string out = "out" + std::to_string(training);
    train_through_kills(setting, out, random, killed, 12);
    CHECK(files(out) == wanted);
    CHECK(names_in(setting.folder / out) == names_in(setting.folder / "whole"));
    CHECK(names_in(setting.folder / (out + "/checkpoints")) ==
          names_in(setting.folder / "whole/checkpoints"));
    REQUIRE(training < 20);
  }
}

}  // namespace vitrine
