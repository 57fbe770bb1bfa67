// The parts of the window. Each draws into the space that ImGui's current window has left, is given what it
// shows, and performs actions by their names. `busy`: something runs, or is not on the screen yet.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "apps/desktop/actions.h"
#include "apps/desktop/desk.h"

namespace vitrine::desktop {

void draw_top_bar(const Screen& screen, Actions& actions, const Looking& looking,
                  const std::vector<ModelChoice>& models, const DeviceChoice& devices, const Device& device);
void draw_library(Screen& screen, Actions& actions, PictureLibrary& library, Thumbnails& thumbnails,
                  const Words& words);
// The views that show the picture.
void draw_picture(Screen& screen, Actions& actions, Looking& looking, PictureLibrary& library, bool busy);
// Beside it: what the model says, and how to look.
void draw_answers(Screen& screen, Actions& actions, Looking& looking, const Words& words, bool busy);
void draw_structure(Screen& screen, Actions& actions, const Looking& looking, bool busy);
void draw_profile(Screen& screen, Actions& actions, Looking& looking, bool busy);
void draw_device(Screen& screen, const Device& device, std::span<const DeviceFact> facts);
void draw_canvas(Screen& screen, Actions& actions, Drawing& drawing);
void draw_training(Screen& screen, Actions& actions, const TrainingSession& training,
                   TrainingSamples& samples);
// Trainings that others make: their curves, over each other.
void draw_runs(Screen& screen, Actions& actions, const RunWatch::States& runs);
void draw_status(const Screen& screen, Actions& actions, Notices& notices, const Worker::Status& work,
                 const std::string& summary);
void draw_help(const Screen& screen, Actions& actions);

}  // namespace vitrine::desktop
