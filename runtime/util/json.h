// Strict JSON reading: the grammar of RFC 8259 and nothing more, duplicate keys refused, size and
// depth bounded before any memory is taken, errors in one sentence that names the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace vitrine {

struct JsonLimits {
  size_t bytes = size_t{16} << 20;
  size_t depth = 64;               // arrays and objects inside each other
  size_t token = size_t{1} << 20;  // bytes of one string or number
  size_t values = 200'000;         // what a tree may hold, keys not counted
};

// A configuration file as a tree. Error(bad_file) for anything that breaks a rule.
nlohmann::json read_json(const std::filesystem::path& path, const JsonLimits& limits = {});

// The same for text that came from elsewhere; `name` stands for the file in messages.
nlohmann::json parse_json(std::string_view text, const std::string& name, const JsonLimits& limits = {});

// What a streaming reader of JSON implements. parse_json_events calls it in the order of the text;
// it refuses by throwing. Strings live for the call only.
class JsonEvents {
 public:
  virtual ~JsonEvents() = default;
  virtual void begin_object() = 0;
  virtual void key(const std::string& name) = 0;
  virtual void end_object() = 0;
  virtual void begin_array() = 0;
  virtual void end_array() = 0;
  virtual void null() = 0;
  virtual void boolean(bool value) = 0;
  virtual void unsigned_integer(uint64_t value) = 0;
  // Written with a minus sign, -0 too.
  virtual void negative_integer(int64_t value) = 0;
  // Written with a fraction or an exponent, or too large for 64 bits.
  virtual void real(double value) = 0;
  virtual void string(const std::string& value) = 0;
};

// Streams the text without building anything; its memory is bounded by limits.token (limits.values
// is not looked at). There are two passes: the first checks limits and encoding before anything is
// parsed. `passed`, if given, is called in each now and then with the number of bytes that this pass
// is done with, so that a mapped file can forget them.
void parse_json_events(std::string_view text, const std::string& name, JsonEvents& events,
                       const JsonLimits& limits = {}, const std::function<void(size_t)>& passed = {});

}  // namespace vitrine
