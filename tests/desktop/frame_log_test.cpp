// The log of frames: what is written, and what is said of it.
#include "apps/desktop/script/frame_log.h"

#include <catch2/catch_test_macros.hpp>
#include <thread>

#include "runtime/util/error.h"
#include "tests/support/temporary_folder.h"

namespace vitrine::desktop {

TEST_CASE("frames are written as they come, and the longest are remembered") {
  const test::TemporaryFolder folder;
  FrameLog log(folder / "frames.csv");
  CHECK(log.sentence() == "0 frames; 0 while a model ran");
  log.add({.seconds = 0.5, .turn = 7, .interface = 4, .submit = 2, .display = 0.5, .busy = false});
  CHECK(log.sentence() == "1 frame, the longest 7.0 ms (frame 1); 0 while a model ran");
  log.add({.seconds = 0.6, .turn = 3.25, .interface = 1, .submit = 1, .display = 1, .busy = true});
  log.add({.seconds = 0.7, .turn = 9.75, .interface = 1, .submit = 1, .display = 1, .busy = false});
  log.add({.seconds = 0.8, .turn = 4.5, .interface = 1, .submit = 1, .display = 1, .busy = true});
  CHECK(log.summary().frames == 4);
  CHECK(log.summary().longest == 9.75);
  CHECK(log.summary().longest_frame == 3);
  CHECK(log.summary().busy_frames == 2);
  CHECK(log.summary().longest_busy == 4.5);
  CHECK(log.sentence() ==
        "4 frames, the longest 9.8 ms (frame 3); 2 while a model ran, the longest 4.5 ms (frame 4)");
  log.finish();
  CHECK(test::read_whole_file(folder / "frames.csv") ==
        "frame,seconds,turn_ms,interface_ms,submit_ms,display_ms,busy\n"
        "1,0.5000,7.000,4.000,2.000,0.500,0\n"
        "2,0.6000,3.250,1.000,1.000,1.000,1\n"
        "3,0.7000,9.750,1.000,1.000,1.000,0\n"
        "4,0.8000,4.500,1.000,1.000,1.000,1\n");
}

TEST_CASE("a log that can't be written is a failure") {
  const test::TemporaryFolder folder;
  CHECK_THROWS_AS(FrameLog(folder / "none" / "frames.csv"), Error);
  // As full as a disk can be.
  FrameLog full("/dev/full");
  for (int i = 0; i < 10'000; ++i) full.add({});
  CHECK_THROWS_AS(full.finish(), Error);
  FrameLog none;
  none.add({.turn = 2});
  none.finish();
  CHECK(none.summary().longest == 2);
}

TEST_CASE("the parts of a turn add up to no more than the turn, and it begins anew") {
  FrameTimer timer;
  const auto sleep = [] { std::this_thread::sleep_for(std::chrono::milliseconds(2)); };
  timer.begin();
  sleep();
  timer.did(FrameTimer::Part::other);
  sleep();
  timer.did(FrameTimer::Part::interface);
  sleep();
  timer.did(FrameTimer::Part::submit);
  sleep();
  timer.did(FrameTimer::Part::display);
  sleep();
  timer.did(FrameTimer::Part::interface);
  const FrameLog::Frame first = timer.end(true);
  CHECK(first.busy);
  CHECK(first.interface >= 4);
  CHECK(first.submit >= 2);
  CHECK(first.display >= 2);
  CHECK(first.turn >= first.interface + first.submit + first.display + 2);
  timer.begin();
  const FrameLog::Frame second = timer.end(false);
  CHECK(second.interface == 0);
  CHECK(second.seconds >= first.seconds + first.turn / 1000);
}

}  // namespace vitrine::desktop
