// What a training writes is read back as the model that it was, whatever that is made of.
#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "model/files/parameter_values.h"
#include "model/files/weights.h"
#include "runtime/util/json.h"
#include "tests/support/temporary_folder.h"
#include "train/run/model_files.h"

using namespace vitrine;

namespace {

const std::filesystem::path fixtures = std::filesystem::path(VITRINE_TEST_DATA) / "parity" / "fixtures";

std::vector<float> values_of(Model& model, const Parameter& parameter) {
  std::vector<float> values(parameter.shape.elements());
  read_floats(*model.constants, parameter, values);
  return values;
}

}  // namespace

TEST_CASE("every kind of model is read back as it was written") {
  size_t read = 0;
  for (const auto& entry : std::filesystem::directory_iterator(fixtures)) {
    if (!entry.is_directory()) continue;
    INFO(entry.path());
    const nlohmann::json meta = read_json(entry.path() / "meta.json");
    const std::string file = meta.at("model");
    ModelOptions options{.model = file == "." ? entry.path() : entry.path() / file,
                         .set = meta.at("set").get<std::vector<std::string>>()};
    Model model = open_model(options);
    if (model.config.embedding_size) continue;  // a training drops the projection
    if (!model.preprocess_error.empty()) {      // and is told what its pictures become
      options.profile = "hf";
      model = open_model(options);
    }
    const test::TemporaryFolder folder;
    write_model_settings(folder.path(), model.config, model.preprocess, {});
    write_weights(folder.path(), model.config,
                  [&](const Parameter& parameter) { return values_of(model, parameter); });
    Model again = open_model({.model = folder.path()});
    CHECK(again.config.resolved() == model.config.resolved());
    for (const Parameter& parameter : parameters_of(model.config)) {
      INFO(parameter.name);
      CHECK(values_of(again, parameter) == values_of(model, parameter));
    }
    ++read;
  }
  CHECK(read > 60);
}
