// Text as code points, and what tokenizers do to them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace vitrine::unicode {

// From UTF-8 that is valid (find_invalid_utf8), and back.
std::u32string decode(std::string_view text);
std::string encode(std::u32string_view text);
void append(std::string& text, char32_t code);
// Bytes of the character that begins so.
size_t length_at(std::string_view text);

bool is_letter(char32_t code);        // \p{L}
bool is_number(char32_t code);        // \p{N}
bool is_space(char32_t code);         // \s of regular expressions: White_Space
bool is_python_space(char32_t code);  // str.isspace(): four control characters more
bool is_ascii_punctuation(char32_t code);

// Letter by letter.
std::u32string lower(std::u32string_view text);
// As Python's str.lower(): a sigma at a word's end becomes its final form.
std::u32string python_lower(std::u32string_view text);
// Canonical composition.
std::u32string nfc(std::u32string_view text);

}  // namespace vitrine::unicode
