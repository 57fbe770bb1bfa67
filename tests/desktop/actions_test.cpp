// The table of actions: that it says of each all there is to say, once, and that they do it, without a
// window.
#include "apps/desktop/actions.h"

#include <algorithm>
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <utility>

#include "apps/desktop/desk_values.h"
#include "apps/desktop/script/shortcuts.h"
#include "images/image.h"
#include "runtime/util/error.h"
#include "tests/desktop/windowless_app.h"
#include "tests/support/command.h"
#include "tests/support/temporary_folder.h"

namespace vitrine::desktop {
namespace {

using Catch::Matchers::ContainsSubstring;
using Id = ActionId;

const test::Path source = test::Path(VITRINE_TEST_DATA).parent_path();

bool has_key(const ActionKind& kind) {
  return !kind.shortcut.chord.empty() && kind.shortcut.scope != KeyScope::nowhere;
}

}  // namespace

TEST_CASE("every action has one row, and every name and key one action") {
  for (int id = 0; id <= static_cast<int>(Id::dump); ++id) {
    INFO("action " << id);
    CHECK(std::ranges::count(action_kinds(), static_cast<Id>(id), &ActionKind::id) == 1);
  }
  CHECK(action_kinds().size() == static_cast<size_t>(Id::dump) + 1);
  std::set<std::string_view> names, keys;
  for (const ActionKind& kind : action_kinds()) {
    INFO(static_cast<int>(kind.id) << " " << kind.name << " " << kind.shortcut.chord);
    if (!kind.name.empty()) CHECK(names.insert(kind.name).second);
    if (has_key(kind)) {
      CHECK(keys.insert(kind.shortcut.chord).second);
      CHECK(is_key(kind.shortcut.chord));
    }
  }
  CHECK(names.size() > 40);
  CHECK(keys.size() > 30);
}

TEST_CASE("every action does something, and those that people meet say what") {
  for (const ActionKind& kind : action_kinds()) {
    INFO(static_cast<int>(kind.id) << " " << kind.name << " " << kind.shortcut.chord);
    // The script does what has neither.
    CHECK_FALSE((kind.perform && kind.select));
    if (!kind.perform && !kind.select) CHECK(kind.id >= Id::wait);
    CHECK(kind.name.empty() == kind.does.empty());
    CHECK((kind.takes.empty() || !kind.name.empty()));
    CHECK(kind.shortcut.chord.empty() == (kind.shortcut.line == 0));
    // A tooltip belongs to something that is pressed: a button, or a slider that keys move, too.
    if (!kind.hint.empty()) CHECK((*kind.label != '\0' || has_key(kind)));
  }
}

TEST_CASE("every key stands in the list of keys, which has no line without words") {
  std::map<int, std::set<int>> lines;
  std::map<int, KeyScope> scopes;
  for (const ActionKind& kind : action_kinds()) {
    const ActionKind::Shortcut& shortcut = kind.shortcut;
    if (shortcut.chord.empty()) continue;
    INFO(shortcut.chord);
    CHECK(lines[shortcut.line].insert(shortcut.place).second);
    // What shares a line works in the same views.
    CHECK(scopes.emplace(shortcut.line, shortcut.scope).first->second == shortcut.scope);
  }
  int expected = 0;
  for (const auto& [line, places] : lines) {
    CHECK(line == ++expected);
    CHECK(*places.begin() == 1);
    CHECK(*places.rbegin() == static_cast<int>(places.size()));
  }
  const std::vector<KeyLine> list = key_list();
  REQUIRE(list.size() == lines.size());
  for (const KeyLine& line : list) {
    INFO(line.keys);
    CHECK_FALSE(line.text.empty());
  }
  const auto text_of = [&](std::string_view keys) {
    const auto found = std::ranges::find(list, keys, &KeyLine::keys);
    return found == list.end() ? "(no such line)" : found->text;
  };
  CHECK(list.front().keys == "F1 ... F7");
  CHECK(text_of("F1 ... F7") == "look, structure, profile, device, draw, train, runs");
  CHECK(text_of("1 ... 6") == "picture, attention, all heads, rollout, features, where words are");
  CHECK(text_of("Left, Right") == "picture before, picture after");
  CHECK(text_of("[ and ]") == "head before, head after; the mean of all heads comes first");
  CHECK(text_of("click on a patch") == "where that token looks");
  CHECK(text_of("- and +") == "less and more of the map over the picture");
  CHECK(text_of("Ctrl+Z, Delete") == "on the canvas: take the last stroke away, clear");
  CHECK(text_of("Ctrl+.") == "cancel what runs");
  CHECK(list.back().keys == "Ctrl+Q");
}

TEST_CASE("a tooltip says what a button does, and its key unless the button shows that") {
  CHECK(tooltip({Id::export_csv}) == "The numbers behind it, as CSV (Ctrl+Shift+S)");
  CHECK(tooltip({Id::structure_tab}) == "The walk through the model (F2)");
  CHECK(tooltip({Id::back}) == "Back to what the answer is made of (Esc)");
  CHECK(tooltip({Id::layer_above, Id::layer_below}) == "Layer (Up, Down)");
  CHECK(tooltip({Id::head_before, Id::head_after}) == "Head ([ and ])");
  CHECK(tooltip({Id::exif}) == "For you and for the model, as vitrine classify --exif does");
  CHECK(tooltip({Id::pause_or_resume}) == "Space");
  CHECK(tooltip({Id::turn_help}) == "Shortcuts");
}

TEST_CASE("the documentation names the keys and buttons of the table, and no other keys") {
  const std::string page = test::read_whole_file(source / "docs" / "desktop.md");
  const auto check_row = [&](std::string_view title, Id id) {
    CHECK_THAT(page, ContainsSubstring("\n| " + std::string(title) + " | " + shown_keys({id}) + " | "));
  };
  constexpr std::array views{std::pair{View::answers, Id::answers_view},
                             std::pair{View::attention, Id::attention_view},
                             std::pair{View::grid, Id::grid_view}, std::pair{View::rollout, Id::rollout_view},
                             std::pair{View::features, Id::features_view}};
  for (const auto& [view, id] : views) check_row(name_of(view).title, id);
  for (const Id id : {Id::structure_tab, Id::profile_tab, Id::device_tab, Id::draw_tab, Id::train_tab})
    check_row(kind_of(id).label, id);
  for (const Id id : {Id::export_png, Id::export_csv})
    CHECK_THAT(page, ContainsSubstring(kind_of(id).label + (" (" + shown_keys({id}) + ")")));
  CHECK_THAT(page, ContainsSubstring("*" + std::string(kind_of(Id::exif).label) + "*"));
  CHECK_THAT(page, ContainsSubstring("\n`" + shown_keys({Id::turn_help}) + "` shows them in the window"));

  std::set<std::string> known;
  for (const ActionKind& kind : action_kinds()) {
    if (has_key(kind)) known.insert(shown_key(kind.shortcut.chord));
  }
  const std::regex chord("(Ctrl|Shift|Alt)(\\+(Ctrl|Shift|Alt))*\\+([A-Za-z]+|\\.)");
  std::set<std::string> named;
  for (std::sregex_iterator at(page.begin(), page.end(), chord), end; at != end; ++at)
    named.insert(at->str());
  CHECK(named.size() >= 4);
  for (const std::string& key : named) {
    INFO(key);
    CHECK(known.contains(key));
  }
}

TEST_CASE("the documentation lists what scripts can ask for, and each has a value at any time") {
  const std::string page = test::read_whole_file(source / "docs" / "desktop.md");
  const size_t begin = page.find("What `expect` and `dump` know:"),
               end = page.find("\n\n`--frame-log`", begin);
  REQUIRE(end != std::string::npos);
  std::set<std::string> documented;
  const std::regex row("\n\\|([^|]*)\\|"), word("`([^`]+)`");
  const std::string rows = page.substr(begin, end - begin);
  for (std::sregex_iterator at(rows.begin(), rows.end(), row), none; at != none; ++at) {
    const std::string names = at->str(1);
    for (std::sregex_iterator name(names.begin(), names.end(), word); name != none; ++name)
      CHECK(documented.insert(name->str(1)).second);
  }
  std::set<std::string> known{"longest-frame"};  // of the window's loop
  for (const DeskValue& value : desk_values()) CHECK(known.insert(std::string(value.name)).second);
  CHECK(documented == known);

  test::WindowlessApp app;
  const std::map<std::string_view, std::string> expected{
      {"layer", "0"},       {"head", "mean"},   {"token", "class"},    {"picture", ""},
      {"grid", ""},         {"top", "[]\n"},    {"view", "attention"}, {"theme", "dark"},
      {"training", "none"}, {"map-pixels", ""}, {"digit", ""},         {"errors", "0"}};
  size_t found = 0;
  for (const DeskValue& value : desk_values()) {
    INFO(value.name);
    const std::string text = value.of(app.desk);
    const auto wanted = expected.find(value.name);
    if (wanted == expected.end()) continue;
    CHECK(text == wanted->second);
    ++found;
  }
  CHECK(found == expected.size());
}

TEST_CASE("actions do what their rows say, without a window") {
  test::WindowlessApp app;
  const auto perform = [&](Id id, std::vector<std::string> words = {}) {
    app.actions.perform(id, std::move(words));
  };
  const auto selection = [&] { return app.desk.looking().selection(); };

  perform(Id::model, {"digits"});
  perform(Id::open, {(source / "assets/samples").string()});
  app.run();
  REQUIRE(app.desk.looking().seen());
  CHECK(app.library.size() == 10);
  CHECK(app.library.selected() == 0);
  perform(Id::next);
  perform(Id::next);
  perform(Id::previous);
  CHECK(app.library.selected() == 1);
  perform(Id::select, {"3"});
  app.run();
  CHECK(app.desk.looking().seen()->result.top[0].label == "3");

  // Layers and heads stay within the model's.
  perform(Id::layer, {"2"});
  CHECK(selection().layer == 2);
  for (int i = 0; i < 3; ++i) perform(Id::layer_above);
  CHECK(selection().layer == 3);
  for (int i = 0; i < 5; ++i) perform(Id::layer_below);
  CHECK(selection().layer == 0);
  for (const uint64_t head : {0u, 1u, 2u, 3u, 3u}) {
    perform(Id::head_after);
    CHECK(selection().head == head);
  }
  perform(Id::head, {"1"});
  perform(Id::head_before);
  CHECK(selection().head == 0);
  perform(Id::head_before);
  CHECK(selection().head == std::nullopt);
  perform(Id::head_before);
  CHECK(selection().head == std::nullopt);
  perform(Id::opacity, {"0.95"});
  perform(Id::more_map);
  CHECK(selection().opacity == 1.0f);
  perform(Id::less_map);
  CHECK(std::abs(selection().opacity - 0.9f) < 1e-6f);
  for (const ColorMap map : {ColorMap::viridis, ColorMap::grey, ColorMap::inferno}) {
    perform(Id::next_colormap);
    CHECK(selection().map == map);
  }
  perform(Id::colormap, {"grey"});
  CHECK(selection().map == ColorMap::grey);
  perform(Id::turn_patch_grid);
  CHECK(selection().patch_grid);
  perform(Id::patch_grid, {"off"});
  CHECK_FALSE(selection().patch_grid);

  // Esc closes the list of keys first.
  perform(Id::token, {"2", "3"});
  CHECK(selection().token == 12);
  perform(Id::turn_help);
  perform(Id::back);
  CHECK_FALSE(app.screen.help);
  CHECK(selection().token == 12);
  perform(Id::back);
  CHECK(selection().token == std::nullopt);

  perform(Id::features_view);
  perform(Id::draw_tab);
  CHECK(app.screen.view() == View::draw);
  perform(Id::look_tab);
  CHECK(app.screen.view() == View::features);
  perform(Id::view, {"profile"});
  CHECK(app.screen.view() == View::profile);
  // Who opens pictures wants to see them.
  app.window.text = (source / "assets/samples/7.png").string();
  perform(Id::paste);
  app.run();
  CHECK(app.screen.view() == View::features);
  CHECK(app.desk.looking().seen()->result.top[0].label == "7");

  perform(Id::stroke, {"0.5", "0.2", "0.5", "0.8"});
  perform(Id::stroke, {"0.2", "0.5", "0.8", "0.5"});
  perform(Id::undo);
  CHECK(app.desk.drawing().canvas.strokes().size() == 1);
  perform(Id::clear);
  CHECK(app.desk.drawing().canvas.empty());

  perform(Id::turn_theme);
  CHECK_FALSE(app.screen.dark);
  perform(Id::theme, {"dark"});
  CHECK(app.screen.dark);
  perform(Id::ask_what_to_open);
  CHECK(app.screen.asks_what_to_open);
  perform(Id::resize, {"800", "600"});
  perform(Id::minimise);
  perform(Id::restore);
  CHECK(app.window.asked == std::vector<std::string>{"resize 800 600", "minimise", "restore"});
  perform(Id::close);
  CHECK(app.screen.closing);
  CHECK(app.notices.errors().empty());
  test::require_no_validation_messages();
}

TEST_CASE("what actions can't do is told, or an error where only a script can ask for it") {
  test::WindowlessApp app;
  const auto perform = [&](Id id, std::vector<std::string> words = {}) {
    app.actions.perform(id, std::move(words));
  };
  perform(Id::model, {"no such model"});
  perform(Id::train, {"no such file"});
  perform(Id::open_text, {"https://example.org/a.png"});
  perform(Id::open_text, {" \n"});
  CHECK(app.notices.errors().size() == 3);
  // The same once more is known already.
  perform(Id::model, {"no such model"});
  CHECK(app.notices.errors().size() == 3);
  const std::string second = app.notices.errors()[1];
  app.notices.dismiss_error();
  CHECK(app.notices.errors().front() == second);

  CHECK_THROWS_AS(perform(Id::token, {"0", "0"}), Error);
  CHECK_THROWS_AS(perform(Id::device, {"2"}), Error);
  CHECK_FALSE(app.devices.next);
  perform(Id::device, {"1"});
  CHECK(app.devices.next == 1);
  CHECK(app.desk.busy());
  CHECK_THROWS_AS(perform(Id::wait), Error);
}

TEST_CASE("what is shown is exported under the name that was asked for, or one that is free") {
  test::WindowlessApp app;
  const test::TemporaryFolder folder;
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  app.actions.perform(Id::export_png);
  CHECK(app.notices.errors() == std::vector<std::string>{"there is nothing to export in this view"});
  app.screen.exported = {1, 1, 2, 2};
  for (int i = 0; i < 2; ++i) {
    app.actions.perform(Id::export_png);
    app.run();
  }
  app.actions.perform(Id::export_png, {"own.png"});
  app.run();
  CHECK_THAT(app.notices.said(), ContainsSubstring("Written: ") && ContainsSubstring("own.png"));
  app.actions.perform(Id::export_csv);
  CHECK(app.notices.errors().size() == 2);
  app.actions.perform(Id::device_tab);
  app.actions.perform(Id::export_csv);
  app.run();
  std::string failed = "nothing";
  app.exports.write_window(folder / "none/window.png", [&](const std::string& error) { failed = error; });
  app.run();
  std::filesystem::current_path(before);
  CHECK(folder.names() == std::vector<std::string>{"own.png", "vitrine-attention-2.png",
                                                   "vitrine-attention.png", "vitrine-device.csv"});
  CHECK(decode_image(folder / "own.png").width == 2);
  CHECK_THAT(failed, ContainsSubstring(test::native("none/window.png")));
  CHECK(app.notices.errors().size() == 2);
}

}  // namespace vitrine::desktop
