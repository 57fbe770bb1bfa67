#include "runtime/util/json.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "runtime/util/error.h"
#include "runtime/util/mapped_file.h"
#include "runtime/util/text.h"

namespace vitrine {
namespace {

constexpr size_t chunk = size_t{1} << 20;

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

// "line 3, column 14", or the byte where counting lines would mean reading much again.
std::string place(std::string_view text, size_t offset) {
  if (offset >= chunk) return "byte " + std::to_string(offset);
  const std::string_view before = text.substr(0, offset);
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const size_t column = offset - (before.rfind('\n') + 1) + 1;  // npos + 1 is 0
  return "line " + std::to_string(line) + ", column " + std::to_string(column);
}

// Finds, in one pass and without memory, what would make the parser use much of it: nlohmann's lexer
// keeps every token whole and knows no depth. Here too: encoding, and NUL, which it takes for the end.
class Inspection {
 public:
  Inspection(std::string_view text, const std::string& name, const JsonLimits& limits)
      : text_(text), name_(name), limits_(limits) {}

  void run(const std::function<void(size_t)>& passed) {
    size_t at = 0;
    while (at < text_.size()) {
      size_t end = std::min(at + chunk, text_.size());
      // A chunk ends between characters; in valid UTF-8 a lead byte is at most 3 bytes back.
      for (int back = 0; back < 3 && end < text_.size() && (text_[end] & 0xC0) == 0x80; ++back) --end;
      if (const auto bad = find_invalid_utf8(text_.substr(at, end - at))) {
        refuse("is not UTF-8: a bad byte", at + *bad);
      }
      for (; at < end; ++at) look_at(at);
      if (passed) passed(end);
    }
  }

 private:
  [[noreturn]] void refuse(const std::string& what, size_t offset) const {
    throw Error(ErrorCode::bad_file, name_ + " " + what + " at " + place(text_, offset));
  }

  void look_at(size_t at) {
    const char c = text_[at];
    if (c == '\0') refuse("is not valid JSON: a NUL byte", at);
    if (in_string_) {
      extend_token(at);
      if (escaped_) {
        escaped_ = false;
      } else if (c == '\\') {
        escaped_ = true;
      } else if (c == '"') {
        in_string_ = false;
        token_ = 0;
      }
    } else if (c == '"') {
      in_string_ = true;
      token_ = 0;
    } else if (c == '[' || c == '{') {
      token_ = 0;
      if (++depth_ > limits_.depth) {
        refuse("nests deeper than " + std::to_string(limits_.depth) + " levels", at);
      }
    } else if (c == ']' || c == '}') {
      token_ = 0;
      if (depth_ > 0) --depth_;
    } else if (is_space(c) || c == ',' || c == ':') {
      token_ = 0;
    } else {
      extend_token(at);
    }
  }

  void extend_token(size_t at) {
    if (++token_ > limits_.token) {
      refuse("has a string or number of more than " + std::to_string(limits_.token) + " bytes", at);
    }
  }

  std::string_view text_;
  const std::string& name_;
  const JsonLimits& limits_;
  size_t depth_ = 0;
  size_t token_ = 0;
  bool in_string_ = false;
  bool escaped_ = false;
};

// Hands the text to the parser. White space between tokens becomes one space: the lexer keeps all
// it reads since the last string or number, megabytes of blanks too.
class Feed {
 public:
  Feed(std::string_view text, const std::function<void(size_t)>& passed) : text_(text), passed_(passed) {}

  bool at_end() const { return at_ == text_.size(); }
  char current() const { return is_blank() ? ' ' : text_[at_]; }
  void advance() {
    const char c = text_[at_];
    ++delivered_;
    last_ = at_;
    if (is_blank()) {
      do step();
      while (at_ < text_.size() && is_space(text_[at_]));
      return;
    }
    if (escaped_) {
      escaped_ = false;
    } else if (in_string_ && c == '\\') {
      escaped_ = true;
    } else if (c == '"') {
      in_string_ = !in_string_;
    }
    step();
  }
  size_t delivered() const { return delivered_; }
  size_t last() const { return last_; }

 private:
  bool is_blank() const { return !in_string_ && is_space(text_[at_]); }
  void step() {
    ++at_;
    if (passed_ && at_ >= reported_ + chunk) passed_(reported_ = at_);
  }

  std::string_view text_;
  const std::function<void(size_t)>& passed_;
  size_t at_ = 0;
  size_t last_ = 0;
  size_t delivered_ = 0;
  size_t reported_ = 0;
  bool in_string_ = false;
  bool escaped_ = false;
};

// The iterators that nlohmann's parser wants. A default one is the end.
struct FeedIterator {
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = char;

  Feed* feed = nullptr;

  char operator*() const { return feed->current(); }
  FeedIterator& operator++() {
    feed->advance();
    return *this;
  }
  bool operator==(const FeedIterator& other) const { return is_end() == other.is_end(); }
  bool operator!=(const FeedIterator& other) const { return !(*this == other); }
  bool is_end() const { return feed == nullptr || feed->at_end(); }
};

// nlohmann's SAX interface on one side, ours on the other.
class Adapter : public nlohmann::json_sax<nlohmann::json> {
 public:
  Adapter(std::string_view text, const std::string& name, const Feed& feed, JsonEvents& events)
      : text_(text), name_(name), feed_(feed), events_(events) {}

