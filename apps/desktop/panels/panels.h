// The parts of the window. Each draws into the space that ImGui's current window has left.
#pragma once

namespace vitrine::desktop {

class App;

void draw_top_bar(App& app);
void draw_library(App& app);
void draw_picture(App& app);  // the views that show the picture
void draw_answers(App& app);  // beside it: what the model says, and how to look
void draw_structure(App& app);
void draw_profile(App& app);
void draw_device(App& app);
void draw_canvas(App& app);
void draw_training(App& app);
void draw_status(App& app);
void draw_help(App& app);

}  // namespace vitrine::desktop
