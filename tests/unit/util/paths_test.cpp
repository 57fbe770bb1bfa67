#include "runtime/util/paths.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <string>

#include "tests/support/system.h"
#include "tests/support/temporary_folder.h"

namespace vitrine::test {
namespace {

using Catch::Matchers::ContainsSubstring;

std::string message_of(ErrorCode code, const auto& action) {
  try {
    action();
  } catch (const Error& error) {
    CHECK(error.code() == code);
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("paths are told apart, and what isn't there is no error") {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.file("a", "1");
  CHECK(path_exists(file));
  CHECK(is_file(file));
  CHECK_FALSE(is_folder(file));
  CHECK(path_exists(folder.path()));
  CHECK(is_folder(folder.path()));
  CHECK_FALSE(is_file(folder.path()));
  for (const Path& nothing : {folder / "none", Path(file) / "below"}) {
    CHECK_FALSE(path_exists(nothing));
    CHECK_FALSE(is_folder(nothing));
    CHECK_FALSE(is_file(nothing));
  }
}

TEST_CASE("a path that can't be looked at is an error that names it") {
  const TemporaryFolder folder;
  const std::filesystem::path loop = folder / "loop", longest = folder / std::string(256, 'x');
  test::make_link(loop, loop);
  for (const std::filesystem::path& path : {loop, longest}) {
    const auto names_it = ContainsSubstring("cannot look at " + path.string() + ": ");
    CHECK_THAT(message_of(ErrorCode::bad_file, [&] { path_exists(path); }), names_it);
    CHECK_THAT(message_of(ErrorCode::bad_file, [&] { is_folder(path); }), names_it);
    CHECK_THAT(message_of(ErrorCode::usage, [&] { is_file(path, ErrorCode::usage); }), names_it);
  }
}

TEST_CASE("folders are made with those above them, or an error names them") {
  const TemporaryFolder folder;
  make_folders(folder / "a/b");
  make_folders(folder / "a/b");
  CHECK(is_folder(folder / "a/b"));
  const std::filesystem::path file = folder.file("file", "1");
  for (const std::filesystem::path& path : {file, file / "below"}) {
    CHECK_THAT(message_of(ErrorCode::failed, [&] { make_folders(path); }),
               ContainsSubstring("cannot make the folder " + path.string() + ": "));
  }
}

}  // namespace vitrine::test
