// The file functions of Windows 10, with which names are UTF-16 and what is open may be renamed and removed.
#include "runtime/util/system.h"

#define WIN32_LEAN_AND_MEAN
#ifndef NOMINMAX
#define NOMINMAX
#endif
#include <windows.h>
// Behind it.
#include <fcntl.h>
#include <io.h>
#include <shellapi.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cwchar>
#include <mutex>
#include <set>
#include <utility>

namespace vitrine::system {
namespace {

// In the words and numbers of std::errc, which callers compare with.
std::error_code error_of(DWORD number) { return {static_cast<int>(number), std::system_category()}; }
std::error_code last_error() { return error_of(GetLastError()); }
std::error_code failed_if(bool failed) { return failed ? last_error() : std::error_code(); }

HANDLE handle_of(intptr_t handle) { return reinterpret_cast<HANDLE>(handle); }

// What a folder or file is opened as may be beyond 260 characters only under a name that is whole.
std::wstring long_name(const std::filesystem::path& path) {
  std::wstring name = path.native();
  constexpr size_t longest = 200;  // names of temporary files are made of it
  if (name.size() <= longest || name.starts_with(L"\\\\?\\")) return name;
  std::error_code ignored;
  name = std::filesystem::absolute(path, ignored).lexically_normal().make_preferred().native();
  if (name.starts_with(L"\\\\")) return L"\\\\?\\UNC" + name.substr(1);
  return L"\\\\?\\" + name;
}

constexpr DWORD share_all = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE;

std::error_code open_as(const std::filesystem::path& path, DWORD access, DWORD how, intptr_t& handle) {
  const HANDLE opened = CreateFileW(long_name(path).c_str(), access, share_all, nullptr, how,
                                    FILE_ATTRIBUTE_NORMAL | FILE_FLAG_BACKUP_SEMANTICS, nullptr);
  if (opened == INVALID_HANDLE_VALUE) return last_error();
  handle = reinterpret_cast<intptr_t>(opened);
  return {};
}

uint64_t whole(DWORD high, DWORD low) { return uint64_t{high} << 32 | low; }

// Windows counts from 1601 in hundreds of nanoseconds.
uint64_t nanoseconds(const LARGE_INTEGER& time) {
  constexpr int64_t from_1601_to_1970 = 116'444'736'000'000'000;
  return static_cast<uint64_t>(std::max<int64_t>(time.QuadPart - from_1601_to_1970, 0)) * 100;
}

std::error_code status_from(HANDLE file, FileStatus& status) {
  if (GetFileType(file) != FILE_TYPE_DISK) {
    status = {};
    return {};
  }
  BY_HANDLE_FILE_INFORMATION found{};
  if (!GetFileInformationByHandle(file, &found)) return last_error();
  FILE_BASIC_INFO times{};
  if (!GetFileInformationByHandleEx(file, FileBasicInfo, &times, sizeof times)) return last_error();
  const bool folder = (found.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY) != 0;
  status = {.kind = folder ? FileKind::folder : FileKind::regular,
            .device = found.dwVolumeSerialNumber,
            .number = whole(found.nFileIndexHigh, found.nFileIndexLow),
            .bytes = whole(found.nFileSizeHigh, found.nFileSizeLow),
            .modified = nanoseconds(times.LastWriteTime),
            .changed = nanoseconds(times.ChangeTime)};
  return {};
}

// Calls of Windows take 32 bits of a size.
DWORD at_once(size_t bytes) { return static_cast<DWORD>(std::min<size_t>(bytes, size_t{1} << 30)); }

std::string utf8_of(const wchar_t* text) {
  const int length = static_cast<int>(std::wcslen(text));
  const int bytes = WideCharToMultiByte(CP_UTF8, 0, text, length, nullptr, 0, nullptr, nullptr);
  std::string result(static_cast<size_t>(std::max(bytes, 0)), '\0');
  WideCharToMultiByte(CP_UTF8, 0, text, length, result.data(), bytes, nullptr, nullptr);
  return result;
}

}  // namespace

std::error_code status_of(const std::filesystem::path& path, FileStatus& status) {
  // Without a right to read it.
  const HANDLE file = CreateFileW(long_name(path).c_str(), FILE_READ_ATTRIBUTES, share_all, nullptr,
                                  OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS, nullptr);
  if (file == INVALID_HANDLE_VALUE) return last_error();
  const std::error_code error = status_from(file, status);
  CloseHandle(file);
  return error;
}

File::~File() { close(); }

std::error_code File::open(const std::filesystem::path& path) {
  return open_as(path, GENERIC_READ, OPEN_EXISTING, handle_);
}

std::error_code File::create(const std::filesystem::path& path) {
  return open_as(path, GENERIC_WRITE, CREATE_NEW, handle_);
}

std::error_code File::open_or_create(const std::filesystem::path& path) {
  return open_as(path, GENERIC_READ | GENERIC_WRITE, OPEN_ALWAYS, handle_);
}

std::error_code File::status(FileStatus& status) const { return status_from(handle_of(handle_), status); }

std::error_code File::read(uint64_t offset, std::span<std::byte> into, size_t& count) const {
  count = 0;
  while (count < into.size()) {
    const uint64_t from = offset + count;
    OVERLAPPED at{};
    at.Offset = static_cast<DWORD>(from);
    at.OffsetHigh = static_cast<DWORD>(from >> 32);
    DWORD got = 0;
    if (!ReadFile(handle_of(handle_), into.data() + count, at_once(into.size() - count), &got, &at)) {
      if (GetLastError() == ERROR_HANDLE_EOF) break;
      return last_error();
    }
    if (got == 0) break;
    count += got;
  }
  return {};
}

std::error_code File::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    DWORD written = 0;
    if (!WriteFile(handle_of(handle_), bytes.data(), at_once(bytes.size()), &written, nullptr)) {
      return last_error();
    }
    bytes = bytes.subspan(written);
  }
  return {};
}

