#include "apps/desktop/actions.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/desktop/desk.h"
#include "apps/desktop/engine/picture_paths.h"
#include "apps/desktop/engine/training_request.h"
#include "images/color_map.h"
#include "runtime/util/error.h"

namespace vitrine::desktop {
namespace {

using Id = ActionId;
using enum KeyScope;

// ---- what several actions do ----

void open_run(Desk& desk, const std::filesystem::path& folder) {
  try {
    desk.runs.open(folder);
    desk.screen.show(View::runs);
  } catch (const Error& error) {
    desk.notices.say_error(error.what());
  }
}

// Folders of trainings show their curves, all else its pictures.
void open(Desk& desk, std::vector<std::filesystem::path> paths) {
  const auto pictures = std::ranges::stable_partition(paths, looks_like_run_folder);
  for (const std::filesystem::path& run : std::ranges::subrange(paths.begin(), pictures.begin()))
    open_run(desk, run);
  paths.erase(paths.begin(), pictures.begin());
  if (paths.empty()) return;
  desk.library.open(std::move(paths), [&desk] { desk.on_device->look_at_selected(); });
  if (!shows_picture(desk.screen.view())) desk.screen.show(desk.screen.picture_view());
  desk.screen.show_next_frames(3);
}

// Paths as people paste them.
void open_text(Desk& desk, const std::string& text) {
  try {
    std::vector<std::filesystem::path> paths = paths_in_text(text);
    if (!paths.empty()) open(desk, std::move(paths));
  } catch (const Error& error) {
    desk.notices.say_error(error.what());
  }
}

void open_words(Desk& desk, const Action& action) { open(desk, {action.words.begin(), action.words.end()}); }

void select_picture(Desk& desk, const Action& action) {
  desk.library.select(action.whole(0));
  desk.on_device->look_at_selected();
}

template <bool (PictureLibrary::*step)()>
void go_on_to(Desk& desk, const Action&) {
  if ((desk.library.*step)()) desk.on_device->look_at_selected();
}

void choose_model(Desk& desk, const Action& action) {
  try {
    const ModelChoice choice = model_choice(desk.models, action.words[0]);
    if (std::ranges::find(desk.models, choice.name, &ModelChoice::name) == desk.models.end())
      desk.models.push_back(choice);
    desk.looking().choose_model(choice);
  } catch (const Error& error) {
    desk.notices.say_error(error.what());
  }
}

void choose_device(Desk& desk, const Action& action) {
  const size_t index = action.whole(0), count = desk.devices.devices.size();
  if (index >= count) {
    throw Error(ErrorCode::usage, "there is no device " + std::to_string(index) + ", expected 0 to " +
                                      std::to_string(count - 1));
  }
  const std::shared_ptr<const TrainingState> training = desk.training().state();
  if (training->busy() || training->stage == TrainingStage::paused)
    return desk.notices.say_error("a training runs on this device, stop it before another device is chosen");
  desk.devices.next = index;
  desk.looking().cancel(desk.screen.view());
  desk.words().cancel();
}

void show(Desk& desk, View view) {
  desk.screen.show(view);
  desk.looking().ask_again();
}

template <View view>
void show(Desk& desk, const Action&) {
  show(desk, view);
}

void choose_token(Desk& desk, const Action& action) {
  MapSelection selection = desk.looking().selection();
  selection.token.reset();
  if (action.words.size() == 2) {
    const ViTConfig* c = desk.looking().config();
    if (!c) throw Error(ErrorCode::failed, "there is no model whose token could be chosen");
    selection.token = c->prefix_tokens() + action.whole(0) * c->grid_width() + action.whole(1);
  }
  desk.looking().select(selection);
}

void choose_head(MapSelection& selection, const Action& action) {
  selection.head = action.words[0] == "mean" ? std::nullopt : std::optional(action.whole(0));
}

void choose_head_before(MapSelection& selection, const Action&) {
  if (selection.head)
    selection.head = *selection.head == 0 ? std::nullopt : std::optional(*selection.head - 1);
}

void choose_next_color_map(MapSelection& selection, const Action&) {
  selection.map = color_maps[(static_cast<size_t>(selection.map) + 1) % color_maps.size()];
}

void turn_by_exif(Desk& desk, const Action& action) {
  desk.looking().turn_by_exif(action.on());
  desk.screen.show_next_frames(3);
}

void add_stroke(Desk& desk, const Action& action) {
  std::vector<CanvasPoint> points;
  for (size_t i = 0; i + 1 < action.words.size(); i += 2)
    points.push_back({action.number(i), action.number(i + 1)});
  desk.drawing().canvas.add_stroke(points);
}

template <TrainingRequest request_of(const std::string&, const std::filesystem::path&)>
void start_training(Desk& desk, const Action& action) {
  try {
    desk.training().start(request_of(action.words[0], action.word_or_none(1)));
  } catch (const Error& error) {
    desk.notices.say_error(error.what());
  }
  desk.screen.show_next_frames(3);
}

void cancel(Desk& desk, const Action&) {
  if (!desk.workers.models.idle() || desk.looking().busy())
    desk.notices.say("Cancelled. What is missing comes when its view, picture or model is chosen again.");
  desk.looking().cancel(desk.screen.view());
  desk.words().cancel();
  const TrainingStage stage = desk.training().state()->stage;
  if (stage >= TrainingStage::drawing && stage < TrainingStage::training) desk.training().stop();
}

void export_picture(Desk& desk, const Action& action) {
  desk.exports.write_picture(desk.exports.file(action.word_or_none(0), ".png"));
}

void export_numbers(Desk& desk, const Action& action) {
  const View view = desk.screen.view();
  const auto write = [&exports = desk.exports, to = desk.exports.file(action.word_or_none(0), ".csv")](
                         std::vector<CsvRow> rows) { exports.write_numbers(to, std::move(rows)); };
  if (view == View::train) return write(training_rows(*desk.training().state()));
  if (view == View::runs) return write(run_rows(desk.runs.states()));
  if (view == View::draw) return write(desk.drawing().rows());
  const bool answers = shows_picture(view) && !is_map(view) && view != View::words;
  if (answers && !desk.words().scores().empty()) return write(answer_rows(desk.words().scores()));
  if (view != View::device) return desk.looking().read_numbers(view, write);
  std::vector<CsvRow> rows{{"name", "value"}};
  for (const DeviceFact& fact : facts_of(desk.on_device->device)) rows.push_back({fact.name, fact.value});
  write(std::move(rows));
}

void set_dark(Desk& desk, bool dark) {
  desk.screen.dark = dark;
  desk.screen.show_next_frames(3);
}

void resize_window(Desk& desk, const Action& action) {
  desk.window.resize(static_cast<int>(action.whole(0)), static_cast<int>(action.whole(1)));
}

void go_back(Desk& desk, const Action&) {
  if (std::exchange(desk.screen.help, false)) return;
  MapSelection selection = desk.looking().selection();
  selection.token.reset();
  desk.looking().select(selection);
}

// ---- the words that actions take ----

template <typename List, typename NameOf>
std::string choices(const List& list, const NameOf& name) {
  std::string text;
  for (const auto& one : list) text += (text.empty() ? "" : "|") + std::string(name(one));
  return text;
}
const std::string view_choices = choices(view_names, [](const ViewName& view) { return view.name; });
const std::string color_map_choices = choices(color_maps, [](ColorMap map) { return name_of(map); });

constexpr std::string_view relations = "WHAT VALUE | WHAT =|!=|<|<=|>|>=|contains VALUE";

const ActionKind kinds[] = {
    // ---- pictures, models, devices ----
    ActionKind{Id::open, "open", "PATH", "shows a picture"}.by(open_words),
    ActionKind{Id::open_folder, "open-folder", "PATH", "lists the pictures in a folder and shows the first"}
        .by(open_words),
    ActionKind{Id::open_text}.on_button("Open").by(
        [](Desk& desk, const Action& action) { open_text(desk, action.words[0]); }),
    ActionKind{Id::ask_what_to_open}
        .on_key({"ctrl+o", 11, 1, "open a picture or a folder"})
        .on_button("Open...", "A picture or a folder")
        .by([](Desk& desk, const Action&) { desk.screen.asks_what_to_open = true; }),
    ActionKind{Id::paste}
        .on_key({"ctrl+v", 12, 1, "open the path on the clipboard"})
        .by([](Desk& desk, const Action&) { open_text(desk, desk.window.clipboard()); }),
    ActionKind{Id::select}.by(select_picture),
    ActionKind{Id::next, "next", "", "the next picture of the list"}
        .on_key({"right", 3, 2, "picture after", on_pictures})
        .by(go_on_to<&PictureLibrary::next>),
    ActionKind{Id::previous, "previous", "", "the one before"}
        .on_key({"left", 3, 1, "picture before", on_pictures})
        .by(go_on_to<&PictureLibrary::previous>),
    ActionKind{Id::model, "model", "MODEL", "looks with another model"}.by(choose_model),
    ActionKind{Id::device, "device", "INDEX", "computes on another device, by its number in the list"}.by(
        choose_device),

    // ---- views ----
    ActionKind{Id::view, "view", view_choices, "what the window shows"}.by(
        [](Desk& desk, const Action& action) { show(desk, *view_named(action.words[0])); }),
    ActionKind{Id::look_tab}
        .on_key({"f1", 1, 1, "look"})
        .on_button("Look", "What the model sees in a picture")
        .by([](Desk& desk, const Action&) { show(desk, desk.screen.picture_view()); }),
    ActionKind{Id::structure_tab}
        .on_key({"f2", 1, 2, "structure"})
        .on_button("Structure", "The walk through the model")
        .by(show<View::structure>),
    ActionKind{Id::profile_tab}
        .on_key({"f3", 1, 3, "profile"})
        .on_button("Profile", "Where the time goes")
        .by(show<View::profile>),
    ActionKind{Id::device_tab}
        .on_key({"f4", 1, 4, "device"})
        .on_button("Device", "What the device can do, and memory")
        .by(show<View::device>),
    ActionKind{Id::draw_tab}
        .on_key({"f5", 1, 5, "draw"})
        .on_button("Draw", "Draw a digit")
        .by(show<View::draw>),
    ActionKind{Id::train_tab}
        .on_key({"f6", 1, 6, "train"})
        .on_button("Train", "Train a model")
        .by(show<View::train>),
    ActionKind{Id::runs_tab}
        .on_key({"f7", 1, 7, "runs"})
        .on_button("Runs", "The curves of trainings that vitrine train makes")
        .by(show<View::runs>),
    ActionKind{Id::answers_view}.on_key({"1", 2, 1, "picture"}).by(show<View::answers>),
    ActionKind{Id::attention_view}.on_key({"2", 2, 2, "attention"}).by(show<View::attention>),
    ActionKind{Id::grid_view}.on_key({"3", 2, 3, "all heads"}).by(show<View::grid>),
    ActionKind{Id::rollout_view}.on_key({"4", 2, 4, "rollout"}).by(show<View::rollout>),
    ActionKind{Id::features_view}.on_key({"5", 2, 5, "features"}).by(show<View::features>),
    ActionKind{Id::words_view}.on_key({"6", 2, 6, "where words are"}).by(show<View::words>),

    // ---- maps ----
    ActionKind{Id::layer, "layer", "N", "whose attention is shown; the first one is 0"}.by(
        [](MapSelection& selection, const Action& action) { selection.layer = action.whole(0); }),
    ActionKind{Id::layer_above}
        .on_key({"up", 4, 1, "layer above", on_pictures})
        .on_button("", "Layer")
        .by([](MapSelection& selection, const Action&) { ++selection.layer; }),
    ActionKind{Id::layer_below}
        .on_key({"down", 4, 2, "layer below", on_pictures})
        .by([](MapSelection& selection, const Action&) { selection.layer -= selection.layer > 0; }),
    ActionKind{Id::head, "head", "N | mean", "one head, or the mean of all"}.by(choose_head),
    ActionKind{Id::head_before}
        .on_key({"[", 5, 1, "head before", on_pictures})
        .on_button("", "Head")
        .by(choose_head_before),
    ActionKind{Id::head_after}
        .on_key({"]", 5, 2, "head after; the mean of all heads comes first", on_pictures})
        .by([](MapSelection& selection, const Action&) {
          selection.head = selection.head ? *selection.head + 1 : 0;
        }),
    ActionKind{Id::token, "token", "ROW COL | class",
               "where this patch looks, or what the answer is read from"}
        .on_key({"click on a patch", 6, 1, "where that token looks", nowhere})
        .by(choose_token),
    ActionKind{Id::back}
        .on_key({"escape", 7, 1, "back to the class token; closes this list"})
        .on_button("back", "Back to what the answer is made of")
        .by(go_back),
    ActionKind{Id::opacity, "opacity", "SHARE", "of the heat map over the picture"}.by(
        [](MapSelection& selection, const Action& action) {
          selection.opacity = static_cast<float>(action.number(0));
        }),
    ActionKind{Id::less_map}
        .on_key({"-", 8, 1, "less and more of the map over the picture", on_pictures})
        .on_button("", "How much of the map lies over the picture")
        .by([](MapSelection& selection, const Action&) { selection.opacity -= 0.1f; }),
    ActionKind{Id::more_map}
        .on_key({"+", 8, 2, "", on_pictures})
        .by([](MapSelection& selection, const Action&) { selection.opacity += 0.1f; }),
    ActionKind{Id::colormap, "colormap", color_map_choices, "colors of the heat map"}.by(
        [](MapSelection& selection, const Action& action) {
          selection.map = color_map_named(action.words[0]);
        }),
    ActionKind{Id::next_colormap}
        .on_key({"m", 9, 1, "next color map", on_pictures})
        .by(choose_next_color_map),
    ActionKind{Id::patch_grid, "patch-grid", "on|off", "lines between patches"}.by(
        [](MapSelection& selection, const Action& action) { selection.patch_grid = action.on(); }),
    ActionKind{Id::turn_patch_grid}
        .on_key({"g", 10, 1, "grid of the patches", on_pictures})
        .on_button("Grid of the patches")
        .by([](MapSelection& selection, const Action&) { selection.patch_grid = !selection.patch_grid; }),
    ActionKind{Id::exif, "exif", "on|off", "turns pictures as their EXIF orientation says"}
        .on_button("Turn by EXIF", "For you and for the model, as vitrine classify --exif does")
        .by(turn_by_exif),

    // ---- words, for models that read them ----
    ActionKind{Id::labels, "labels", "[TEXT]", "what the picture may be, with commas between"}
        .on_button("labels, with commas between", "What the picture may be: each is scored as you type")
        .by([](Desk& desk, const Action& action) { desk.words().set_labels(action.word_or_none(0)); }),
    ActionKind{Id::pattern, "template", "[TEXT]", "a text with {} where a label goes"}
        .on_button("a photo of a {}", "A text with {} where a label goes; without one the label is the text")
        .by([](Desk& desk, const Action& action) { desk.words().set_pattern(action.word_or_none(0)); }),
    ActionKind{Id::words, "words", "[TEXT]",
               "sorts the folder by words, and shows where in the picture they are"}
        .on_button("words to sort by", "The folder's pictures, most like these words first")
        .by([](Desk& desk, const Action& action) { desk.words().look_for(action.word_or_none(0)); }),

    // ---- the canvas ----
    ActionKind{Id::stroke, "stroke", "X Y ...", "draws on the digit's canvas, whose corners are 0 0 and 1 1"}
        .by(add_stroke),
    ActionKind{Id::undo}
        .on_key({"ctrl+z", 15, 1, "on the canvas: take the last stroke away", on_canvas})
        .on_button("Undo")
        .by([](Desk& desk, const Action&) { desk.drawing().canvas.undo(); }),
    ActionKind{Id::clear, "clear", "", "wipes the canvas"}
        .on_key({"delete", 15, 2, "clear", on_canvas})
        .on_button("Clear")
        .by([](Desk& desk, const Action&) { desk.drawing().canvas.clear(); }),

    // ---- training ----
    ActionKind{Id::run, "run", "RUN", "shows the curves of a training, which may go on"}.on_button("Show").by(
        [](Desk& desk, const Action& action) { open_run(desk, action.words[0]); }),
    ActionKind{Id::close_run, "close-run", "RUN", "takes them away"}.by(
        [](Desk& desk, const Action& action) { desk.runs.close(action.words[0]); }),
    ActionKind{Id::train, "train", "CONFIG [DATA]", "starts a training, or goes on with one that was saved"}
        .by(start_training<training_of>),
    ActionKind{Id::go_on_training}.by(start_training<saved_training>),
    ActionKind{Id::pause, "pause", "", "halts the training after the step under way"}.by(
        [](Desk& desk, const Action&) { desk.training().pause(); }),
    ActionKind{Id::resume, "resume", "", "lets it go on"}.by(
        [](Desk& desk, const Action&) { desk.training().resume(); }),
    ActionKind{Id::pause_or_resume}
        .on_key({"space", 16, 1, "pause and resume training", on_training})
        .by([](Desk& desk, const Action&) { desk.training().toggle_pause(); }),
    ActionKind{Id::stop_training}.on_button("Stop").by(
        [](Desk& desk, const Action&) { desk.training().stop(); }),
    ActionKind{Id::new_training}.on_button("New training").by([](Desk& desk, const Action&) {
      desk.training().close();
    }),
    ActionKind{Id::save, "save", "PATH", "writes the model in training into a folder"}.on_button("Save").by(
        [](Desk& desk, const Action& action) { desk.training().save(action.words[0]); }),

    // ---- everywhere ----
    ActionKind{Id::cancel, "cancel", "", "stops what runs in the background, until it is asked for again"}
        .on_key({"ctrl+.", 17, 1, "cancel what runs"})
        .on_button("Cancel")
        .by(cancel),
    ActionKind{Id::export_png, "export-png", "FILE", "writes what is shown as a picture"}
        .on_key({"ctrl+s", 13, 1, "write what is shown as PNG"})
        .on_button("Export picture", "What is shown, as PNG")
        .by(export_picture),
    ActionKind{Id::export_csv, "export-csv", "FILE", "writes the numbers that are shown"}
        .on_key({"ctrl+shift+s", 14, 1, "write the numbers as CSV"})
        .on_button("Export numbers", "The numbers behind it, as CSV")
        .by(export_numbers),
    ActionKind{Id::theme, "theme", "dark|light", "colors of the window"}.by(
        [](Desk& desk, const Action& action) { set_dark(desk, action.words[0] == "dark"); }),
    ActionKind{Id::turn_theme}
        .on_key({"t", 18, 1, "dark and light"})
        .on_button("", "Dark and light")
        .by([](Desk& desk, const Action&) { set_dark(desk, !desk.screen.dark); }),
    ActionKind{Id::help, "help", "on|off", "the list of keys"}.by(
        [](Desk& desk, const Action& action) { desk.screen.help = action.on(); }),
    ActionKind{Id::turn_help}
        .on_key({"?", 19, 1, "this list"})
        .on_button("?", "Shortcuts")
        .by([](Desk& desk, const Action&) { desk.screen.help = !desk.screen.help; }),
    ActionKind{Id::resize, "resize", "W H", "the window, in pixels"}.by(resize_window),
    ActionKind{Id::minimise, "minimise", "", "the window, as with its button"}.by(
        [](Desk& desk, const Action&) { desk.window.minimise(); }),
    ActionKind{Id::restore, "restore", "", "the minimised window"}.by(
        [](Desk& desk, const Action&) { desk.window.restore(); }),
    ActionKind{Id::close, "close", "", "ends the app, whatever runs"}
        .on_key({"ctrl+q", 20, 1, "close"})
        .by([](Desk& desk, const Action&) { desk.screen.closing = true; }),

    // ---- in scripts only, which do them themselves but for one ----
    ActionKind{Id::wait, "wait", "[SECONDS]",
               "until nothing runs in the background; 300 seconds at most, or as many as said"},
    ActionKind{Id::frames, "frames", "N", "draws so many frames"},
    ActionKind{Id::train_steps, "train-steps", "N", "until the training has made so many more steps"},
    ActionKind{Id::shot, "shot", "FILE", "writes the window's pixels as PNG"},
    ActionKind{Id::mouse, "mouse", "AREA | [AREA] X Y", "moves the mouse"},
    ActionKind{Id::click, "click", "AREA | [AREA] X Y", "moves it there and clicks"},
    ActionKind{Id::drag, "drag", "[AREA] X Y X Y ...", "moves it along the points with the button held"},
    ActionKind{Id::key, "key", "KEY", "strikes a key"},
    ActionKind{Id::type, "type", "TEXT", "as from a keyboard"},
    ActionKind{Id::drop, "drop", "PATH ...", "drops files and folders on the window"}.by(open_words),
    ActionKind{Id::expect, "expect", relations,
               "ends the run with exit status 1 where the app's state is another"},
    ActionKind{Id::until, "until", relations, "waits until it is so; 300 seconds at most"},
    ActionKind{Id::dump, "dump", "WHAT FILE", "writes a part of the app's state"},
};

}  // namespace

std::span<const ActionKind> action_kinds() { return kinds; }

void Actions::perform(const Action& action) {
  const ActionKind& kind = kind_of(action.id);
  if (kind.select) {
    MapSelection selection = desk_.looking().selection();
    kind.select(selection, action);
    return desk_.looking().select(selection);
  }
  if (!kind.perform) throw Error(ErrorCode::usage, "this action is not the app's");
  kind.perform(desk_, action);
}

}  // namespace vitrine::desktop
