#include "apps/desktop/actions.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "apps/desktop/engine/picture_paths.h"
#include "apps/desktop/engine/training_request.h"
#include "runtime/util/error.h"

namespace vitrine::desktop {

void Actions::open(std::vector<std::filesystem::path> paths) {
  desk_.library.open(std::move(paths), [this] { desk_.on_device->look_at_selected(); });
  if (!shows_picture(desk_.screen.view())) desk_.screen.show(desk_.screen.picture_view());
  desk_.screen.show_next_frames(3);
}

void Actions::open_text(const std::string& text) {
  try {
    std::vector<std::filesystem::path> paths = paths_in_text(text);
    if (!paths.empty()) open(std::move(paths));
  } catch (const Error& error) {
    desk_.notices.say_error(error.what());
  }
}

void Actions::select(size_t index) {
  desk_.library.select(index);
  desk_.on_device->look_at_selected();
}
void Actions::next() {
  if (desk_.library.next()) desk_.on_device->look_at_selected();
}
void Actions::previous() {
  if (desk_.library.previous()) desk_.on_device->look_at_selected();
}

void Actions::choose_model(const std::string& name_or_path) {
  try {
    const ModelChoice choice = model_choice(desk_.models, name_or_path);
    if (std::ranges::find(desk_.models, choice.name, &ModelChoice::name) == desk_.models.end())
      desk_.models.push_back(choice);
    desk_.looking().choose_model(choice);
  } catch (const Error& error) {
    desk_.notices.say_error(error.what());
  }
}

void Actions::choose_device(size_t index) {
  const size_t count = desk_.devices.devices.size();
  if (index >= count) {
    throw Error(ErrorCode::usage, "there is no device " + std::to_string(index) + ", expected 0 to " +
                                      std::to_string(count - 1));
  }
  const std::shared_ptr<const TrainingState> training = desk_.training().state();
  if (training->busy() || training->stage == TrainingStage::paused)
    return desk_.notices.say_error("a training runs on this device, stop it before another device is chosen");
  desk_.devices.next = index;
  desk_.looking().cancel(desk_.screen.view());
}

void Actions::show(View view) {
  desk_.screen.show(view);
  desk_.looking().ask_again();
}

void Actions::show_tab(const Tab& tab) {
  show(shows_picture(tab.view) ? desk_.screen.picture_view() : tab.view);
}

void Actions::set_dark(bool dark) {
  desk_.screen.dark = dark;
  desk_.screen.show_next_frames(3);
}

void Actions::turn_by_exif(bool on) {
  desk_.library.turn_by_exif(on);
  desk_.looking().turn_by_exif(on);
  desk_.screen.show_next_frames(3);
}

void Actions::start_training(const std::string& config, const std::filesystem::path& data) {
  try {
    desk_.training().start(training_of(config, data));
  } catch (const Error& error) {
    desk_.notices.say_error(error.what());
  }
  desk_.screen.show_next_frames(3);
}

void Actions::go_on_training(const std::string& folder, const std::filesystem::path& data) {
  try {
    desk_.training().start(saved_training(folder, data));
  } catch (const Error& error) {
    desk_.notices.say_error(error.what());
  }
  desk_.screen.show_next_frames(3);
}

void Actions::export_picture(const std::filesystem::path& path) {
  desk_.exports.write_picture(desk_.exports.file(path, ".png"));
}

void Actions::export_numbers(const std::filesystem::path& path) {
  const View view = desk_.screen.view();
  const auto write = [&exports = desk_.exports, to = desk_.exports.file(path, ".csv")](
                         std::vector<CsvRow> rows) { exports.write_numbers(to, std::move(rows)); };
  if (view == View::train) return write(training_rows(*desk_.training().state()));
  if (view == View::draw) return write(desk_.drawing().rows());
  if (view != View::device) return desk_.looking().read_numbers(view, write);
  std::vector<CsvRow> rows{{"name", "value"}};
  for (const DeviceFact& fact : facts_of(desk_.on_device->device)) rows.push_back({fact.name, fact.value});
  write(std::move(rows));
}

void Actions::cancel() {
  if (!desk_.workers.models.idle() || desk_.looking().busy())
    desk_.notices.say("Cancelled. What is missing comes when its view, picture or model is chosen again.");
  desk_.looking().cancel(desk_.screen.view());
  const TrainingStage stage = desk_.training().state()->stage;
  if (stage >= TrainingStage::drawing && stage < TrainingStage::training) desk_.training().stop();
}

}  // namespace vitrine::desktop