std::error_code File::cut(uint64_t bytes) {
  LARGE_INTEGER end{};
  end.QuadPart = static_cast<LONGLONG>(bytes);
  return failed_if(!SetFilePointerEx(handle_of(handle_), end, nullptr, FILE_BEGIN) ||
                   !SetEndOfFile(handle_of(handle_)));
}

// A new file has those that its folder hands down, as the old one had.
std::error_code File::take_permissions_of(const std::filesystem::path&) { return {}; }

std::error_code File::sync() {
  const std::error_code error = failed_if(!FlushFileBuffers(handle_of(handle_)));
  return error == error_of(ERROR_INVALID_FUNCTION) ? std::error_code() : error;
}

std::error_code File::close() {
  const intptr_t handle = std::exchange(handle_, closed);
  return failed_if(handle != closed && !CloseHandle(handle_of(handle)));
}

std::error_code File::map(size_t bytes, const std::byte*& memory) const {
  const HANDLE mapping = CreateFileMappingW(handle_of(handle_), nullptr, PAGE_READONLY, 0, 0, nullptr);
  if (mapping == nullptr) return last_error();
  const void* view = MapViewOfFile(mapping, FILE_MAP_READ, 0, 0, bytes);
  const std::error_code error = failed_if(view == nullptr);
  CloseHandle(mapping);  // the view keeps it
  memory = static_cast<const std::byte*>(view);
  return error;
}

void unmap(std::span<const std::byte> memory) { UnmapViewOfFile(memory.data()); }

void forget(std::span<const std::byte> memory) {
  SYSTEM_INFO info{};
  GetSystemInfo(&info);
  const uintptr_t page = info.dwPageSize;
  const auto begin = (reinterpret_cast<uintptr_t>(memory.data()) + page - 1) / page * page;
  const auto end = reinterpret_cast<uintptr_t>(memory.data() + memory.size()) / page * page;
  // Unlocking pages that aren't locked takes them out of what the process keeps in memory.
  if (begin < end) VirtualUnlock(reinterpret_cast<void*>(begin), end - begin);
}

