// What the desktop app says and shows of pictures, beside what the command line says of them.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <set>
#include <sstream>

#include "images/color_map.h"
#include "images/image.h"
#include "runtime/util/npy.h"
#include "tests/desktop_app/desktop.h"

namespace vitrine {
namespace {

using Catch::Matchers::ContainsSubstring;
using Json = nlohmann::json;

std::vector<Json> classify(const std::filesystem::path& pictures, const std::filesystem::path& model,
                           const std::vector<std::string>& more = {}) {
  std::vector<std::string> arguments{
      "classify", pictures.string(), "--model", model.string(), "--dtype", "f32", "--json", "--batch", "1"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const auto said = test::run_vitrine(arguments);
  INFO(said.err);
  REQUIRE(said.status == 0);
  std::istringstream lines(said.out);
  std::vector<Json> found;
  for (std::string line; std::getline(lines, line);) found.push_back(Json::parse(line));
  return found;
}

// The same classes in the same order with the same probabilities; who lists more has more to say.
void check_same_answers(const Json& shown, const Json& classified) {
  REQUIRE(shown.size() >= 1);
  for (size_t i = 0; i < std::min(shown.size(), classified.size()); ++i) {
    CHECK(shown[i].at("index") == classified[i].at("index"));
    CHECK(shown[i].at("label") == classified[i].at("label"));
    CHECK(std::abs(shown[i].at("probability").get<double>() - classified[i].at("probability").get<double>()) <
          1e-6);
  }
}

// [rows, columns] of `vitrine attention --raw`.
std::vector<float> attention(const test::Desktop& desktop, std::vector<std::string> arguments) {
  const std::string raw = desktop / "raw.npy";
  arguments.insert(arguments.begin(), "attention");
  arguments.insert(arguments.end(), {"--raw", raw, "--dtype", "f32"});
  const auto said = test::run_vitrine(arguments);
  INFO(said.err);
  REQUIRE(said.status == 0);
  return NpyFile(raw).values<float>();
}

struct Grid {
  size_t prefix = 0, rows = 0, columns = 0;
  size_t patches() const { return rows * columns; }
};

constexpr size_t pixels_a_patch = 9;

// At the patches' centers the map's pixels are the color map's colors of their weights, from the smallest one
// to the largest. Weights that were computed by other kernels may differ in their last bits, and a color then
// by one of 255.
void check_colors(std::string_view pixels, std::span<const float> weights, const Grid& grid, ColorMap map) {
  const size_t width = grid.columns * pixels_a_patch, height = grid.rows * pixels_a_patch;
  REQUIRE(pixels.size() == 4 * width * height);
  REQUIRE(weights.size() == grid.patches());
  const auto [low, high] = std::ranges::minmax(weights);
  REQUIRE(high > low);
  int worst = 0;
  std::set<Rgb> colors;
  for (size_t row = 0; row < grid.rows; ++row) {
    for (size_t column = 0; column < grid.columns; ++column) {
      const double weight = weights[row * grid.columns + column];
      const Rgb wanted = color_of(map, (weight - low) / (high - low));
      const size_t at = 4 * ((row * pixels_a_patch + pixels_a_patch / 2) * width + column * pixels_a_patch +
                             pixels_a_patch / 2);
      for (size_t i = 0; i < 3; ++i)
        worst = std::max(worst, std::abs(static_cast<uint8_t>(pixels[at + i]) - static_cast<int>(wanted[i])));
      colors.insert(wanted);
    }
  }
  CHECK(worst <= 1);
  CHECK(colors.size() > 3);
}

std::span<const float> patches_of(std::span<const float> row, const Grid& grid) {
  return row.subspan(grid.prefix, grid.patches());
}

}  // namespace

TEST_CASE("the desktop app says of every sample picture what vitrine classify says") {
  test::Desktop desktop;
  std::string script =
      "open-folder " + desktop.word(test::assets() / "samples") + "\nwait\nexpect pictures 10\n";
  for (int i = 0; i < 10; ++i)
    script +=
        "expect answer " + std::to_string(i) + "\ndump top $/top" + std::to_string(i) + "\nnext\nwait\n";
  script += "expect errors 0\n";
  desktop.play(script);
  const auto classified = classify(test::assets() / "samples", test::assets() / "digits");
  REQUIRE(classified.size() == 10);
  for (size_t i = 0; i < 10; ++i)
    check_same_answers(desktop.json("top" + std::to_string(i)), classified[i].at("top"));
}

TEST_CASE("the desktop app says of a photo what vitrine classify says, with other models") {
  test::Desktop desktop;
  const auto photo = test::picture("jpeg_403x301.jpg");
  const std::vector<std::string> models{"hf_vit", "hf_deit", "hf_siglip_classifier",
                                        "hf_dinov2_registers_classifier"};
  std::string script = "open " + desktop.word(photo) + "\nwait\n";
  for (const std::string& model : models)
    script +=
        "model " + desktop.word(test::fixture(model)) + "\nwait\nexpect errors 0\ndump top $/" + model + "\n";
  desktop.play(script);
  for (const std::string& model : models) {
    INFO(model);
    check_same_answers(desktop.json(model), classify(photo, test::fixture(model)).at(0).at("top"));
  }
}

TEST_CASE("a picture that a camera stored on its side is turned by a click, a script or an option") {
  test::Desktop desktop;
  const auto photo = test::picture("jpeg_exif_6.jpg");
  const auto digits = test::assets() / "digits";
  // The model's processor is one of transformers, whose pipelines turn it. Another device's model looks at it
  // as was asked.
  desktop.play(
      "open " + desktop.word(photo) + "\nwait\nexpect orientation 6\ndump top $/turned\nshot $/turned.png\n" +
      "click turn-by-exif\nwait\ndump top $/clicked\nshot $/stored.png\ndevice 0\nwait\n"
      "dump top $/device\nexif on\nwait\ndump top $/on\nopen " +
      desktop.word(test::picture("jpeg_exif_8.jpg")) +
      "\nwait\nexpect orientation 8\ndump top $/next\nopen " + desktop.word(test::picture("jpeg_224.jpg")) +
      "\nwait\nexpect orientation 1\nexpect errors 0\n");
  const Json turned = classify(photo, digits).at(0).at("top"),
             stored = classify(photo, digits, {"--no-exif"}).at(0).at("top");
  check_same_answers(desktop.json("turned"), turned);
  CHECK(desktop.json("on") == desktop.json("turned"));
  CHECK(desktop.json("clicked") != desktop.json("turned"));
  check_same_answers(desktop.json("clicked"), stored);
  check_same_answers(desktop.json("device"), stored);
  check_same_answers(desktop.json("next"),
                     classify(test::picture("jpeg_exif_8.jpg"), digits, {"--exif"}).at(0).at("top"));
  CHECK((decode_image(desktop / "stored.png").pixels != decode_image(desktop / "turned.png").pixels));

  desktop.play("open " + desktop.word(photo) + "\nwait\ndump top $/option\n", {"--exif"});
  check_same_answers(desktop.json("option"), turned);
}

TEST_CASE("labels and words that are typed are scored and sorted as vitrine classify and search do") {
  test::Desktop desktop;
  const auto clip = std::filesystem::path(VITRINE_TEST_DATA) / "parity" / "text" / "clip";
  const auto samples = test::assets() / "samples";
  // Letters are keys elsewhere: t is the theme, m the color map.
  desktop.play(
      "model " + desktop.word(clip) + "\nopen-folder " + desktop.word(samples) +
      "\nwait\nclick labels\ntype \"a cat,tm,dog\"\nwait\ndump scores $/labels\n"
      "view answers\nexport-csv $/scores.csv\nwait\nclick template\ntype \"a photo of {}\"\nwait\ndump "
      "scores $/template\nexpect theme dark\n"
      "click words\ntype \"a cat\"\nwait\ndump order $/order\nview words\nwait\nshot $/words.png\n"
      "dump map-pixels $/pixels\nexport-csv $/words.csv\nwait\nclick words\nkey end\nkey backspace\n"
      "wait\ndump order $/another\ndevice 0\nwait\ndump order $/device\ndump scores $/device_scores\n"
      "expect errors 0\n");
  const auto labels = classify(samples / "0.png", clip, {"--labels", "a cat,tm,dog"});
  check_same_answers(desktop.json("labels"), labels.at(0).at("top"));
  const auto said =
      classify(samples / "0.png", clip, {"--labels", "a cat,tm,dog", "--template", "a photo of {}"});
  check_same_answers(desktop.json("template"), said.at(0).at("top"));

  CHECK(std::ranges::count(desktop.written("scores.csv"), '\n') == 4);

  const std::string features = (desktop / "features.npy").string();
  const auto embedded = test::run_vitrine({"embed", samples.string(), "--model", clip.string(), "--dtype",
                                           "f32", "--batch", "1", "--json", "--out", features});
  REQUIRE(embedded.status == 0);
  const auto search = [&](const char* words) {
    const auto found = test::run_vitrine(
        {"search", words, "--model", clip.string(), "--in", features, "--top", "10", "--json"});
    REQUIRE(found.status == 0);
    std::istringstream lines(found.out);
    std::string names;
    for (std::string line; std::getline(lines, line);)
      names += std::to_string(Json::parse(line).at("row").get<int>()) + ".png\n";
    return names;
  };
  CHECK(desktop.written("order") == search("a cat"));
  CHECK(desktop.written("another") == search("a ca"));
  // What was typed is read by the same model on another device as well.
  CHECK(desktop.written("device") == desktop.written("another"));
  CHECK(desktop.written("device_scores") == desktop.written("template"));
  const std::string pixels = desktop.written("pixels");
  CHECK(pixels.size() == size_t{4} * 16 * pixels_a_patch * pixels_a_patch);
  CHECK(std::ranges::count(desktop.written("words.csv"), '\n') == 17);
}

TEST_CASE("the map that is shown is vitrine attention's weights in the map's colors") {
  struct Case {
    std::string name;
    std::filesystem::path model, picture;
    size_t layers, heads;
    Grid grid;
  };
  const auto photo = test::picture("jpeg_403x301.jpg");
  for (const Case& c :
       {Case{"digits", test::assets() / "digits", test::assets() / "samples/3.png", 4, 4, {1, 4, 4}},
        Case{"registers", test::fixture("hf_dinov2_registers_classifier"), photo, 0, 0, {}}}) {
    INFO(c.name);
    test::Desktop desktop;
    desktop.play("open " + desktop.word(c.picture) + "\nmodel " + desktop.word(c.model) +
                 "\nview attention\nwait\ndump layers $/layers\ndump heads $/heads\ndump grid $/grid\n"
                 "layer 1\nhead 1\ntoken class\nwait\ndump map-pixels $/class\n"
                 "token 1 2\ncolormap viridis\nhead mean\nwait\ndump map-pixels $/patch\n"
                 "view rollout\ntoken class\nwait\ndump map-pixels $/rollout\nexpect errors 0\n");
    Grid grid;
    std::istringstream(desktop.written("grid")) >> grid.prefix >> grid.rows >> grid.columns;
    const size_t heads = std::stoul(desktop.written("heads")), layers = std::stoul(desktop.written("layers"));
    if (c.layers > 0) {
      CHECK(layers == c.layers);
      CHECK(heads == c.heads);
      CHECK(grid.rows == c.grid.rows);
      CHECK(grid.columns == c.grid.columns);
      CHECK(grid.prefix == c.grid.prefix);
    }
    const size_t tokens = grid.prefix + grid.patches();
    const std::string map_bytes = desktop.written("class");
    const size_t one_map = map_bytes.size() / (heads + 1);
    const std::vector<std::string> model{c.picture.string(), "--model", c.model.string()};
    const auto with = [&](std::vector<std::string> more) {
      more.insert(more.begin(), model.begin(), model.end());
      return more;
    };

    const auto row = attention(desktop, with({"--layer", "1", "--token", "0"}));
    REQUIRE(row.size() == heads * tokens);
    for (size_t head = 0; head < heads; ++head)
      check_colors(std::string_view(map_bytes).substr(head * one_map, one_map),
                   patches_of(std::span(row).subspan(head * tokens, tokens), grid), grid, ColorMap::inferno);

    const std::string token = std::to_string(grid.prefix + grid.columns + 2);
    const auto mean = attention(desktop, with({"--layer", "1", "--head", "mean", "--token", token}));
    check_colors(std::string_view(desktop.written("patch")).substr(heads * one_map), patches_of(mean, grid),
                 grid, ColorMap::viridis);

    const auto rolled = attention(desktop, with({"--rollout", "--token", "0"}));
    check_colors(desktop.written("rollout"), patches_of(rolled, grid), grid, ColorMap::viridis);
  }
}

TEST_CASE("the map of attention pooling is shown behind the last layer") {
  test::Desktop desktop;
  const auto photo = test::picture("jpeg_403x301.jpg");
  desktop.play("open " + desktop.word(photo) + "\nmodel " + desktop.word(test::fixture("hf_siglip")) +
               "\nview attention\nwait\ndump layer $/layer\ndump layers $/layers\ndump heads $/heads\n"
               "dump grid $/grid\ndump map-pixels $/map\nexpect errors 0\n");
  Grid grid;
  std::istringstream(desktop.written("grid")) >> grid.prefix >> grid.rows >> grid.columns;
  CHECK(std::stoul(desktop.written("layer")) == std::stoul(desktop.written("layers")) - 1);
  const size_t heads = std::stoul(desktop.written("heads"));
  const auto weights =
      attention(desktop, {photo.string(), "--model", test::fixture("hf_siglip").string(), "--layer", "pool"});
  REQUIRE(weights.size() == heads * grid.patches());
  const std::string map = desktop.written("map");
  const size_t one_map = map.size() / (heads + 1);
  for (size_t head = 0; head < heads; ++head)
    check_colors(std::string_view(map).substr(head * one_map, one_map),
                 std::span(weights).subspan(head * grid.patches(), grid.patches()), grid, ColorMap::inferno);
}

TEST_CASE("another layer, head or patch is one dispatch, and the model doesn't run again") {
  test::Desktop desktop;
  std::string script = "open " + desktop.word(test::assets() / "samples/8.png") +
                       "\nview attention\nwait\ndump looks $/looks\n";
  for (const std::string choice :
       {"layer 0", "layer 1", "layer 2", "token 2 3", "token class", "colormap grey"})
    script += choice + "\nwait\nexpect dispatches 1\n";
  script += "head 2\nwait\nopacity 0.3\npatch-grid on\nwait\nexpect errors 0\ndump looks $/looks_after\n";
  desktop.play(script);
  CHECK(desktop.written("looks") == "1");
  CHECK(desktop.written("looks_after") == "1");
}

TEST_CASE("the mouse chooses a patch, and the keyboard what else there is") {
  test::Desktop desktop;
  desktop.play(
      "open-folder " + desktop.word(test::assets() / "samples") +
      "\nview attention\nwait\nlayer 1\nexpect token class\n"
      // Row 2, column 3 of 4 x 4 patches, behind the class token.
      "click picture 0.8 0.6\nwait\nexpect token 12\nclick picture 0.8 0.6\nwait\nexpect token class\n"
      "click picture 0.1 0.1\nwait\nexpect token 1\nkey escape\nexpect token class\n"
      "key up\nexpect layer 2\nkey down\nkey down\nkey down\nexpect layer 0\n"
      "key ]\nexpect head 0\nkey ]\nexpect head 1\nkey [\nkey [\nexpect head mean\n"
      "key right\nwait\nexpect answer 1\nkey right\nwait\nexpect answer 2\nkey left\nwait\nexpect answer 1\n"
      "key f2\nexpect view structure\nkey f5\nexpect view draw\nkey f1\nexpect view attention\n"
      "key 5\nexpect view features\nkey t\nexpect theme light\nkey t\nexpect theme dark\n"
      "expect errors 0\n");
}

TEST_CASE("every view shows something, in a window of every size and in both themes") {
  test::Desktop desktop;
  const std::vector<std::string> views{"answers",   "attention", "grid",   "rollout", "features",
                                       "structure", "profile",   "device", "draw",    "train"};
  std::string script = "open " + desktop.word(test::picture("jpeg_403x301.jpg")) + "\nmodel " +
                       desktop.word(test::fixture("hf_vit")) + "\nwait\n";
  for (const std::string& view : views) script += "view " + view + "\nwait\nshot $/" + view + ".png\n";
  script += "resize 1024 640\nframes 3\n";
  for (const std::string& view : views) script += "view " + view + "\nwait\nshot $/small_" + view + ".png\n";
  script +=
      "theme light\nview attention\nwait\nshot $/light.png\nhelp on\nframes 3\nshot $/help.png\nexpect "
      "errors 0\n";
  desktop.play(script, {"--size", "1280x800"});
  std::set<std::vector<uint8_t>> different;
  size_t pictures = 0;
  const auto check = [&](const std::string& name, uint32_t width, uint32_t height) {
    INFO(name);
    const Image image = decode_image(desktop / (name + ".png"));
    CHECK(image.width == width);
    CHECK(image.height == height);
    different.insert(image.pixels);
    ++pictures;
  };
  for (const std::string& view : views) check(view, 1280, 800);
  for (const std::string& view : views) check("small_" + view, 1024, 640);
  check("light", 1024, 640);
  check("help", 1024, 640);
  CHECK(different.size() == pictures);
}

TEST_CASE("what is exported is what is shown") {
  test::Desktop desktop;
  const auto three = test::assets() / "samples/3.png";
  desktop.play("open " + desktop.word(three) +
               "\nview answers\nwait\nexport-csv $/answers.csv\nwait\nview attention\nlayer 2\nwait\n"
               "export-csv $/map.csv\nwait\nexport-png $/map.png\nwait\nview structure\nwait\n"
               "export-csv $/structure.csv\nwait\nexpect errors 0\nexport-csv $/none/a.csv\nwait\n"
               "expect errors 1\nexpect error contains none/a.csv\n");
  CHECK_THAT(desktop.written("answers.csv"),
             ContainsSubstring("rank,index,label,probability\r\n") && ContainsSubstring("\r\n1,3,3,0."));
  CHECK_THAT(desktop.written("structure.csv"), ContainsSubstring("patch_embed"));
  CHECK(decode_image(desktop / "map.png").width > 100);
  // The map's numbers read back as vitrine attention's.
  const auto raw = attention(desktop, {three.string(), "--model", (test::assets() / "digits").string(),
                                       "--layer", "2", "--token", "0"});
  REQUIRE(raw.size() == 4 * 17);
  std::istringstream lines(desktop.written("map.csv"));
  std::string line;
  std::getline(lines, line);
  CHECK(line == "map,row,column,weight\r");
  for (size_t head = 0; head < 4; ++head) {
    for (size_t patch = 0; patch < 16; ++patch) {
      REQUIRE(std::getline(lines, line));
      const size_t comma = line.rfind(',');
      CHECK(std::abs(std::stof(line.substr(comma + 1)) - raw[head * 17 + 1 + patch]) < 1e-6);
    }
  }
}

}  // namespace vitrine
