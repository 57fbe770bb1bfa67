// vitrine embed: what a model makes of pictures before it classifies them, as .npy.
#include <cstdio>
#include <nlohmann/json.hpp>

#include "apps/cli/commands.h"
#include "apps/cli/picture_stream.h"
#include "runtime/util/error.h"
#include "runtime/util/npy.h"
#include "runtime/util/text.h"

namespace vitrine::cli {
namespace {

struct EmbedFlags {
  StreamFlags stream;
  std::string out;
  bool tokens = false, json = false;
};

void embed(const EmbedFlags& flags, const CommonOptions& common) {
  const Model model = open_picture_model(flags.stream.model, flags.stream.picture, common);
  const ViTConfig& c = model.config;
  std::vector<float> rows;
  std::vector<std::string> images;
  const auto take = [&](const std::filesystem::path& image, std::span<const float> numbers) {
    rows.insert(rows.end(), numbers.begin(), numbers.end());
    images.push_back(image.string());
  };
  const Result result = flags.tokens ? Result::tokens : Result::features;
  const Unreadable unreadable = stream_pictures(flags.stream, common, model, result, take);
  if (!images.empty()) {
    std::vector<uint64_t> shape{images.size()};
    if (flags.tokens) shape.push_back(c.tokens());
    shape.push_back(rows.size() / images.size() / (flags.tokens ? c.tokens() : 1));
    write_npy(flags.out, shape, rows);
    if (flags.json) {
      nlohmann::ordered_json line;
      line["output"] = flags.out;
      line["what"] = name_of(result);
      line["shape"] = shape;
      line["images"] = images;
      std::printf("%s\n", line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
    } else {
      std::printf("%s: %s %s\n", shown(flags.out).c_str(), std::string(name_of(result)).c_str(),
                  npy_shape(shape).c_str());
    }
    std::fflush(stdout);
  }
  unreadable.report();
}

}  // namespace

void add_embed(CLI::App& app, const CommonOptions& common) {
  CLI::App* command = app.add_subcommand("embed", "Features of pictures, as .npy");
  auto flags = std::make_shared<EmbedFlags>();
  add_stream_flags(*command, flags->stream);
  command
      ->add_option(
          "--out", flags->out,
          "Where the float32 array goes: a row a picture, in order, without those that can't be read")
      ->required();
  command->add_flag("--tokens", flags->tokens, "All tokens instead of the vector that a classifier sees");
  command->add_flag("--json", flags->json, "Say what was written, of which pictures, as a JSON object");
  command->callback([&common, flags] { embed(*flags, common); });
}

}  // namespace vitrine::cli
