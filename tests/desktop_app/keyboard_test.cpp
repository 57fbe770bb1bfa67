// Keys as Dear ImGui has them, and the actions that they perform.
#include "apps/desktop/keyboard.h"

#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <set>
#include <string>

#include "runtime/util/error.h"
#include "tests/desktop/windowless_app.h"

namespace vitrine::desktop {
namespace {

// An interface with nothing in it, whose keys are struck one a frame.
struct Keys {
  test::WindowlessApp app;

  Keys() {
    ImGui::CreateContext();
    ImGuiIO& io = ImGui::GetIO();
    io.IniFilename = nullptr;
    io.DisplaySize = {64, 48};
    unsigned char* pixels = nullptr;
    int width = 0, height = 0;
    io.Fonts->GetTexDataAsRGBA32(&pixels, &width, &height);
  }
  ~Keys() { ImGui::DestroyContext(); }
  Keys(const Keys&) = delete;
  Keys& operator=(const Keys&) = delete;

  void frame() {
    ImGui::NewFrame();
    perform_struck(app.actions, app.screen);
    ImGui::EndFrame();
  }
  void strike(const std::string& chord, char typed = 0) {
    const KeyChord parsed = parse_key(chord);
    for (const bool down : {true, false}) {
      ImGuiIO& io = ImGui::GetIO();
      for (const std::string& modifier : parsed.modifiers) io.AddKeyEvent(imgui_key(modifier), down);
      io.AddKeyEvent(imgui_key(parsed.key), down);
      if (down && typed) io.AddInputCharacter(static_cast<unsigned>(typed));
      // ImGui spreads events that came together over frames.
      for (int i = 0; i < 3; ++i) frame();
    }
  }
};

}  // namespace

TEST_CASE("every key with a name is one of Dear ImGui's, each another") {
  std::set<ImGuiKey> found;
  for (const KeyName& key : key_names()) {
    INFO(key.name);
    CHECK(found.insert(imgui_key(key.name)).second);
  }
  for (char sign = 'a'; sign <= 'z'; ++sign) CHECK(found.insert(imgui_key(std::string(1, sign))).second);
  for (char sign = '0'; sign <= '9'; ++sign) CHECK(found.insert(imgui_key(std::string(1, sign))).second);
  for (const char* modifier : {"ctrl", "shift", "alt"}) CHECK(found.insert(imgui_key(modifier)).second);
  CHECK(imgui_key("f12") == ImGuiKey_F12);
  CHECK_THROWS_AS(imgui_key("super"), Error);
}

TEST_CASE("keys perform the actions of the table, in the views where they are listened for") {
  Keys keys;
  test::WindowlessApp& app = keys.app;
  const auto& selection = app.desk.looking().selection();
  const auto seen = [&](const std::string& chord) {
    keys.strike(chord);
    return app.screen.view();
  };
  CHECK(seen("f2") == View::structure);
  CHECK(seen("f3") == View::profile);
  CHECK(seen("f4") == View::device);
  CHECK(seen("f6") == View::train);
  CHECK(seen("f7") == View::runs);
  CHECK(seen("5") == View::features);
  CHECK(seen("f5") == View::draw);

  // Without Ctrl, or where no picture is shown, nobody listens.
  app.actions.perform(ActionId::stroke, {"0.1", "0.1", "0.9", "0.9"});
  keys.strike("z");
  keys.strike("g");
  CHECK_FALSE(selection.patch_grid);
  CHECK_FALSE(app.desk.drawing().canvas.empty());
  keys.strike("ctrl+z");
  CHECK(app.desk.drawing().canvas.empty());
  CHECK(seen("f1") == View::features);
  app.actions.perform(ActionId::stroke, {"0.1", "0.1", "0.9", "0.9"});
  keys.strike("delete");
  CHECK_FALSE(app.desk.drawing().canvas.empty());
  keys.strike("g");
  CHECK(selection.patch_grid);
  keys.strike("ctrl+g");
  CHECK(selection.patch_grid);

  // Signs count as what is typed; a key and its sign in one frame are one stroke.
  app.actions.perform(ActionId::opacity, {"0.5"});
  keys.strike("+", '+');
  CHECK(std::abs(selection.opacity - 0.6f) < 1e-6f);
  keys.strike("+");
  keys.strike("-");
  keys.strike("shift+-");
  CHECK(std::abs(selection.opacity - 0.5f) < 1e-6f);
  keys.strike("?");
  CHECK_FALSE(app.screen.help);
  keys.strike("?", '?');
  CHECK(app.screen.help);
  keys.strike("escape");
  CHECK_FALSE(app.screen.help);

  // Shift tells these two apart, and nothing else.
  keys.strike("ctrl+s");
  CHECK(app.notices.errors().back() == "there is nothing to export in this view");
  keys.strike("ctrl+shift+s");
  CHECK(app.notices.errors().size() == 2);
  CHECK(app.notices.errors().back() == "there are no numbers to export in this view");
  keys.strike("ctrl+shift+o");
  CHECK(app.screen.asks_what_to_open);
  keys.strike("shift+t");
  CHECK_FALSE(app.screen.dark);

  keys.strike("q");
  CHECK_FALSE(app.screen.closing);
  keys.strike("ctrl+q");
  CHECK(app.screen.closing);
}

}  // namespace vitrine::desktop
