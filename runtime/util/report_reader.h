// What a program that was started once more reports, out of all that is written to its standard output.
#pragma once

#include <cstdio>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace vitrine {

// ASCII's record separator, behind which a report begins: drivers and their layers write there, too.
inline constexpr char report_mark = '\x1e';

class ReportReader {
 public:
  using Take = std::function<void(const std::string& line)>;
  explicit ReportReader(Take take) : take_(std::move(take)) {}

  // Pieces end anywhere. What is no report goes to stderr.
  void add(std::string_view piece) {
    text_.append(piece);
    size_t begin = 0;
    for (size_t end = text_.find('\n'); end != std::string::npos; end = text_.find('\n', begin)) {
      take_line(text_.substr(begin, end - begin));
      begin = end + 1;
    }
    text_.erase(0, begin);
  }

 private:
  void take_line(const std::string& line) {
    const size_t mark = line.find(report_mark);
    if (mark == std::string::npos) {
      std::fprintf(stderr, "%s\n", line.c_str());
      return;
    }
    if (mark > 0) std::fprintf(stderr, "%s\n", line.substr(0, mark).c_str());
    take_(line.substr(mark + 1));
  }

  Take take_;
  std::string text_;
};

}  // namespace vitrine
