#include "runtime/util/text.h"

namespace vitrine {
namespace {

// How many bytes of valid UTF-8 one character takes at the start of `text`; 0 if it is none.
size_t utf8_length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const auto continues = [&](size_t i, unsigned char low, unsigned char high) {
    return i < text.size() && byte(i) >= low && byte(i) <= high;
  };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return continues(1, 0x80, 0xBF) ? 2 : 0;
  if (lead >= 0xE0 && lead <= 0xEF) {
    const unsigned char low = lead == 0xE0 ? 0xA0 : 0x80;   // shorter forms exist
    const unsigned char high = lead == 0xED ? 0x9F : 0xBF;  // surrogates
    return continues(1, low, high) && continues(2, 0x80, 0xBF) ? 3 : 0;
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    const unsigned char low = lead == 0xF0 ? 0x90 : 0x80;
    const unsigned char high = lead == 0xF4 ? 0x8F : 0xBF;  // past U+10FFFF
    return continues(1, low, high) && continues(2, 0x80, 0xBF) && continues(3, 0x80, 0xBF) ? 4 : 0;
  }
  return 0;
}

void append_escaped(std::string& out, unsigned char byte) {
  constexpr std::string_view digits = "0123456789abcdef";
  out += {'\\', 'x', digits[byte >> 4], digits[byte & 15]};
}

std::string escaped(std::string_view text, size_t limit, bool escape_quotes) {
  std::string out;
  while (!text.empty()) {
    if (out.size() >= limit) return out + "...";
    const size_t length = utf8_length(text);
    const auto first = static_cast<unsigned char>(text[0]);
    if (length == 0 || (length == 1 && (first < 0x20 || first == 0x7F))) {
      append_escaped(out, first);
      text.remove_prefix(1);
      continue;
    }
    if (length == 2 && first == 0xC2 && static_cast<unsigned char>(text[1]) < 0xA0) {  // C1 controls
      append_escaped(out, first);
      append_escaped(out, static_cast<unsigned char>(text[1]));
    } else {
      if (escape_quotes && (first == '"' || first == '\\')) out += '\\';
      out += text.substr(0, length);
    }
    text.remove_prefix(length);
  }
  return out;
}

}  // namespace

std::string in_quotes(std::string_view text, size_t limit) { return '"' + escaped(text, limit, true) + '"'; }

std::string shown(const std::filesystem::path& path) {
  constexpr size_t longest_path = 4096;
  return escaped(path.string(), longest_path, false);
}

std::string counted(uint64_t count, std::string_view noun) {
  return std::to_string(count) + " " + std::string(noun) + (count == 1 ? "" : "s");
}

std::optional<size_t> find_invalid_utf8(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    const size_t length = utf8_length(text.substr(at));
    if (length == 0) return at;
    at += length;
  }
  return std::nullopt;
}

}  // namespace vitrine
