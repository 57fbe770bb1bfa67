// vitrine digits: a data set of digits or letters, drawn with the system's fonts.
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "apps/cli/commands.h"
#include "apps/cli/progress.h"
#include "images/png_writer.h"
#include "runtime/util/error.h"
#include "runtime/util/paths.h"
#include "runtime/util/system.h"
#include "runtime/util/text.h"
#include "train/data/dataset.h"
#include "train/digits/digit_files.h"

namespace vitrine::cli {
namespace {

struct DigitsFlags {
  std::string out, format = "mnist";
  DigitSet set;
  std::optional<uint32_t> size;
  std::vector<std::string> fonts, test_fonts;
  uint32_t pictures = 0;
  bool seen_fonts = false, json = false;
};

// The first so many pictures of the test set as files that other commands take: "3-00017.png" is picture 17,
// a 3.
void write_pictures(const std::filesystem::path& folder, uint32_t count) {
  const auto data = open_dataset(folder, Split::test);
  const std::filesystem::path pictures = folder / "pictures";
  make_folders(pictures);
  const SampleShape& shape = data->shape();
  std::vector<uint8_t> planes(shape.bytes()), pixels(shape.bytes());
  for (uint32_t i = 0; i < count; ++i) {
    data->read(i, planes);
    for (size_t p = 0; p < pixels.size(); ++p)  // a data set has one color after the other
      pixels[p] = planes[p % shape.channels * shape.pixels() + p / shape.channels];
    char name[32];
    std::snprintf(name, sizeof name, "%u-%05u.png", data->label(i), i);
    write_png(pictures / name, shape.width, shape.height, shape.channels, pixels);
  }
}

std::set<std::string> families_of(const std::vector<FaceGroup>& groups) {
  std::set<std::string> families;
  for (const FaceGroup& group : groups) {
    for (const DigitFace& face : group.faces) families.insert(face.family);
  }
  return families;
}

size_t faces_in(const std::vector<FaceGroup>& groups) {
  size_t faces = 0;
  for (const FaceGroup& group : groups) faces += group.faces.size();
  return faces;
}

void print_fonts(const char* use, const std::vector<FaceGroup>& groups) {
  std::string list;
  for (const std::string& family : families_of(groups)) list += (list.empty() ? "" : ", ") + family;
  std::printf("%s fonts: %zu of %s\n", use, faces_in(groups), list.c_str());
}

void digits(const DigitsFlags& flags, const CommonOptions& common) {
  DigitSet set = flags.set;
  set.seed = common.seed;
  if (flags.format == "cifar10") set.format = DigitFormat::cifar10;
  if (flags.format == "folders") set.format = DigitFormat::folders;
  if (const uint32_t fixed = fixed_size(set.format)) set.size = fixed;
  set.size = flags.size.value_or(set.size);
  if (set.train == 0 && set.test == 0)
    throw Error(ErrorCode::usage, "found --train 0 and --test 0, expected some pictures");
  if (flags.pictures > 0 && set.format == DigitFormat::folders)
    throw Error(ErrorCode::usage, "--pictures was given, and --format folders writes all as pictures");
  if (flags.pictures > set.test) {
    throw Error(ErrorCode::usage, "--pictures is " + std::to_string(flags.pictures) +
                                      ", expected at most --test, " + std::to_string(set.test));
  }
  if (std::isnan(set.distortion))  // which no range leaves out
    throw Error(ErrorCode::usage, "found --distortion nan, expected a number from 0 to 1");
  std::vector<std::filesystem::path> places(flags.fonts.begin(), flags.fonts.end());
  for (const std::filesystem::path& place : places) {
    std::error_code ignored;
    if (!std::filesystem::exists(place, ignored))
      throw Error(ErrorCode::usage,
                  "--fonts: found no " + shown(place) + ", expected a font file or a folder of some");
  }
  if (places.empty()) places = system::font_folders();
  DigitFonts fonts = find_digit_fonts(places, flags.test_fonts, {}, set.characters);
  if (flags.seen_fonts) fonts.test = fonts.train;
  Progress progress("pictures", uint64_t{set.train} + set.test);
  write_digits(flags.out, fonts, set, [&](uint64_t done) { progress.show(done); });
  progress.clear();
  if (flags.pictures > 0) write_pictures(flags.out, flags.pictures);
  if (flags.json) {
    const nlohmann::ordered_json line{{"out", flags.out},
                                      {"format", flags.format},
                                      {"train", set.train},
                                      {"test", set.test},
                                      {"size", set.size},
                                      {"characters", set.characters.empty() ? "0123456789" : set.characters},
                                      {"seed", set.seed},
                                      {"tinted", set.tinted},
                                      {"distortion", set.distortion},
                                      {"font_files", fonts.files},
                                      {"skipped_faces", fonts.skipped},
                                      {"train_faces", faces_in(fonts.train)},
                                      {"test_faces", faces_in(fonts.test)},
                                      {"train_fonts", families_of(fonts.train)},
                                      {"test_fonts", families_of(fonts.test)}};
    std::printf("%s\n", line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
    return;
  }
  const bool folders = set.format == DigitFormat::folders;
  std::printf("%s: %u training and %u test pictures of %u x %u %s\n", shown(flags.out).c_str(), set.train,
              set.test, set.size, set.size, folders ? "to twice as many pixels" : "pixels");
  print_fonts("training", fonts.train);
  print_fonts("test", fonts.test);
}

}  // namespace

void add_digits(CLI::App& app, const CommonOptions& common) {
  CLI::App* command = app.add_subcommand(
      "digits", "A data set of digits or letters like MNIST or CIFAR-10, drawn with the system's fonts");
  auto flags = std::make_shared<DigitsFlags>();
  command->add_option("--out", flags->out, "Folder that the files go into")->required()->type_name("DIR");
  command->add_option("--train", flags->set.train, "Training pictures")->capture_default_str();
  command
      ->add_option("--test", flags->set.test,
                   "Test pictures, of fonts that no training picture is of (but see --seen-fonts)")
      ->capture_default_str();
  command
      ->add_option(
          "--format", flags->format,
          "mnist: white on black, as IDX files; cifar10: in colors, as CIFAR-10's binary files; folders: "
          "white on black, PNG files of many sizes in a folder for each class")
      ->check(CLI::IsMember({"mnist", "cifar10", "folders"}))
      ->capture_default_str();
  command
      ->add_option("--characters", flags->set.characters,
                   "Letters and digits that are drawn instead of the ten digits, each a class: ABCDEFGHIJ")
      ->type_name("TEXT");
  command->add_flag("--tinted", flags->set.tinted,
                    "The color of the paper tells the digit: learnt in minutes (--format cifar10)");
  command
      ->add_option(
          "--size", flags->size,
          "Pixels a side (28; CIFAR-10's are always 32); in folders the least, and up to twice as many")
      ->check(CLI::Range(16, 512));
  command
      ->add_option("--distortion", flags->set.distortion,
                   "How far pictures are from their font's plain digits, from 0 (not at all) to 1")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  command
      ->add_option("--pictures", flags->pictures,
                   "How many of the test pictures are written as PNG files, too")
      ->capture_default_str();
  command->add_option("--fonts", flags->fonts, "Font files, or folders of them, instead of the system's")
      ->type_name("PATH");
  command
      ->add_option(
          "--test-fonts", flags->test_fonts,
          "Beginnings of the families' names that the test set is drawn with, instead of every fourth")
      ->type_name("NAME");
  command->add_flag("--seen-fonts", flags->seen_fonts,
                    "Draw the test set with the training set's fonts; what was held back is left out");
  command->add_flag("--json", flags->json, "One line of JSON");
  command->callback([&common, flags] { digits(*flags, common); });
}

}  // namespace vitrine::cli
