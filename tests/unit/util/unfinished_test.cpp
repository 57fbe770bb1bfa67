#include "runtime/util/unfinished.h"

#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <csignal>
#include <deque>
#include <string>

#include "runtime/util/atomic_file.h"
#include "runtime/util/atomic_folder.h"
#include "tests/support/temporary_folder.h"

namespace vitrine::test {
namespace {

// How a process ended that began with this done about the signal, was prepared as programs are, and did this.
int end_of(int signal, void (*begins_with)(int), const auto& work) {
  const pid_t child = fork();
  if (child == 0) {
    std::signal(signal, begins_with);
    remove_unfinished_on_signals();
    work();
    _exit(0);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return status;
}

void check_ended_by(int signal, int status) {
  REQUIRE(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == signal);
}

}  // namespace

TEST_CASE("a signal that ends the process takes unfinished files along, and nothing else") {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    CAPTURE(signal);
    const TemporaryFolder folder;
    folder.file("replaced", "old");
    check_ended_by(signal, end_of(signal, SIG_DFL, [&] {
                     write_file_atomically(folder / "finished", to_bytes("new"));
                     AtomicFile one(folder / "replaced"), two(folder / "new");
                     one.write(to_bytes("half"));
                     two.write(to_bytes("half"));
                     raise(signal);
                   }));
    CHECK(folder.names() == std::vector<std::string>{"finished", "replaced"});
    CHECK(read_whole_file(folder / "replaced") == "old");
  }
}

TEST_CASE("a signal that ends the process takes an unfinished folder along") {
  const TemporaryFolder place;
  check_ended_by(SIGTERM, end_of(SIGTERM, SIG_DFL, [&] {
                   AtomicFolder folder(place / "saved", {"a", "b"});
                   write_file_atomically(folder.path() / "a", to_bytes("whole"));
                   AtomicFile half(folder.path() / "b");
                   half.write(to_bytes("half"));
                   raise(SIGTERM);
                 }));
  CHECK(place.names().empty());
}

TEST_CASE("a signal that was to be ignored stays ignored") {
  const TemporaryFolder folder;
  const int status = end_of(SIGHUP, SIG_IGN, [&] {
    AtomicFile file(folder / "a");
    file.write(to_bytes("whole"));
    raise(SIGHUP);
    file.commit();
  });
  CHECK(WIFEXITED(status));
  CHECK(read_whole_file(folder / "a") == "whole");
}

TEST_CASE("more unfinished files than a signal can remember are written nevertheless") {
  const TemporaryFolder folder;
  std::deque<AtomicFile> files;
  for (int i = 0; i < 100; ++i) files.emplace_back(folder / std::to_string(i)).write(to_bytes("whole"));
  for (AtomicFile& file : files) file.commit();
  CHECK(folder.names().size() == 100);
}

}  // namespace vitrine::test
