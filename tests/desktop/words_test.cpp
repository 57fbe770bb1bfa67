// Labels, words and the folder sorted by them, without a window: against the runners that classify and embed.
#include "apps/desktop/words.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "model/files/model_pictures.h"
#include "model/run/picture_runner.h"
#include "model/text/text_runner.h"
#include "tests/desktop/windowless_app.h"
#include "tests/support/path.h"
#include "tests/support/temporary_folder.h"
#include "train/data/picture_dataset.h"

namespace vitrine::desktop {
namespace {

namespace fs = std::filesystem;
using Id = ActionId;

const test::Path data = test::Path(VITRINE_TEST_DATA);
const test::Path samples = data / ".." / "assets" / "samples";
const test::Path clip = data / "parity" / "text" / "clip", siglip = data / "parity" / "text" / "siglip",
                 siglip2 = data / "parity" / "text" / "siglip2";

// What the command line would say of a folder's pictures.
struct Expected {
  explicit Expected(const test::Path& folder)
      : model(open_model({.model = folder})), text(open_text_model_of(model)) {
    PipelineStore& pipelines = *test::test_device().pipelines;
    std::vector<fs::path> paths;
    for (const auto& entry : fs::directory_iterator(samples)) paths.push_back(entry.path());
    PictureRunner runner(pipelines, model, model.preprocess, {.result = Result::features, .batch = 1},
                         [&](uint64_t number, std::span<const float> values) {
                           features[paths[number].filename().string()] = {values.begin(), values.end()};
                         });
    for (const fs::path& path : paths)
      runner.add(picture_for(decode_image(path, decoding(model.preprocess)), model.config.channels),
                 path.string());
    runner.finish();
  }
  std::vector<float> vectors(const std::vector<std::string>& labels,
                             const std::vector<std::string>& templates = {}) const {
    TextRunner runner(*test::test_device().pipelines, text, {.batch = 1});
    return label_vectors(runner, labels, templates);
  }
  // Names, the most like these words first.
  std::vector<std::string> order(const std::string& words) const {
    const std::vector<float> vector = vectors({words});
    std::vector<std::pair<float, std::string>> scored;
    for (const auto& [name, values] : features) scored.emplace_back(-cosines(values, vector).front(), name);
    std::ranges::sort(scored);
    std::vector<std::string> names;
    for (const auto& [score, name] : scored) names.push_back(name);
    return names;
  }
  Model model;
  TextModel text;
  std::map<std::string, std::vector<float>> features;
};

struct App : test::WindowlessApp {
  explicit App(const test::Path& model) {
    actions.perform(Id::model, {model.string()});
    actions.perform(Id::open_folder, {samples.string()});
    run();
    REQUIRE(on_device->looking.seen());
  }
  Words& words() { return on_device->words; }
  void type(Id box, const std::string& text) {
    actions.perform(box, {text});
    run();
  }
  std::vector<std::string> listed() const {
    std::vector<std::string> names;
    for (size_t i = 0; i < library.size(); ++i) names.push_back(library.name(i));
    return names;
  }
};

void check_scores(const std::vector<TopAnswer>& found, const Expected& expected, const std::string& picture,
                  const std::vector<std::string>& labels, const std::vector<std::string>& templates) {
  const std::vector<float> logits =
      expected.text.logits(expected.features.at(picture), expected.vectors(labels, templates));
  const std::vector<TopAnswer> wanted =
      top_answers(expected.text.probabilities(logits), labels.size(), Labels(labels));
  REQUIRE(found.size() == wanted.size());
  for (size_t i = 0; i < found.size(); ++i) {
    CHECK(found[i].label == wanted[i].label);
    CHECK(found[i].probability == wanted[i].probability);
  }
}

}  // namespace

TEST_CASE("labels are scored as vitrine classify --labels does, with and without a template") {
  for (const test::Path& model : {clip, siglip, siglip2}) {
    INFO(model);
    const Expected expected(model);
    App app(model);
    REQUIRE(app.words().readable());
    CHECK(app.words().scores().empty());
    const std::string picture = app.on_device->looking.seen()->path.filename().string();
    app.type(Id::labels, "cat, dog ,,a ship");
    check_scores(app.words().scores(), expected, picture, {"cat", "dog", "a ship"}, {});
    app.type(Id::pattern, "a photo of a {}");
    check_scores(app.words().scores(), expected, picture, {"cat", "dog", "a ship"}, {"a photo of a {}"});
    // One that is being typed has no place for the label yet.
    app.type(Id::pattern, "a photo of a {");
    check_scores(app.words().scores(), expected, picture, {"cat", "dog", "a ship"}, {});
    app.actions.perform(Id::next);
    app.run();
    check_scores(app.words().scores(), expected, app.on_device->looking.seen()->path.filename().string(),
                 {"cat", "dog", "a ship"}, {});
    app.type(Id::labels, " , ");
    CHECK(app.words().scores().empty());
    CHECK(app.words().trouble().empty());
  }
  test::require_no_validation_messages();
}

TEST_CASE("words sort the folder, whose selected picture stays") {
  const Expected expected(clip);
  App app(clip);
  const std::vector<std::string> as_opened = app.listed();
  app.actions.perform(Id::select, {"4"});
  app.run();
  for (const std::string words : {"a cat", "seven of nine"}) {
    app.type(Id::words, words);
    CHECK(app.listed() == expected.order(words));
    CHECK(app.words().read() == as_opened.size());
    const size_t selected = app.library.selected().value();
    CHECK(app.library.name(selected) == as_opened[4]);
    CHECK(app.words().similarity(selected) ==
          cosines(expected.features.at(as_opened[4]), expected.vectors({words})).front());
    // What comes next is what stands next.
    const std::string after = app.library.name((selected + 1) % as_opened.size());
    if (app.library.next()) CHECK(app.library.name(app.library.selected().value()) == after);
    app.library.select(selected);
  }
  app.type(Id::words, "");
  CHECK(app.listed() == as_opened);
  CHECK(app.words().similarity(0) == std::nullopt);

  // Another model knows nothing of that, nor has a folder that is opened anew an order yet.
  app.type(Id::words, "a cat");
  app.type(Id::model, "digits");
  CHECK_FALSE(app.words().readable());
  CHECK(app.listed() == as_opened);
  app.type(Id::model, clip.string());
  CHECK(app.listed() == expected.order("a cat"));
  test::require_no_validation_messages();
}

TEST_CASE("a picture that can't be read comes last, and the others are sorted") {
  const test::TemporaryFolder folder;
  for (const char* name : {"1.png", "2.png"}) fs::copy(samples / name, folder.path() / name);
  folder.file("0.png", "no picture");
  App app(clip);
  app.type(Id::open_folder, folder.path().string());
  app.type(Id::words, "a cat");
  CHECK(app.library.name(2) == "0.png");
  CHECK(app.words().similarity(2) == std::nullopt);
  CHECK(app.words().read() == 3);
  CHECK_FALSE(app.desk.busy());
}

TEST_CASE("patches are shown as like the words as they are") {
  for (const test::Path& model : {clip, siglip, siglip2}) {
    INFO(model);
    App app(model);
    app.type(Id::view, "words");
    CHECK(app.on_device->looking.maps(View::words) == nullptr);
    app.type(Id::words, "a cat");
    const Looking::Maps* maps = app.on_device->looking.maps(View::words);
    REQUIRE(maps);
    const ViTConfig& c = *app.on_device->looking.config();
    REQUIRE(maps->numbers.size() == c.patches());
    CHECK(std::ranges::all_of(maps->numbers, [](float n) { return n >= -1.001f && n <= 1.001f; }));
    const std::vector<float> first = maps->numbers;
    // The extremes have the ends' colors, at the patches' centers.
    const std::vector<uint8_t> pixels = app.textures.read(*maps->texture);
    const size_t wide = c.grid_width() * heat_pixels;
    const auto color = [&](size_t patch) {
      const size_t y = patch / c.grid_width() * heat_pixels + heat_pixels / 2;
      const size_t x = patch % c.grid_width() * heat_pixels + heat_pixels / 2;
      return std::vector<uint8_t>(pixels.begin() + static_cast<std::ptrdiff_t>(4 * (y * wide + x)),
                                  pixels.begin() + static_cast<std::ptrdiff_t>(4 * (y * wide + x) + 3));
    };
    const auto rgb = [](Rgb one) { return std::vector<uint8_t>(one.begin(), one.end()); };
    const auto at = [&](auto found) { return static_cast<size_t>(found - first.begin()); };
    CHECK(color(at(std::ranges::min_element(first))) == rgb(color_of(ColorMap::inferno, 0)));
    CHECK(color(at(std::ranges::max_element(first))) == rgb(color_of(ColorMap::inferno, 1)));

    app.type(Id::words, "a very different ship");
    REQUIRE(app.on_device->looking.maps(View::words));
    CHECK(app.on_device->looking.maps(View::words)->numbers != first);
    // An attention map takes its place on the device, and gives it back.
    app.type(Id::view, "attention");
    app.type(Id::words, "a cat");
    app.type(Id::view, "words");
    CHECK(app.on_device->looking.maps(View::words)->numbers == first);
    app.type(Id::words, "");
    CHECK(app.on_device->looking.maps(View::words) == nullptr);
  }
  test::require_no_validation_messages();
}

TEST_CASE("a tokenizer that can't be read is said where words are typed") {
  const test::TemporaryFolder folder;
  for (const auto& entry : fs::directory_iterator(clip)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("tokenizer") && !name.starts_with("vocab"))
      fs::copy(entry.path(), folder.path() / name);
  }
  App app(folder.path());
  REQUIRE(app.words().readable());
  app.type(Id::labels, "cat,dog");
  CHECK_THAT(app.words().trouble(), Catch::Matchers::ContainsSubstring("tokenizer"));
  CHECK(app.words().scores().empty());
  CHECK_FALSE(app.desk.busy());
  app.type(Id::words, "cat");
  CHECK_FALSE(app.words().trouble().empty());
  CHECK(app.notices.errors().empty());
}

TEST_CASE("what was cancelled is read when something is typed again") {
  const Expected expected(clip);
  App app(clip);
  const std::vector<std::string> as_opened = app.listed();
  app.actions.perform(Id::words, {"a cat"});
  app.draw_frame();
  app.actions.perform(Id::cancel);
  app.run();
  CHECK(app.words().read() < as_opened.size());
  app.type(Id::words, "a cat ");
  CHECK(app.listed() == expected.order("a cat"));
}

}  // namespace vitrine::desktop
