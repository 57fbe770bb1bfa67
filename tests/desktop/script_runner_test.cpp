// What a script does to the app, frame by frame, with an app that only remembers.
#include "apps/desktop/script/script_runner.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <map>
#include <sstream>

#include "runtime/util/error.h"
#include "tests/support/temporary_folder.h"

namespace vitrine::desktop {
namespace {

using Catch::Matchers::ContainsSubstring;

class RememberingTarget : public ScriptTarget {
 public:
  void perform(const Action& action) override {
    if (action.id == ActionId::layer && action.whole(0) > 11)
      throw Error(ErrorCode::usage, "layer 12: the model has 12 layers, from 0");
    for (const ActionKind& kind : action_kinds()) {
      if (kind.id == action.id) note(std::string(kind.name));
    }
    for (const std::string& word : action.words) done.back() += " " + word;
    if (action.id == ActionId::open) work = 5;
  }
  bool idle() const override { return work == 0; }
  uint64_t training_steps() const override { return steps; }
  bool training() const override { return trains; }
  void capture(const std::filesystem::path& path) override {
    note("capture " + path.string());
    frames_to_capture = 3;
  }
  bool capturing() const override { return frames_to_capture > 0; }
  std::optional<ScriptArea> area(const std::string& name) const override {
    const auto found = areas.find(name);
    return found == areas.end() ? std::nullopt : std::optional(found->second);
  }
  void move_mouse(ScriptPoint point) override {
    std::ostringstream text;
    text << "move " << point.x << " " << point.y;
    note(text.str());
  }
  void press_mouse(bool down) override { note(down ? "press" : "release"); }
  void press_key(const std::string& name, bool down) override { note(name + (down ? " down" : " up")); }
  void type_text(const std::string& text) override { note("type " + text); }
  std::optional<std::string> value(const std::string& name) override {
    const auto found = values.find(name);
    return found == values.end() ? std::nullopt : std::optional(found->second);
  }

  // What happens in a frame behind the script.
  void draw() {
    ++frame;
    if (work > 0) --work;
    if (frames_to_capture > 0) --frames_to_capture;
    if (trains) ++steps;
  }
  void note(const std::string& what) {
    done.push_back(what);
    when.push_back(frame);
  }

  int frame = 0, work = 0, frames_to_capture = 0;
  bool trains = false;
  uint64_t steps = 100;
  std::vector<std::string> done;
  std::vector<int> when;
  std::map<std::string, ScriptArea> areas;
  std::map<std::string, std::string> values;
};

struct Run {
  RememberingTarget target;
  double seconds = 0;

