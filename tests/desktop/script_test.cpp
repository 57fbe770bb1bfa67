// The desktop app's scripts: what is read, and what is said of what can't be.
#include "apps/desktop/script/script.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <set>

#include "images/color_map.h"
#include "runtime/util/error.h"
#include "tests/support/temporary_folder.h"

namespace vitrine::desktop {
namespace {

using Catch::Matchers::ContainsSubstring;
using Words = std::vector<std::string>;

// What is said of a text that is no script.
std::string refusal(std::string_view text) {
  try {
    parse_script(text, "demo.txt");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::usage);
    return error.what();
  }
  return "(nothing)";
}

}  // namespace

TEST_CASE("a script is read word by word") {
  const Script script = parse_script(
      "# a comment\n"
      "\n"
      "open \"a picture.png\"   # and another\r\n"
      "\tstroke 0.5 .25 1 -1e-1\n"
      "expect error \"\"\n"
      "open say\\\"\n"
      "open \"\\\"quoted\\\" \\\\ \\n\"\n"
      "open a#b\n"
      "close",
      "demo.txt");
  REQUIRE(script.actions.size() == 7);
  CHECK(script.name == "demo.txt");
  CHECK(script.actions[0].id == ActionId::open);
  CHECK(script.actions[0].words == Words{"a picture.png"});
  CHECK(script.actions[0].line == 3);
  CHECK(script.actions[1].id == ActionId::stroke);
  CHECK(script.actions[1].number(1) == 0.25);
  CHECK(script.actions[1].number(3) == -0.1);
  CHECK(script.actions[2].words == Words{"error", ""});
  CHECK(script.actions[3].words == Words{"say\\\""});
  CHECK(script.actions[4].words == Words{"\"quoted\" \\ \\n"});
  CHECK(script.actions[5].words == Words{"a#b"});
  CHECK(script.actions[6].id == ActionId::close);
  CHECK(script.actions[6].line == 9);
  CHECK(parse_script("", "empty").actions.empty());
}

TEST_CASE("every action of the table is found under its name, and takes what the table says") {
  std::set<std::string_view> names;
  for (const ActionKind& kind : action_kinds()) {
    if (kind.name.empty()) continue;  // for keys and buttons
    INFO(kind.name);
    CHECK(names.insert(kind.name).second);
    CHECK_THAT(script_help(), ContainsSubstring("\n" + std::string(kind.name)));
    // Too many words for all that can't be repeated.
    std::string line(kind.name);
    for (int i = 0; i < 21; ++i) line += " word";
    if (kind.id == ActionId::drop) {
      CHECK(parse_script(line, "demo.txt").actions.at(0).words.size() == 21);
    } else {
      CHECK_THAT(refusal(line), ContainsSubstring("demo.txt, line 1: found \"" + std::string(kind.name)));
    }
  }
  // One line for each form of each row.
  const auto script = parse_script(
      "open p\nopen-folder p\nnext\nprevious\nmodel m\ndevice 0\nview answers\nview train\nlayer 11\nhead 3\n"
      "head mean\ntoken 0 13\ntoken class\nopacity 0\nopacity 1\nopacity 0.5\ncolormap grey\npatch-grid off\n"
      "labels\nlabels \"a cat,a dog\"\ntemplate\ntemplate \"a {}\"\nwords\nwords cat\n"
      "exif on\n"
      "stroke 1 1\nstroke 0 0 1 1\nclear\nrun r\nclose-run r\ntrain c\ntrain c d\npause\nresume\nsave "
      "p\ncancel\nexport-png f\n"
      "export-csv f\ntheme light\nhelp on\nresize 1024 640\nminimise\nrestore\nwait\nwait 2.5\nframes 10\n"
      "train-steps 5\nshot f\nmouse 3 4\nmouse picture\nmouse picture 0.5 0.5\nclick 3 4\nclick next\n"
      "click next 0 0\ndrag 0 0 1 1\ndrag canvas 0 0 1 1 0 1\nkey ctrl+shift+s\nkey ?\nkey f1\ntype \"a b\"\n"
      "drop a b c\nexpect label 3\nexpect label contains 3\nexpect loss < 2\nuntil loss < 2\ndump label "
      "f\nclose\n",
      "all.txt");
  std::set<ActionId> seen;
  for (const Action& action : script.actions) seen.insert(action.id);
  CHECK(seen.size() == names.size());
  CHECK(script.actions.size() == 67);
}

