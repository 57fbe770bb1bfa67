// What is asked for and cancelled, without a window: the worker is held where it matters.
#include "apps/desktop/looking.h"

#include <catch2/catch_test_macros.hpp>
#include <future>
#include <string>

#include "runtime/graph/bound_dispatch.h"
#include "tests/support/path.h"
#include "tests/support/test_device.h"

namespace vitrine::desktop {
namespace {

const test::Path samples = test::Path(VITRINE_TEST_DATA) / ".." / "assets" / "samples";

// The app's loop without what it draws.
struct App {
  test::TestDevice& device = test::test_device();
  SlowCalls calls{false};
  TextureStore textures{*device.device, calls};
  Worker worker;
  Looking looking{*device.pipelines, textures, worker, "f32"};
  uint64_t frame = 0;

  explicit App(const std::string& model) {
    looking.choose_model(model_choice(list_models([](const char*) { return nullptr; }), model));
    looking.look_at(samples / "3.png");
    run(View::answers);
    REQUIRE(looking.seen());
  }

  void draw_frame(View view) {
    textures.collect();
    worker.run_ui_tasks();
    looking.update(view);
    ++frame;
    run_once(*device.device, [&](VkCommandBuffer commands) { textures.record(commands, frame); });
    textures.finished(frame);
  }
  // Until nothing is left to do.
  void run(View view) {
    int quiet = 0;
    while (quiet < 3) {
      worker.wait();
      draw_frame(view);
      quiet = worker.idle() && !looking.busy() && !looking.copying() ? quiet + 1 : 0;
    }
    CHECK(worker.take_error() == std::nullopt);
  }
  // A job that goes on until somebody says so, cancelled or not.
  std::promise<void> hold_worker() {
    std::promise<void> lock;
    worker.start(
        "held", [held = std::make_shared<std::future<void>>(lock.get_future())](Progress&) { held->wait(); });
    return lock;
  }
  // The view asks for what it shows, which is cancelled before it begins.
  void ask_and_cancel(View view) {
    std::promise<void> lock = hold_worker();
    draw_frame(view);
    CHECK(looking.busy());
    looking.cancel(view);
    lock.set_value();
    run(view);
  }
};

}  // namespace

TEST_CASE("what was cancelled doesn't begin again until it is asked for again") {
  App app("digits");
  for (const View view : {View::attention, View::grid, View::rollout}) {
    INFO("view " << int(view));
    app.looking.ask_again();
    CHECK_FALSE(app.looking.left_out(view));
    app.ask_and_cancel(view);
    CHECK(app.looking.maps(view) == nullptr);
    CHECK(app.looking.left_out(view));
  }
  app.ask_and_cancel(View::features);
  CHECK(app.looking.features() == nullptr);

  app.looking.ask_again();
  for (const View view : {View::rollout, View::attention}) {
    app.run(view);
    REQUIRE(app.looking.maps(view));
    CHECK(app.looking.maps(view)->texture->made());
  }
  app.run(View::features);
  CHECK(app.looking.features());

  // Of another picture it is asked for anyway.
  app.looking.look_at(samples / "5.png");
  app.run(View::answers);
  app.ask_and_cancel(View::rollout);
  app.looking.look_at(samples / "4.png");
  app.run(View::rollout);
  CHECK(app.looking.maps(View::rollout));
  CHECK(app.looking.maps(View::attention) == nullptr);
  test::require_no_validation_messages();
}

TEST_CASE("a map stays on the screen for its own choice only, once another one was cancelled") {
  App app("digits");
  MapSelection selection = app.looking.selection();
  selection.layer = 3;
  app.looking.select(selection);
  app.run(View::attention);
  REQUIRE(app.looking.maps(View::attention));
  CHECK(app.looking.maps(View::attention)->choice.layer == 3);

  selection.layer = 1;
  app.looking.select(selection);
  app.ask_and_cancel(View::attention);
  CHECK(app.looking.maps(View::attention) == nullptr);
  // Another choice is asked for by itself, and then the one that was cancelled.
  for (const uint64_t layer : {2u, 1u}) {
    selection.layer = layer;
    app.looking.select(selection);
    app.run(View::attention);
    REQUIRE(app.looking.maps(View::attention));
    CHECK(app.looking.maps(View::attention)->choice.layer == layer);
  }
  // A cancel while nothing is wanted takes nothing away.
  app.looking.cancel(View::attention);
  app.run(View::attention);
  CHECK(app.looking.maps(View::attention));
  test::require_no_validation_messages();
}

}  // namespace vitrine::desktop
