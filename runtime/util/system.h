// What operating systems differ in, as functions that say what went wrong by a std::error_code and leave the
// sentence to their callers. The folders posix and windows have them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace vitrine::system {

enum class FileKind { regular, folder, other };

struct FileStatus {
  FileKind kind = FileKind::other;
  uint64_t device = 0, number = 0;  // of the file system, and of the file on it
  uint64_t bytes = 0;
  uint64_t modified = 0, changed = 0;  // nanoseconds: of the content, and of what the file system keeps of it
};
// Of what a link leads to.
std::error_code status_of(const std::filesystem::path& path, FileStatus& status);

// An open file, closed when it goes. Interrupted calls go on.
class File {
 public:
  File() = default;
  ~File();
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  // To read. A pipe that nobody writes to isn't waited for; a folder may be opened, too.
  std::error_code open(const std::filesystem::path& path);
  // To write. std::errc::file_exists where there is something of this name.
  std::error_code create(const std::filesystem::path& path);
  // To read and write.
  std::error_code open_or_create(const std::filesystem::path& path);
  bool is_open() const { return handle_ != closed; }

  std::error_code status(FileStatus& status) const;
  // Fewer bytes than asked for at the file's end. Several threads may read at once.
  std::error_code read(uint64_t offset, std::span<std::byte> into, size_t& count) const;
  // All of them, behind what was written before.
  std::error_code write(std::span<const std::byte> bytes);
  // What is behind `bytes` goes, and writing goes on there.
  std::error_code cut(uint64_t bytes);
  std::error_code take_permissions_of(const std::filesystem::path& other);
  // To the disk; no error where the file system can't be asked.
  std::error_code sync();
  // Some file systems say only now that there was no room.
  std::error_code close();
  // Read-only memory, which stays when the file is closed. Not for 0 bytes.
  std::error_code map(size_t bytes, const std::byte*& memory) const;

 private:
  static constexpr intptr_t closed = -1;
  intptr_t handle_ = closed;
};
void unmap(std::span<const std::byte> memory);
// Mapped memory back to the system, which reads it again where it is touched: a hint.
void forget(std::span<const std::byte> memory);

// One step: whoever opens `to` finds the old file or the new one.
std::error_code rename(const std::filesystem::path& from, const std::filesystem::path& to);
// Two names swapped in one step; false where that can't be done.
bool exchange(const std::filesystem::path& a, const std::filesystem::path& b);
// std::errc::file_exists where there is something of this name.
std::error_code make_folder(const std::filesystem::path& path);
// What a folder's listing says of an entry without looking at it; unknown for links, too.
enum class EntryKind { folder, other, unknown };
// In no order. What an Error of `take` is goes through.
std::error_code list_folder(const std::filesystem::path& path,
                            const std::function<void(std::string_view name, EntryKind kind)>& take);
// The names in a folder to the disk; no error where that can't be asked for.
std::error_code sync_folder(const std::filesystem::path& path);
// A file or an empty folder. May be called in a signal's handler.
void remove(const std::filesystem::path::value_type* path) noexcept;

uint64_t process_number();
bool process_is_gone(uint64_t number);

// The signals that ask this program to end, without those that it was started to ignore.
std::vector<int> ending_signals();
// Calls it once, with no other signal in between; the signal then does again what it does to a program that
// handles none. May be called in a signal's handler.
void handle_once(int signal, void (*handler)(int));
// For such a handler's end: ends the process, as soon as the handler returns, as the signal would have.
void end_by(int signal);

bool stderr_is_terminal();
// For a program's main(): its arguments in UTF-8, without the program's own name. What it prints from now on
// arrives as it is printed.
std::vector<std::string> begin_program(int count, char** values);
// For its end: "PROGRAM: SENTENCE" on stderr, or in a box where it was started without one, as from a
// desktop.
void say_failure(const std::string& program, const std::string& sentence);
// A variable of the environment in UTF-8, null where it isn't set. HOME is the user's folder on every system.
const char* variable(const char* name);
// Where programs keep what they can make again, a folder for each; none where nothing says.
std::optional<std::filesystem::path> user_cache();
// Where this system keeps its fonts.
std::vector<std::filesystem::path> font_folders();
// The running program's own file; empty where it can't be told.
std::filesystem::path program();

// The calling thread's CPU time so far; nothing where no clock counts it in less than milliseconds.
std::optional<double> thread_seconds();

// Whether std::chrono::steady_clock is the clock that Vulkan calls VK_TIME_DOMAIN_CLOCK_MONOTONIC_KHR.
extern const bool steady_clock_is_monotonic;

}  // namespace vitrine::system
