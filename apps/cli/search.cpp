// vitrine search: which embedded pictures are most like a text or a picture.
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "apps/cli/commands.h"
#include "apps/cli/open_device.h"
#include "apps/cli/picture_stream.h"
#include "apps/cli/text_options.h"
#include "images/picture_files.h"
#include "model/run/top_answers.h"
#include "runtime/util/error.h"
#include "runtime/util/json.h"
#include "runtime/util/npy.h"
#include "runtime/util/paths.h"
#include "runtime/util/text.h"

namespace vitrine::cli {
namespace {

struct SearchFlags {
  ModelFlags model;
  PictureFlags picture;
  std::string query, in, names;
  uint64_t top = 5;
  bool json = false;
};

// The vector of what is looked for: of a picture where the query is the name of one, else of the text.
std::vector<float> query_vector(const SearchFlags& flags, const CommonOptions& common) {
  if (!path_exists(flags.query) || !begins_like_picture(flags.query)) {
    const TextModel text = open_texts(flags.model.model);
    const std::unique_ptr<Device> device = open_device(common);
    PipelineStore pipelines(*device);
    return TextRunner(pipelines, text, text_runner_options(flags.model)).run({flags.query});
  }
  StreamFlags stream;
  stream.model = flags.model;
  stream.picture = flags.picture;
  stream.images = {flags.query};
  const Model model = open_picture_model(stream.model, stream.picture, common, true);
  std::vector<float> vector;
  const auto take = [&](const std::filesystem::path&, std::span<const float> features) {
    vector.assign(features.begin(), features.end());
  };
  stream_pictures(stream, common, model, Result::features, take).report();
  return vector;
}

// What the rows are called: the line that vitrine embed --json printed, or nothing.
std::vector<std::string> names_of_rows(const std::string& path, uint64_t rows) {
  if (path.empty()) return {};
  const nlohmann::json json = read_json(path);
  const auto fail = [&](const std::string& found) {
    throw Error(ErrorCode::bad_file, shown(path) + ": found " + found +
                                         ", expected what vitrine embed --json printed: \"images\" of " +
                                         counted(rows, "name"));
  };
  if (!json.is_object()) fail("no object");
  const auto list = json.find(json.contains("texts") ? "texts" : "images");
  if (list == json.end() || !list->is_array()) fail("no list of names");
  if (list->size() != rows) fail(counted(list->size(), "name"));
  std::vector<std::string> names;
  for (const nlohmann::json& name : *list) {
    if (!name.is_string()) fail("a name that is no string");
    names.push_back(name.get<std::string>());
  }
  return names;
}

void search(const SearchFlags& flags, const CommonOptions& common) {
  const NpyFile file(flags.in);
  const std::vector<uint64_t>& shape = file.header().shape;
  if (shape.size() != 2 || shape[0] == 0) {
    throw Error(ErrorCode::bad_file, shown(flags.in) + ": found the shape " + npy_shape(shape) +
                                         ", expected (pictures, width) as vitrine embed writes it");
  }
  const std::vector<float> rows = file.values<float>();
  const std::vector<std::string> names = names_of_rows(flags.names, shape[0]);
  std::vector<float> query = query_vector(flags, common);
  if (query.size() != shape[1]) {
    throw Error(ErrorCode::bad_file, shown(flags.in) + ": found vectors of " + std::to_string(shape[1]) +
                                         " numbers, expected " + std::to_string(query.size()) +
                                         " as the model gives");
  }
  normalize(query);
  for (const TopAnswer& found : top_answers(cosines(rows, query), flags.top, Labels(names))) {
    if (flags.json) {
      nlohmann::ordered_json line;
      line["row"] = found.index;
      if (!names.empty()) line["name"] = names[found.index];
      line["similarity"] = found.probability;
      std::printf("%s\n", line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
    } else {
      const std::string name =
          names.empty() ? "row " + std::to_string(found.index) : shown(names[found.index]);
      std::printf("%7.4f  %s\n", static_cast<double>(found.probability), name.c_str());
    }
  }
}

}  // namespace

void add_search(CLI::App& app, const CommonOptions& common) {
  CLI::App* command =
      app.add_subcommand("search", "Which embedded pictures are most like a text or a picture");
  auto flags = std::make_shared<SearchFlags>();
  command->add_option("query", flags->query, "A text, or the name of a picture file")->required();
  command->add_option("--in", flags->in, "Features that vitrine embed wrote with the same model")
      ->required()
      ->type_name("NPY");
  add_text_model_flags(*command, flags->model);
  add_picture_flags(*command, flags->picture);
  command->add_option("--names", flags->names, "What vitrine embed --json printed, to name pictures by it")
      ->type_name("JSON");
  command->add_option("--top", flags->top, "How many to name")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 32))
      ->capture_default_str();
  command->add_flag("--json", flags->json, "A JSON object each, one a line");
  command->callback([&common, flags] { search(*flags, common); });
}

}  // namespace vitrine::cli
