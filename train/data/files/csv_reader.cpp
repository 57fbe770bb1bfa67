#include "train/data/files/csv_reader.h"

#include <algorithm>
#include <vector>

#include "runtime/util/error.h"

namespace vitrine {
namespace {

class Reader {
 public:
  Reader(std::string_view text, const std::string& name) : text_(text), name_(name) {
    if (text_.starts_with("\xef\xbb\xbf")) at_ = 3;
  }

  // False behind the last.
  bool row() {
    line_ = next_line_;
    fields_ = 0;
    if (at_ == text_.size()) return false;
    while (true) {
      std::string& field = next_field();
      if (text_[at_] == '"') {
        quoted(field);
      } else {
        plain(field);
      }
      if (at_ == text_.size()) return true;
      if (text_[at_] == ',') {
        ++at_;
        // A comma at the end of the file has an empty field behind it.
        if (at_ < text_.size()) continue;
        next_field();
        return true;
      }
      at_ = std::min(text_.size(), at_ + (text_[at_] == '\r' ? 2 : 1));
      ++next_line_;
      return true;
    }
  }

  std::span<const std::string> fields() const { return {all_.data(), fields_}; }
  bool empty() const { return fields_ == 1 && all_[0].empty() && !was_quoted_; }
  uint64_t line() const { return line_; }

 private:
  std::string& next_field() {
    if (fields_ == all_.size()) all_.emplace_back();
    std::string& field = all_[fields_++];
    field.clear();
    was_quoted_ = false;
    return field;
  }

  bool ends_here(size_t at) const {
    return at == text_.size() || text_[at] == ',' || text_[at] == '\n' ||
           (text_[at] == '\r' && (at + 1 == text_.size() || text_[at + 1] == '\n'));
  }

  void plain(std::string& field) {
    const size_t begin = at_;
    for (; !ends_here(at_); ++at_) {
      if (text_[at_] == '"') fail("found a quote inside a field, expected quotes around all of it");
    }
    field = text_.substr(begin, at_ - begin);
  }

  void quoted(std::string& field) {
    was_quoted_ = true;
    for (++at_;; ++at_) {
      if (at_ == text_.size()) fail("found a quote that isn't closed, expected another");
      if (text_[at_] == '"') {
        ++at_;
        if (at_ == text_.size() || text_[at_] != '"') break;
      }
      next_line_ += text_[at_] == '\n';
      field += text_[at_];
    }
    if (!ends_here(at_)) fail("found text behind a closed quote, expected a comma or the end of the line");
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw Error(ErrorCode::bad_file, name_ + ", line " + std::to_string(line_) + ": " + what);
  }

  std::string_view text_;
  const std::string& name_;
  size_t at_ = 0;
  uint64_t line_ = 1, next_line_ = 1;
  std::vector<std::string> all_;  // room for fields
  size_t fields_ = 0;
  bool was_quoted_ = false;  // the last one
};

}  // namespace

void read_csv(std::string_view text, const std::string& name,
              const std::function<void(std::span<const std::string> fields, uint64_t line)>& take) {
  for (Reader reader(text, name); reader.row();) {
    if (!reader.empty()) take(reader.fields(), reader.line());
  }
}

}  // namespace vitrine
