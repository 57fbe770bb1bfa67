// Text that comes in pieces, as lines.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace vitrine {

class LineSplitter {
 public:
  using Take = std::function<void(const std::string& line)>;
  explicit LineSplitter(Take take) : take_(std::move(take)) {}

  // What follows the last line's end waits for more.
  void add(std::string_view piece) {
    text_.append(piece);
    size_t begin = 0;
    for (size_t end = text_.find('\n'); end != std::string::npos; end = text_.find('\n', begin)) {
      take_(text_.substr(begin, end - begin));
      begin = end + 1;
    }
    text_.erase(0, begin);
  }

 private:
  Take take_;
  std::string text_;
};

}  // namespace vitrine