TEST_CASE("the color maps of scripts are all that there are") {
  const auto kind = std::ranges::find(action_kinds(), ActionId::colormap, &ActionKind::id);
  std::string known;
  for (int i = 0; i < 3; ++i) known += (i ? "|" : "") + std::string(name_of(static_cast<ColorMap>(i)));
  CHECK(kind->takes == known);
}

TEST_CASE("what is no script is refused with its line, what was found and what was expected") {
  CHECK(refusal("next\n\nlayr 3") ==
        "demo.txt, line 3: found \"layr\", expected an action (--script-help lists them)");
  CHECK(refusal("layer three") ==
        "demo.txt, line 1: found \"layer three\", expected layer N, where N is a whole number from 0");
  CHECK(refusal("next 3") == "demo.txt, line 1: found \"next 3\", expected next with nothing behind it");
  CHECK(refusal("resize 0 640") ==
        "demo.txt, line 1: found \"resize 0 640\", expected resize W H, where W is a whole number from 1 to "
        "16384; H is a whole number from 1 to 16384");
  CHECK_THAT(refusal("open \"a"), ContainsSubstring("expected a quote that ends the word"));
  CHECK_THAT(refusal("open \"a\"b"), ContainsSubstring("expected a blank behind the word in quotes"));
  for (const std::string_view line : {"open",
                                      "open \"\"",
                                      "open a b",
                                      "\"\"",
                                      "device -1",
                                      "device 1.5",
                                      "device first",
                                      "view everything",
                                      "layer",
                                      "layer -1",
                                      "layer 1000000001",
                                      "layer 99999999999999999999",
                                      "head 1 2",
                                      "head max",
                                      "token 1",
                                      "token 1 2 3",
                                      "token mean",
                                      "opacity 1.01",
                                      "opacity -0.1",
                                      "opacity nan",
                                      "opacity inf",
                                      "opacity half",
                                      "colormap jet",
                                      "patch-grid yes",
                                      "stroke",
                                      "stroke 1",
                                      "stroke 1 2 3",
                                      "stroke a b",
                                      "train",
                                      "train a b c",
                                      "resize 100",
                                      "resize 20000 100",
                                      "resize 1.5 2",
                                      "wait long",
                                      "wait -1",
                                      "frames",
                                      "frames x",
                                      "mouse 3",
                                      "mouse 1 2 3",
                                      "mouse picture 1",
                                      "mouse picture a b",
                                      "click",
                                      "drag 1 2",
                                      "drag picture 1 2",
                                      "drag 1 2 3",
                                      "key",
                                      "key superkey",
                                      "key ctrl+",
                                      "key A",
                                      "key ctrl+ctrl",
                                      "drop",
                                      "expect label",
                                      "expect loss ~ 3",
                                      "expect a b c d",
                                      "dump label",
                                      "close now"}) {
    INFO(line);
    CHECK_THAT(refusal(line),
               ContainsSubstring("demo.txt, line 1: found ") && ContainsSubstring(", expected "));
  }
  // A hostile file doesn't write into the terminal.
  CHECK_THAT(refusal("\x1b[2J"), !ContainsSubstring("\x1b"));
}

TEST_CASE("a key is divided into what is held and what is struck") {
  const KeyChord chord = parse_key("ctrl+shift+left");
  CHECK(chord.modifiers == Words{"ctrl", "shift"});
  CHECK(chord.key == "left");
  CHECK(parse_key("+").key == "+");
  CHECK(parse_key("ctrl++").key == "+");
  CHECK(parse_key("ctrl++").modifiers == Words{"ctrl"});
}

TEST_CASE("a script's file that can't be read is named") {
  const test::TemporaryFolder folder;
  for (const auto& path : {folder / "none.txt", folder.path()}) {
    try {
      read_script(path);
      FAIL("it was read");
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::usage);
      CHECK(std::string(error.what()) == path.string() + ": can't be read, expected a script");
    }
  }
  const auto script = read_script(folder.file("some.txt", "next\nnext"));
  CHECK(script.actions.size() == 2);
  CHECK_THROWS_AS(read_script(folder.file("large.txt", std::string(2 << 20, ' '))), Error);
}

}  // namespace vitrine::desktop
