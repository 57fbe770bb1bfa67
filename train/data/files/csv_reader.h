// Tables as RFC 4180 has them: a row a line, fields with commas between, quotes around those that need them.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace vitrine {

// Tells `take` each row, its fields and the number of its first line, from 1. Lines that are empty are none.
// A byte order mark is skipped. Error(bad_file) that names the line where a quote isn't closed or stands
// where none may be.
void read_csv(std::string_view text, const std::string& name,
              const std::function<void(std::span<const std::string> fields, uint64_t line)>& take);

}  // namespace vitrine