std::error_code rename(const std::filesystem::path& from, const std::filesystem::path& to) {
  const std::wstring old_name = long_name(from), new_name = long_name(to);
  const auto is_folder = [](const std::wstring& name) {
    const DWORD attributes = GetFileAttributesW(name.c_str());
    return attributes != INVALID_FILE_ATTRIBUTES && (attributes & FILE_ATTRIBUTE_DIRECTORY) != 0;
  };
  if (is_folder(old_name) && is_folder(new_name)) {
    // A folder takes an empty one's place, as elsewhere.
    if (!RemoveDirectoryW(new_name.c_str())) return last_error();
  }
  constexpr DWORD how = MOVEFILE_REPLACE_EXISTING | MOVEFILE_WRITE_THROUGH;
  // Whoever reads the old file for a moment without sharing it (a scanner of viruses) lets go soon.
  for (int attempt = 0;; ++attempt) {
    if (MoveFileExW(old_name.c_str(), new_name.c_str(), how)) return {};
    const DWORD error = GetLastError();
    const bool in_use = error == ERROR_SHARING_VIOLATION || error == ERROR_ACCESS_DENIED;
    if (!in_use || attempt == 10) return error_of(error);
    Sleep(20);
  }
}

bool exchange(const std::filesystem::path&, const std::filesystem::path&) { return false; }

std::error_code make_folder(const std::filesystem::path& path) {
  return failed_if(!CreateDirectoryW(long_name(path).c_str(), nullptr));
}

std::error_code list_folder(const std::filesystem::path& path,
                            const std::function<void(std::string_view name, EntryKind kind)>& take) {
  WIN32_FIND_DATAW found{};
  const HANDLE opened = FindFirstFileW(long_name(path / L"*").c_str(), &found);
  if (opened == INVALID_HANDLE_VALUE) return last_error();
  struct Closer {
    HANDLE listing;
    ~Closer() { FindClose(listing); }
  } const closer{opened};
  do {
    const DWORD attributes = found.dwFileAttributes;
    take(utf8_of(found.cFileName), (attributes & FILE_ATTRIBUTE_REPARSE_POINT) != 0 ? EntryKind::unknown
                                   : (attributes & FILE_ATTRIBUTE_DIRECTORY) != 0   ? EntryKind::folder
                                                                                    : EntryKind::other);
  } while (FindNextFileW(opened, &found));
  return failed_if(GetLastError() != ERROR_NO_MORE_FILES);
}

// Names are on the disk with what MOVEFILE_WRITE_THROUGH moved there.
std::error_code sync_folder(const std::filesystem::path&) { return {}; }

void remove(const wchar_t* path) noexcept {
  const std::wstring name = long_name(path);  // handlers of signals are threads here, which may allocate
  if (!DeleteFileW(name.c_str())) RemoveDirectoryW(name.c_str());
}

uint64_t process_number() { return GetCurrentProcessId(); }

bool process_is_gone(uint64_t number) {
  const auto id = static_cast<DWORD>(number);
  if (id == 0 || id != number) return false;
  const HANDLE process = OpenProcess(PROCESS_QUERY_LIMITED_INFORMATION, FALSE, id);
  if (process == nullptr) return GetLastError() == ERROR_INVALID_PARAMETER;
  DWORD status = STILL_ACTIVE;
  const bool ended = GetExitCodeProcess(process, &status) && status != STILL_ACTIVE;
  CloseHandle(process);
  return ended;
}

// Windows sends Ctrl-C as SIGINT and Ctrl-Break, a closed console and the end of a session as SIGBREAK.
std::vector<int> ending_signals() { return {SIGINT, SIGTERM, SIGBREAK}; }

