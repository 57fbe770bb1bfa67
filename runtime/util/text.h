// Text from files and command lines, made fit for a one-line message.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace vitrine {

// The text in double quotes with control characters, quotes and bytes that are no UTF-8 escaped
// (a hostile name must not write into the terminal), cut with "..." after about `limit` bytes.
// (Not `quoted`: <iomanip> has a std::quoted that a std::string argument would find too.)
std::string in_quotes(std::string_view text, size_t limit = 80);

// A path as it appears in messages: unquoted, but just as harmless.
std::string shown(const std::filesystem::path& path);

// "1 head", "12 heads"; for nouns whose plural is that.
std::string counted(uint64_t count, std::string_view noun);

// The offset of the first byte that is not part of valid UTF-8 (overlong forms, surrogates and
// anything past U+10FFFF are not), or nothing.
std::optional<size_t> find_invalid_utf8(std::string_view text);

}  // namespace vitrine