  // The number of frames until the script is over.
  int run(std::string_view text, const std::function<void()>& every_frame = {}) {
    ScriptRunner runner(parse_script(text, "demo.txt"), target, [this] { return seconds; });
    int frames = 0;
    for (; !runner.finished(); ++frames) {
      REQUIRE(frames < 100'000);
      runner.step();
      target.draw();
      seconds += 1.0 / 60;
      if (every_frame) every_frame();
    }
    return frames;
  }
  std::string failure(std::string_view text, ErrorCode code = ErrorCode::failed,
                      const std::function<void()>& every_frame = {}) {
    try {
      run(text, every_frame);
    } catch (const Error& error) {
      CHECK(error.code() == code);
      return error.what();
    }
    return "(nothing)";
  }
};

using Notes = std::vector<std::string>;

}  // namespace

TEST_CASE("actions are performed one a frame, in their order") {
  Run run;
  CHECK(run.run("next\nlayer 3\nhead mean\ndrop a \"b c\"\n") == 4);
  CHECK(run.target.done == Notes{"next", "layer 3", "head mean", "drop a b c"});
  CHECK(run.target.when == std::vector<int>{0, 1, 2, 3});
  CHECK(Run().run("") == 0);
}

TEST_CASE("wait lasts until the background was idle for two frames") {
  Run run;
  run.run("open p\nwait\nnext");
  CHECK(run.target.done == Notes{"open p", "next"});
  // Busy from frame 0 to 4: idle is seen in frames 5 and 6.
  CHECK(run.target.when == std::vector<int>{0, 6});
}

TEST_CASE("work that begins after the frame in which waiting began is waited for") {
  Run run;
  run.run("next\nwait\nprevious", [&] {
    if (run.target.frame == 2) run.target.work = 10;
  });
  CHECK(run.target.when.at(1) >= 12);
}

TEST_CASE("frames, shots and training steps are waited for") {
  Run run;
  run.run("frames 10\nnext\nframes 0\nshot a.png\nprevious\n");
  CHECK(run.target.done == Notes{"next", "capture a.png", "previous"});
  CHECK(run.target.when == std::vector<int>{10, 11, 14});

  Run training;
  training.target.trains = true;
  training.run("train-steps 7\nsave d");
  CHECK(training.target.when == std::vector<int>{7});
}

TEST_CASE("a training that ends before its steps is a failure that says so") {
  Run run;
  run.target.trains = true;
  const std::string said = run.failure("train-steps 50", ErrorCode::failed, [&] {
    if (run.target.steps == 112) run.target.trains = false;
  });
  CHECK(said == "demo.txt, line 1: the training ended after 12 steps, expected 50");
}

TEST_CASE("a click is a move, a press and a release, each in a frame of its own") {
  Run run;
  run.run("click 30 40.5");
  CHECK(run.target.done == Notes{"move 30 40.5", "press", "release"});
  CHECK(run.target.when == std::vector<int>{1, 2, 3});
}

TEST_CASE("the mouse finds parts of the window by name") {
  Run run;
  run.target.areas["picture"] = {100, 200, 50, 80};
  run.run("mouse picture\nclick picture 0.5 0.25\ndrag picture 0 0 1 1 1 0");
  const Notes& done = run.target.done;
  CHECK(Notes(done.begin(), done.begin() + 6) ==
        Notes{"move 125 240", "move 125 220", "press", "release", "move 100 200", "press"});
  CHECK(Notes(done.begin() + 6, done.end()) == Notes{"move 112.5 220", "move 125 240", "move 137.5 260",
                                                     "move 150 280", "move 150 260", "move 150 240",
                                                     "move 150 220", "move 150 200", "release"});
}

TEST_CASE("a part of the window that appears later is waited for, and one that never does is named") {
  Run run;
  run.run("click late\nnext", [&] {
    if (run.target.frame == 20) run.target.areas["late"] = {0, 0, 10, 10};
  });
  CHECK(run.target.done == Notes{"move 5 5", "press", "release", "next"});
  CHECK(run.target.when.front() >= 20);
  CHECK(Run().failure("next\nclick never") ==
        "demo.txt, line 2: waited 5.0 seconds in vain for a part of the window with the name \"never\"");
}

TEST_CASE("a key is struck with what is held around it") {
  Run run;
  run.run("key ctrl+shift+s\ntype \"a b\"");
  CHECK(run.target.done ==
        Notes{"ctrl down", "shift down", "s down", "s up", "ctrl up", "shift up", "type a b"});
}

TEST_CASE("expect compares, and says what it found") {
  Run run;
  run.target.values = {{"label", "3"}, {"loss", "0.75"}, {"error", "no such file"}, {"empty", ""}};
  CHECK(
      run.failure("expect label 3\nexpect label != 8\nexpect loss < 1\nexpect loss <= 0.75\n"
                  "expect loss > 0.5\nexpect loss >= 0.75\nexpect error contains file\nexpect empty \"\"") ==
      "(nothing)");
  CHECK(run.failure("next\nexpect label 8") == "demo.txt, line 2: label is \"3\", expected \"8\"");
  CHECK(run.failure("expect loss > 1") == "demo.txt, line 1: loss is \"0.75\", expected > \"1\"");
  CHECK(run.failure("expect label != 3") == "demo.txt, line 1: label is \"3\", expected != \"3\"");
  CHECK(run.failure("expect error contains folder") ==
        "demo.txt, line 1: error is \"no such file\", expected contains \"folder\"");
  // What is no number is neither smaller nor larger.
  CHECK_THAT(run.failure("expect error < 5"), ContainsSubstring("expected < \"5\""));
  CHECK_THAT(run.failure("expect error > 5"), ContainsSubstring("expected > \"5\""));
  CHECK(run.failure("expect lable 3") ==
        "demo.txt, line 1: found \"lable\", expected a part of the app's state");
}

TEST_CASE("until waits for a value, and not for ever") {
  Run run;
  run.target.values["training"] = "training";
  run.run("until training paused\nnext", [&] {
    if (run.target.frame == 30) run.target.values["training"] = "paused";
  });
  CHECK(run.target.when == std::vector<int>{30});
  CHECK(run.failure("until training = finished") ==
        "demo.txt, line 1: waited 300 seconds in vain until training = finished");
  CHECK_THAT(run.failure("until lable 3"), ContainsSubstring("found \"lable\""));
}

TEST_CASE("dump writes a value's bytes") {
  const test::TemporaryFolder folder;
  Run run;
  run.target.values["heat"] = std::string("a\0b\n", 4);
  run.run("dump heat \"" + (folder / "heat.bin").string() + "\"");
  CHECK(test::read_whole_file(folder / "heat.bin") == std::string("a\0b\n", 4));
  CHECK_THAT(run.failure("dump heat \"" + (folder / "none/heat.bin").string() + "\""),
             ContainsSubstring("demo.txt, line 1: ") && ContainsSubstring(test::native("none/heat.bin")));
}

TEST_CASE("an action that can't be done ends the script with its line, once") {
  CHECK(Run().failure("next\nlayer 12", ErrorCode::usage) ==
        "demo.txt, line 2: layer 12: the model has 12 layers, from 0");
}

TEST_CASE("a script that never becomes idle is ended") {
  Run run;
  const std::string said =
      run.failure("open p\nwait\nclose", ErrorCode::failed, [&] { run.target.work = 5; });
  CHECK(said == "demo.txt, line 2: waited 300 seconds in vain until nothing runs in the background");
  CHECK(run.seconds > 299);
  Run shorter;
  CHECK_THAT(shorter.failure("open p\nwait 2.5", ErrorCode::failed, [&] { shorter.target.work = 5; }),
             ContainsSubstring("2.5 seconds"));
}

TEST_CASE("nothing follows close") {
  Run run;
  run.run("close\nnext\nexpect nothing here");
  CHECK(run.target.done == Notes{"close"});
}

}  // namespace vitrine::desktop