  bool null() override { return events_.null(), true; }
  bool boolean(bool value) override { return events_.boolean(value), true; }
  bool number_integer(number_integer_t value) override { return events_.negative_integer(value), true; }
  bool number_unsigned(number_unsigned_t value) override { return events_.unsigned_integer(value), true; }
  bool number_float(number_float_t value, const string_t&) override { return events_.real(value), true; }
  bool string(string_t& value) override { return events_.string(value), true; }
  bool binary(binary_t&) override { return false; }  // not a thing in JSON text
  bool start_object(size_t) override { return events_.begin_object(), true; }
  bool key(string_t& name) override { return events_.key(name), true; }
  bool end_object() override { return events_.end_object(), true; }
  bool start_array(size_t) override { return events_.begin_array(), true; }
  bool end_array() override { return events_.end_array(), true; }

  bool parse_error(size_t read, const std::string& token, const nlohmann::json::exception& why) override {
    constexpr int number_overflow = 406;
    std::string message = name_ + " is not valid JSON: ";
    if (why.id == number_overflow) {
      message += "the number " + in_quotes(token, 40) + " is too large for a double";
    } else if (read > feed_.delivered()) {
      message += "it ends too early, after " + std::to_string(text_.size()) + " bytes";
    } else {
      size_t begin = feed_.last();
      while (begin > 0 && (text_[begin] & 0xC0) == 0x80) --begin;
      size_t end = feed_.last() + 1;
      while (end < text_.size() && (text_[end] & 0xC0) == 0x80) ++end;
      message += "unexpected " + in_quotes(text_.substr(begin, end - begin)) + " at " + place(text_, begin);
    }
    throw Error(ErrorCode::bad_file, message);
  }

 private:
  std::string_view text_;
  const std::string& name_;
  const Feed& feed_;
  JsonEvents& events_;
};

class TreeBuilder final : public JsonEvents {
 public:
  TreeBuilder(const std::string& name, const JsonLimits& limits) : name_(name), limits_(limits) {}

  void begin_object() override { open_.push_back(&add(nlohmann::json::object())); }
  void key(const std::string& key) override {
    if (open_.back()->contains(key)) {
      throw Error(ErrorCode::bad_file, name_ + " has the key " + in_quotes(key) + " twice in one object");
    }
    key_ = key;
  }
  void end_object() override { open_.pop_back(); }
  void begin_array() override { open_.push_back(&add(nlohmann::json::array())); }
  void end_array() override { open_.pop_back(); }
  void null() override { add(nullptr); }
  void boolean(bool value) override { add(value); }
  void unsigned_integer(uint64_t value) override { add(value); }
  void negative_integer(int64_t value) override { add(value); }
  void real(double value) override { add(value); }
  void string(const std::string& value) override { add(value); }

  nlohmann::json take() { return std::move(root_); }

 private:
  nlohmann::json& add(nlohmann::json value) {
    if (++values_ > limits_.values) {
      throw Error(ErrorCode::bad_file, name_ + " holds more than " + std::to_string(limits_.values) +
                                           " values, expected a configuration");
    }
    if (open_.empty()) return root_ = std::move(value);
    nlohmann::json& parent = *open_.back();
    if (parent.is_array()) return parent.emplace_back(std::move(value));
    return parent[key_] = std::move(value);
  }

  const std::string& name_;
  const JsonLimits& limits_;
  nlohmann::json root_;
  // Pointers stay good: a container only grows at its end, and never while an inner one is open.
  std::vector<nlohmann::json*> open_;
  std::string key_;
  size_t values_ = 0;
};

}  // namespace

void parse_json_events(std::string_view text, const std::string& name, JsonEvents& events,
                       const JsonLimits& limits, const std::function<void(size_t)>& passed) {
  if (text.size() > limits.bytes) {
    throw Error(ErrorCode::bad_file, name + " is " + std::to_string(text.size()) +
                                         " bytes of JSON, expected at most " + std::to_string(limits.bytes));
  }
  Inspection(text, name, limits).run(passed);
  Feed feed(text, passed);
  Adapter adapter(text, name, feed, events);
  nlohmann::json::sax_parse(FeedIterator{&feed}, FeedIterator{}, &adapter);
}

nlohmann::json parse_json(std::string_view text, const std::string& name, const JsonLimits& limits) {
  TreeBuilder tree(name, limits);
  parse_json_events(text, name, tree, limits);
  return tree.take();
}

nlohmann::json read_json(const std::filesystem::path& path, const JsonLimits& limits) {
  const MappedFile file(path);
  const std::string name = shown(path);
  TreeBuilder tree(name, limits);
  const auto forget = [&](size_t bytes) { file.forget(file.bytes().first(bytes)); };
  parse_json_events({reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()}, name, tree,
                    limits, forget);
  return tree.take();
}

}  // namespace vitrine
