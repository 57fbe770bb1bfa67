// What people do to windows, and files that are not what they seem: the app goes on.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <filesystem>

#include "tests/desktop_app/desktop.h"

namespace vitrine {
namespace {

using Catch::Matchers::ContainsSubstring;

const std::string classify_four = "\nwait\nexpect answer 4\n";

}  // namespace

TEST_CASE("the window may be resized and minimised at any time") {
  test::Desktop desktop;
  std::string script = "open " + desktop.word(test::assets() / "samples/4.png") + "\nview attention\n";
  for (const std::string size : {"1024 640", "1600 1000", "700 500", "400 300", "1 1", "1280 3", "1280 800"})
    script += "resize " + size + "\nframes 4\n";
  script +=
      "minimise\nframes 10\nnext\nlayer 0\nframes 10\nrestore\nframes 10\nwait\nexpect answer 4\nshot "
      "$/after.png\n";
  // In the middle of work.
  script +=
      "model vit_tiny_patch16_224\nframes 2\nresize 900 700\nframes 2\nminimise\nframes 5\nrestore\n"
      "resize 1280 800\nwait\nexpect errors 0\n";
  desktop.play(script);
}

TEST_CASE("fifty files may be dropped at once, and each is there") {
  test::Desktop desktop;
  std::string dropped;
  for (int i = 0; i < 50; ++i) {
    const std::string name = "many-" + std::to_string(i) + ".png";
    std::filesystem::copy_file(test::assets() / "samples" / (std::to_string(i % 10) + ".png"),
                               desktop / name);
    dropped += " $/" + name;
  }
  std::string script = "drop" + dropped + "\nwait\nexpect pictures 50\nexpect answer 0\n";
  for (int i = 1; i < 50; ++i) script += "next\n";
  // None of the pictures before was waited for.
  script += "wait\nexpect answer 9\nshot $/many.png\nexpect errors 0\n";
  // Again, while the first ones are looked at.
  script +=
      "drop" + dropped + "\ndrop" + dropped + "\nframes 2\ndrop" + dropped + "\nwait\nexpect pictures 50\n";
  desktop.play(script);
}

TEST_CASE("files that are no pictures are a sentence in the window, and the app goes on") {
  test::Desktop desktop;
  std::string bytes = test::read_whole_file(test::assets() / "samples/3.png");
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 0x55);
  const test::TemporaryFolder folder;
  const auto broken = folder.file("broken.png", bytes), text = folder.file("text.jpg", "no picture");
  const auto empty = folder.file("empty.webp", "");
  std::filesystem::create_directory(folder / "nothing");
  std::string script;
  int errors = 0;
  for (const auto& path : {broken, text, empty, folder / "missing.png", folder / "nothing"}) {
    script += "open " + desktop.word(path) + "\nwait\nexpect errors >= " + std::to_string(++errors) +
              "\nexpect error contains " + path.filename().string() + "\n";
  }
  script += "open " + desktop.word(test::assets() / "samples/4.png") + classify_four;
  desktop.play(script);
}

TEST_CASE("models that can't be read are a sentence in the window, and the one chosen next works") {
  test::Desktop desktop;
  const test::TemporaryFolder folder;
  const std::string weights = test::read_whole_file(test::assets() / "digits/model.safetensors");
  std::filesystem::create_directory(folder / "cut");
  std::filesystem::copy_file(test::assets() / "digits/config.json", folder / "cut/config.json");
  folder.file("cut/model.safetensors", weights.substr(0, weights.size() / 2));
  std::filesystem::create_directory(folder / "empty");
  const auto text = folder.file("text.safetensors", "no model at all");
  std::string script =
      "open " + desktop.word(test::assets() / "samples/4.png") + "\nview attention" + classify_four;
  for (const std::filesystem::path& path : {folder / "cut", folder / "empty", text}) {
    script += "model " + desktop.word(path) +
              "\nwait\nexpect errors >= 1\nlayer 1\nhead 1\ntoken class\nnext\nwait\n";
  }
  script += "model digits" + classify_four;
  desktop.play(script);
}

TEST_CASE("model and device may be changed twenty times, at any moment") {
  test::Desktop desktop;
  const std::string models[] = {"digits", desktop.word(test::fixture("hf_vit")),
                                desktop.word(test::fixture("hf_siglip_classifier"))};
  std::string script = "open " + desktop.word(test::assets() / "samples/4.png") + "\nview attention\n";
  for (int i = 0; i < 20; ++i) {
    script += "model " + models[i % 3] + "\n";
    // Some are waited for, some only just begin.
    if (i % 4 == 0) script += "wait\n";
    if (i % 4 == 1) script += "frames 3\nlayer 0\n";
  }
  script += "model digits" + classify_four;
  for (int i = 0; i < 20; ++i) {
    script += "device 0\n";
    if (i % 4 == 0) script += "wait\n";
    if (i % 4 == 1) script += "frames 3\nview rollout\n";
    if (i % 4 == 2) script += "view draw\nstroke 0.5 0.2 0.5 0.8\nframes 2\nview attention\n";
  }
  script +=
      "wait\nexpect answer 4\nexpect errors 0\nview rollout\nwait\nview features\nwait\nshot $/end.png\n";
  desktop.play(script);
}

TEST_CASE("work in the background may be cancelled, and is done when it is asked for again") {
  test::Desktop desktop;
  std::string script =
      "open " + desktop.word(test::picture("jpeg_403x301.jpg")) + "\nmodel vit_tiny_patch16_224\n";
  // At different moments of opening, looking and mapping.
  for (int i = 0; i < 12; ++i)
    script += "frames " + std::to_string(3 * i + 1) + "\ncancel\nwait\nmodel vit_tiny_patch16_224\n";
  script +=
      "wait\nview attention\nlayer 3\ncancel\nlayer 4\ncancel\nwait\nlayer 5\nview rollout\ncancel\nwait\n"
      "view features\ncancel\nwait\nview profile\ncancel\nwait\nview attention\nlayer 6\nwait\n"
      "expect dispatches 1\nexpect layer 6\n"
      // For who chooses the view again, what was cancelled comes.
      "view rollout\nframes 2\ncancel\nwait\nview rollout\nwait\nexpect dispatches 1\n"
      // What the device holds of a picture is gone when it begins to look at another.
      "open-folder " +
      desktop.word(test::assets() / "samples") +
      "\nwait\nexpect picture contains 0.png\nnext\ncancel\nwait\n" +
      "expect picture != " + desktop.word(test::assets() / "samples/0.png") +
      // And the last one that was asked for is what is shown.
      "\nmodel digits\nopen " + desktop.word(test::assets() / "samples/4.png") + classify_four +
      "expect errors 0\n";
  desktop.play(script);
}

}  // namespace vitrine
