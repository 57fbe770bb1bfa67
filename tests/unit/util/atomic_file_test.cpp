#include "runtime/util/atomic_file.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <csignal>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/util/error.h"
#include "tests/support/system.h"
#include "tests/support/temporary_folder.h"

namespace vitrine::test {
namespace {

using Catch::Matchers::ContainsSubstring;

// While one lives, no file of this process can grow past `bytes`: a full disk that needs no disk.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    old_handler_ = std::signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &old_limit_);
    const rlimit limit{bytes, old_limit_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &old_limit_);
    std::signal(SIGXFSZ, old_handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit old_limit_{};
  void (*old_handler_)(int) = nullptr;
};

std::string message_of(const auto& action) {
  try {
    action();
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::failed);
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("write_file_atomically creates and replaces a file and leaves nothing else") {
  const TemporaryFolder folder;
  write_file_atomically(folder / "a.bin", to_bytes("first"));
  CHECK(read_whole_file(folder / "a.bin") == "first");
  write_file_atomically(folder / "a.bin", to_bytes("second, longer"));
  CHECK(read_whole_file(folder / "a.bin") == "second, longer");
  write_file_atomically(folder / "a.bin", {});
  CHECK(read_whole_file(folder / "a.bin").empty());
  CHECK(folder.names() == std::vector<std::string>{"a.bin"});
}

TEST_CASE("an AtomicFile shows nothing before commit and is removed without one") {
  const TemporaryFolder folder;
  folder.file("a.bin", "old");
  {
    AtomicFile file(folder / "a.bin");
    file.write(to_bytes("new "));
    CHECK(read_whole_file(folder / "a.bin") == "old");
    CHECK(folder.names().size() == 2);
  }
  CHECK(folder.names() == std::vector<std::string>{"a.bin"});
  CHECK(read_whole_file(folder / "a.bin") == "old");

  AtomicFile file(folder / "a.bin");
  file.write(to_bytes("new "));
  file.write(to_bytes("content"));
  file.commit();
  CHECK(read_whole_file(folder / "a.bin") == "new content");
  CHECK_THROWS_AS(file.write(to_bytes("more")), Error);
  CHECK(read_whole_file(folder / "a.bin") == "new content");
}

TEST_CASE("two AtomicFiles of one name do not disturb each other") {
  const TemporaryFolder folder;
  AtomicFile one(folder / "a.bin");
  AtomicFile two(folder / "a.bin");
  one.write(to_bytes("one"));
  two.write(to_bytes("two"));
  two.commit();
  one.commit();
  CHECK(read_whole_file(folder / "a.bin") == "one");
}

TEST_CASE("a full disk keeps the old file whole and names it") {
  const TemporaryFolder folder;
  folder.file("weights.bin", "old");
  const std::string big(1 << 16, 'x');
  {
    const FileSizeLimit limit(1000);
    const std::string message =
        message_of([&] { write_file_atomically(folder / "weights.bin", to_bytes(big)); });
    CHECK_THAT(message, ContainsSubstring("weights.bin"));
    CHECK_THAT(message, ContainsSubstring("too large"));
  }
  CHECK(read_whole_file(folder / "weights.bin") == "old");
  CHECK(folder.names() == std::vector<std::string>{"weights.bin"});
}

TEST_CASE("a process killed while writing leaves the old file whole") {
  const TemporaryFolder folder;
  folder.file("a.bin", "old");
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    AtomicFile file(folder / "a.bin");
    file.write(to_bytes("half of the new"));
    raise(SIGKILL);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFSIGNALED(status));
  CHECK(read_whole_file(folder / "a.bin") == "old");
}

TEST_CASE("what cannot be written is named") {
  const TemporaryFolder folder;
  folder.file("file", "x");
  std::filesystem::create_directory(folder / "folder");
  const auto attempt = [&](const std::string& name) {
    const std::string message = message_of([&] { AtomicFile file(folder / name); });
    CHECK_THAT(message, ContainsSubstring((folder / name).string()));
    CHECK(message.find('\n') == std::string::npos);
    return message;
  };
  CHECK_THAT(attempt("missing/a.bin"), ContainsSubstring("No such file"));
  CHECK_THAT(attempt("file/a.bin"), ContainsSubstring("Not a directory"));
  CHECK_THAT(attempt("folder"), ContainsSubstring("a folder"));
  CHECK_THAT(attempt("folder/"), ContainsSubstring("directory"));
  CHECK_THAT(attempt(std::string(300, 'n')), ContainsSubstring("too long"));
  CHECK_THAT(message_of([&] { AtomicFile file("/dev/null"); }), ContainsSubstring("not a regular file"));
  CHECK_THAT(message_of([&] { AtomicFile file(""); }), ContainsSubstring("cannot"));
  CHECK(folder.names() == std::vector<std::string>{"file", "folder"});
}

TEST_CASE("the longest possible file name can be written") {
  const TemporaryFolder folder;
  const std::string name(255, 'n');
  write_file_atomically(folder / name, to_bytes("x"));
  CHECK(read_whole_file(folder / name) == "x");
}

TEST_CASE("a replaced file keeps its permissions, a link its place") {
  const TemporaryFolder folder;
  folder.file("real.bin", "old");
  REQUIRE(chmod((folder / "real.bin").c_str(), 0640) == 0);
  test::make_link("real.bin", folder / "link.bin");
  write_file_atomically(folder / "link.bin", to_bytes("new"));
  CHECK(std::filesystem::is_symlink(folder / "link.bin"));
  CHECK(read_whole_file(folder / "real.bin") == "new");
  struct stat status{};
  REQUIRE(stat((folder / "real.bin").c_str(), &status) == 0);
  CHECK((status.st_mode & 07777) == 0640);
}

TEST_CASE("what a killed process left unfinished goes, and nothing else") {
  const TemporaryFolder folder;
  // A process that is gone, and one that lives.
  const pid_t child = fork();
  if (child == 0) _exit(0);
  REQUIRE(waitpid(child, nullptr, 0) == child);
  const std::string gone = std::to_string(child), alive = std::to_string(getppid());
  folder.file(".model.bin." + gone + ".7.tmp", "half");
  folder.file(".best." + gone + ".12.tmp/.config." + gone + ".13.tmp", "half of a file in half of a folder");
  folder.file(".model.bin." + std::to_string(getpid()) + ".0.tmp", "of one that had our number");
  const std::vector<std::string> stay{".model.bin." + alive + ".7.tmp",
                                      ".other.bin." + gone + ".7.tmp",
                                      "model.bin." + gone + ".7.tmp",
                                      ".model.bin." + gone + ".tmp",
                                      ".model.bin." + gone + ".7.tmp2",
                                      ".model.bin." + gone + "x.7.tmp",
                                      ".model.bin.0.7.tmp",
                                      ".model.bin.-1.7.tmp",
                                      ".model.bin.18446744073709551615.7.tmp",
                                      "model.bin"};
  for (const std::string& name : stay) folder.file(name, "stays");
  remove_left_behind(folder.path(),
                     [](std::string_view name) { return name == "model.bin" || name == "best"; });
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    found.push_back(entry.path().filename().string());
  std::vector<std::string> wanted = stay;
  std::ranges::sort(found);
  std::ranges::sort(wanted);
  CHECK(found == wanted);
  remove_left_behind(folder / "nothing", [](std::string_view) { return true; });
}

}  // namespace vitrine::test
