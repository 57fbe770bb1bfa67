// A training while it runs: its curves, what the model says of some pictures, and the buttons.
#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <string>

#include "apps/desktop/panels/panels.h"
#include "apps/desktop/panels/plot.h"
#include "apps/desktop/panels/widgets.h"
#include "apps/desktop/theme.h"

namespace vitrine::desktop {
namespace {

void draw_losses(const TrainingState& state, ImVec2 size) {
  double low = 0, high = 1;
  for (const CurvePoint& point : state.losses) high = std::max(high, point.high);
  high = std::ceil(high * 2) / 2;
  Plot plot("LOSS OF THE BATCHES", size, static_cast<double>(state.step), {low, high, (high - low) / 4},
            [](double value) { return formatted("%.2f", value); });
  std::vector<ImVec2> line;
  for (const CurvePoint& point : state.losses) {
    const float x = plot.x(static_cast<double>(point.first + point.last) / 2);
    plot.list().AddLine({x, plot.y(point.low)}, {x, plot.y(point.high)},
                        (palette().bar & 0x00ffffff) | 0x50000000, 2);
    line.emplace_back(x, plot.y(point.mean));
  }
  plot.list().AddPolyline(line.data(), static_cast<int>(line.size()), palette().accent, ImDrawFlags_None, 2);
}

void draw_accuracy(const TrainingState& state, ImVec2 size) {
  Plot plot("ACCURACY ON TEST PICTURES", size, static_cast<double>(state.step), {0, 1, 0.25},
            [](double value) { return formatted("%.0f %%", 100 * value); });
  std::vector<ImVec2> line;
  for (const TestPoint& point : state.tests)
    line.emplace_back(plot.x(static_cast<double>(point.step)), plot.y(point.accuracy));
  plot.list().AddPolyline(line.data(), static_cast<int>(line.size()), palette().good, ImDrawFlags_None, 2);
  for (const ImVec2& point : line) plot.list().AddCircleFilled(point, 2.5f, palette().good);
}

std::string class_name(const TrainingState& state, uint32_t index) {
  return index < state.class_names.size() ? state.class_names[index] : std::to_string(index);
}

void draw_samples(const Screen& screen, const TrainingState& state, TrainingSamples& samples) {
  heading("TEST PICTURES, AND WHAT THE MODEL SAYS NOW");
  const auto& textures = samples.of(state);
  if (textures.empty()) return faint("They appear with the first test.");
  const float space = ImGui::GetContentRegionAvail().x, gap = 8 * screen.scale;
  const auto count = static_cast<float>(textures.size());
  const float side = std::clamp((space - (count - 1) * gap) / count, 24 * screen.scale, 72 * screen.scale);
  const ImVec2 start = ImGui::GetCursorScreenPos();
  ImDrawList& list = *ImGui::GetWindowDrawList();
  for (size_t i = 0; i < textures.size(); ++i) {
    const SamplePrediction& sample = state.samples[i];
    const ImVec2 at{start.x + static_cast<float>(i) * (side + gap), start.y};
    if (at.x + side > start.x + space + 1) break;
    const bool right = sample.label == sample.predicted;
    list.AddImage(textures[i]->id(), at, {at.x + side, at.y + side});
    list.AddRect(at, {at.x + side, at.y + side}, right ? palette().good : palette().bad, 0, 0, 2);
    const std::string said = fitted(class_name(state, sample.predicted), side);
    const ImVec2 size = ImGui::CalcTextSize(said.c_str());
    list.AddText({at.x + (side - size.x) / 2, at.y + side + 3}, right ? palette().good : palette().bad,
                 said.c_str());
    ImGui::SetCursorScreenPos(at);
    ImGui::PushID(static_cast<int>(i));
    ImGui::InvisibleButton("sample", {side, side});
    ImGui::SetItemTooltip("it is %s, the model says %s (%.0f %%)", class_name(state, sample.label).c_str(),
                          class_name(state, sample.predicted).c_str(), sample.probability * 100);
    ImGui::PopID();
  }
  ImGui::SetCursorScreenPos({start.x, start.y + side + ImGui::GetTextLineHeight() + 8});
  ImGui::Dummy({1, 1});
}

std::string_view stage_text(TrainingStage stage) {
  if (stage == TrainingStage::drawing) return "drawing digits";
  if (stage == TrainingStage::opening) return "reading the pictures";
  if (stage == TrainingStage::compiling) return "preparing the device";
  return name_of(stage);
}

void draw_start(const Screen& screen, Actions& actions) {
  static int chosen = 0;
  static std::array<char, 4096> data{}, saved{"vitrine-model"};
  constexpr std::array<std::pair<const char*, const char*>, 2> configs{
      {{"digits", "a small ViT (0.2 M parameters) on digits"},
       {"mnist-myvit", "MyViT, a tiny one written out head by head"}}};
  constexpr int goes_on = configs.size();
  heading("TRAIN A MODEL");
  ImGui::TextUnformatted("Draws 10 000 digits with this machine's fonts and learns them, while you watch.");
  ImGui::Spacing();
  for (size_t i = 0; i < configs.size(); ++i) {
    ImGui::RadioButton(configs[i].second, &chosen, static_cast<int>(i));
  }
  ImGui::RadioButton("go on with a saved training:", &chosen, goes_on);
  ImGui::SameLine();
  ImGui::BeginDisabled(chosen != goes_on);
  ImGui::SetNextItemWidth(220 * screen.scale);
  ImGui::InputText("##saved", saved.data(), saved.size());
  ImGui::EndDisabled();
  hint("The folder that it was saved to");
  ImGui::Spacing();
  ImGui::SetNextItemWidth(540 * screen.scale);
  ImGui::InputTextWithHint(
      "##data", "your own data: a folder with MNIST's files or train/CLASS/pictures (empty: drawn digits)",
      data.data(), data.size());
  ImGui::Spacing();
  if (ImGui::Button("Start training", {160 * screen.scale, 0})) {
    if (chosen == goes_on) {
      actions.perform(ActionId::go_on_training, {saved.data(), data.data()});
    } else {
      actions.perform(ActionId::train, {configs[static_cast<size_t>(chosen)].first, data.data()});
    }
  }
}

void draw_buttons(const Screen& screen, Actions& actions, const TrainingState& state) {
  const bool paused = state.stage == TrainingStage::paused;
  ImGui::BeginDisabled(!paused && state.stage != TrainingStage::training);
  action_button(actions, ActionId::pause_or_resume, 90 * screen.scale, paused ? "Resume" : "Pause");
  hint({ActionId::pause_or_resume});
  ImGui::EndDisabled();
  ImGui::SameLine();
  ImGui::BeginDisabled(!paused && !state.busy());
  action_button(actions, ActionId::stop_training, 80 * screen.scale);
  ImGui::EndDisabled();
  ImGui::SameLine();
  static std::array<char, 4096> folder{"vitrine-model"};
  ImGui::SetNextItemWidth(220 * screen.scale);
  ImGui::InputText("##folder", folder.data(), folder.size());
  hint("The folder to save into: a model that every command of vitrine opens, and the checkpoint");
  ImGui::SameLine();
  ImGui::BeginDisabled(!state.can_save || folder[0] == '\0');
  if (ImGui::Button(kind_of(ActionId::save).label)) actions.perform(ActionId::save, {folder.data()});
  ImGui::EndDisabled();
  ImGui::SameLine();
  if (ImGui::Button("Curves as CSV")) actions.perform(ActionId::export_csv);
  const bool over = !state.busy() && !paused;
  if (over) {
    ImGui::SameLine();
    action_button(actions, ActionId::new_training);
  }
  if (!state.save_error.empty()) {
    ImGui::TextColored(ImGui::ColorConvertU32ToFloat4(palette().bad), "%s", state.save_error.c_str());
  } else if (!state.saved.empty()) {
    faint("Saved after step " + std::to_string(state.saved_step) + " to " + state.saved.string());
  }
}

void draw_facts(const Screen& screen, const TrainingState& state) {
  ImGui::PushFont(fonts().large);
  ImGui::TextUnformatted((state.name + ": " + std::string(stage_text(state.stage))).c_str());
  ImGui::PopFont();
  if (!state.error.empty()) {
    ImGui::PushStyleColor(ImGuiCol_Text, palette().bad);
    ImGui::TextWrapped("%s", state.error.c_str());
    ImGui::PopStyleColor();
  }
  if (!state.remark.empty()) faint_wrapped(state.remark);
  const bool prepares = state.stage == TrainingStage::drawing || state.stage == TrainingStage::compiling;
  const double share = prepares          ? state.share_done
                       : state.steps > 0 ? static_cast<double>(state.step) / static_cast<double>(state.steps)
                                         : 0;
  ImGui::ProgressBar(static_cast<float>(share), {-1, 8 * screen.scale}, "");
  if (state.steps == 0) return;
  std::string line = "epoch " + std::to_string(std::min(std::max<uint64_t>(state.epoch, 1), state.epochs)) +
                     " of " + std::to_string(state.epochs) + "   step " + std::to_string(state.step) +
                     " of " + std::to_string(state.steps);
  if (!state.losses.empty()) line += formatted("   loss %.3f", state.last_loss());
  if (!state.tests.empty()) line += formatted("   accuracy %.1f %%", state.accuracy() * 100);
  if (state.images_per_second > 0) line += formatted("   %.0f images/s", state.images_per_second);
  if (state.busy() && state.seconds_left > 0) line += "   " + seconds_text(state.seconds_left) + " left";
  ImGui::TextUnformatted(line.c_str());
}

}  // namespace

void draw_training(Screen& screen, Actions& actions, const TrainingSession& training,
                   TrainingSamples& samples) {
  const std::shared_ptr<const TrainingState> told = training.state();
  const TrainingState& state = *told;
  if (state.stage == TrainingStage::none) return draw_start(screen, actions);
  screen.exported = area_left();
  draw_facts(screen, state);
  draw_buttons(screen, actions, state);
  ImGui::Spacing();
  const float below = 72 * screen.scale + 3 * ImGui::GetTextLineHeightWithSpacing() + 12 * screen.scale;
  const float height = std::max(120 * screen.scale, ImGui::GetContentRegionAvail().y - below);
  const float width = (ImGui::GetContentRegionAvail().x - 20 * screen.scale) / 2;
  ImGui::BeginGroup();
  draw_losses(state, {width, height});
  ImGui::EndGroup();
  ImGui::SameLine(0, 20 * screen.scale);
  ImGui::BeginGroup();
  draw_accuracy(state, {width, height});
  ImGui::EndGroup();
  ImGui::Spacing();
  draw_samples(screen, state, samples);
}

}  // namespace vitrine::desktop