// The system's own library restores a signal's default before it calls.
void handle_once(int signal, void (*handler)(int)) { std::signal(signal, handler); }

// What is expected of a program that Ctrl-C ended; the C library's own status, 3, is another one of ours.
void end_by(int) { TerminateProcess(GetCurrentProcess(), static_cast<UINT>(STATUS_CONTROL_C_EXIT)); }

bool stderr_is_terminal() {
  DWORD mode = 0;
  const HANDLE console = GetStdHandle(STD_ERROR_HANDLE);
  if (!GetConsoleMode(console, &mode)) return false;
  // What a line that is written over itself needs.
  return SetConsoleMode(console, mode | ENABLE_VIRTUAL_TERMINAL_PROCESSING) != 0;
}

namespace {

// Whether what is written to stderr goes somewhere; a console that was attached to is not the handle's.
bool has_stderr = true;

}  // namespace

std::vector<std::string> begin_program(int, char**) {
  // A program with a window has none of its own: the shell's that started it.
  if (GetFileType(GetStdHandle(STD_ERROR_HANDLE)) == FILE_TYPE_UNKNOWN) {
    has_stderr = AttachConsole(ATTACH_PARENT_PROCESS) && std::freopen("CONOUT$", "w", stdout) != nullptr &&
                 std::freopen("CONOUT$", "w", stderr) != nullptr;
  }
  SetConsoleOutputCP(CP_UTF8);
  // Else each end of a line would become two bytes.
  for (FILE* stream : {stdout, stderr}) _setmode(_fileno(stream), _O_BINARY);
  int count = 0;
  std::vector<std::string> result;
  wchar_t** values = CommandLineToArgvW(GetCommandLineW(), &count);
  for (int i = 1; i < count; ++i) result.push_back(utf8_of(values[i]));
  LocalFree(values);
  return result;
}

void say_failure(const std::string& program, const std::string& sentence) {
  if (has_stderr) {
    std::fprintf(stderr, "%s: %s\n", program.c_str(), sentence.c_str());
  } else {
    MessageBoxW(nullptr, std::filesystem::path(sentence).c_str(), std::filesystem::path(program).c_str(),
                MB_ICONERROR);
  }
}

const char* variable(const char* name) {
  const auto value_of = [](const std::string& wanted) -> const wchar_t* {
    return _wgetenv(std::wstring(wanted.begin(), wanted.end()).c_str());
  };
  const wchar_t* value = value_of(name);
  if (value == nullptr && std::string_view(name) == "HOME") value = value_of("USERPROFILE");
  if (value == nullptr) return nullptr;
  // Kept, as whoever asks keeps the pointer.
  static std::mutex mutex;
  static std::set<std::string> values;
  const std::lock_guard lock(mutex);
  return values.insert(utf8_of(value)).first->c_str();
}

std::optional<std::filesystem::path> user_cache() {
  const char* folder = variable("LOCALAPPDATA");
  if (folder == nullptr || *folder == '\0') return std::nullopt;
  return folder;
}

std::vector<std::filesystem::path> font_folders() {
  std::vector<std::filesystem::path> folders;
  if (const char* windows = variable("SystemRoot"))
    folders.push_back(std::filesystem::path(windows) / "Fonts");
  if (const char* own = variable("LOCALAPPDATA"))
    folders.push_back(std::filesystem::path(own) / "Microsoft" / "Windows" / "Fonts");
  return folders;
}

std::filesystem::path program() {
  std::wstring name(32768, L'\0');
  name.resize(GetModuleFileNameW(nullptr, name.data(), static_cast<DWORD>(name.size())));
  return name;
}

// Windows counts it in ticks of 10 ms and more.
std::optional<double> thread_seconds() { return std::nullopt; }

const bool steady_clock_is_monotonic = false;

}  // namespace vitrine::system
