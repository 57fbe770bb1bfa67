// vitrine embed: what a model makes of pictures before it classifies them, as .npy.
#include <cstdio>
#include <nlohmann/json.hpp>

#include "apps/cli/commands.h"
#include "apps/cli/open_device.h"
#include "apps/cli/picture_stream.h"
#include "apps/cli/text_options.h"
#include "runtime/util/error.h"
#include "runtime/util/npy.h"
#include "runtime/util/text.h"

namespace vitrine::cli {
namespace {

struct EmbedFlags {
  StreamFlags stream;
  std::string out, text;
  bool tokens = false, json = false;
};

void print(const EmbedFlags& flags, const std::string& what, const std::vector<uint64_t>& shape,
           const char* of, const std::vector<std::string>& names) {
  if (flags.json) {
    nlohmann::ordered_json line;
    line["output"] = flags.out;
    line["what"] = what;
    line["shape"] = shape;
    line[of] = names;
    std::printf("%s\n", line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
  } else {
    std::printf("%s: %s %s\n", shown(flags.out).c_str(), what.c_str(), npy_shape(shape).c_str());
  }
  std::fflush(stdout);
}

// The vectors of a file's lines, which are those of pictures' neighbours.
void embed_texts(const EmbedFlags& flags, const CommonOptions& common) {
  if (!flags.stream.images.empty() || flags.tokens) {
    throw Error(ErrorCode::usage, "found --text with " + std::string(flags.tokens ? "--tokens" : "pictures") +
                                      ", expected texts alone");
  }
  if (flags.stream.model.model.empty()) {
    throw Error(ErrorCode::usage, "found --text without --model, expected a CLIP or SigLIP that reads it");
  }
  const std::vector<std::string> texts = lines_of(flags.text);
  if (texts.empty()) {
    throw Error(ErrorCode::bad_file, shown(flags.text) + ": found no line, expected a text on each");
  }
  const TextModel model = open_texts(flags.stream.model.model);
  const std::unique_ptr<Device> device = open_device(common);
  PipelineStore pipelines(*device);
  const std::vector<float> rows =
      TextRunner(pipelines, model, text_runner_options(flags.stream.model)).run(texts);
  const std::vector<uint64_t> shape{texts.size(), model.config.width};
  write_npy(flags.out, shape, rows);
  print(flags, "texts", shape, "texts", texts);
}

void embed(const EmbedFlags& flags, const CommonOptions& common) {
  if (!flags.text.empty()) {
    embed_texts(flags, common);
    return;
  }
  if (flags.stream.images.empty()) {
    throw Error(ErrorCode::usage, "found neither pictures nor --text, expected one of the two");
  }
  const Model model = open_picture_model(flags.stream.model, flags.stream.picture, common, true);
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
    print(flags, std::string(name_of(result)), shape, "images", images);
  }
  unreadable.report();
}

}  // namespace

void add_embed(CLI::App& app, const CommonOptions& common) {
  CLI::App* command = app.add_subcommand("embed", "Features of pictures, or of texts, as .npy");
  auto flags = std::make_shared<EmbedFlags>();
  add_stream_flags(*command, flags->stream);
  command->get_option("images")->required(false);
  command
      ->add_option("--text", flags->text,
                   "A file of texts, one a line, instead of pictures: for CLIP and SigLIP")
      ->type_name("FILE");
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
