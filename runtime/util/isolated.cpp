#include "runtime/util/isolated.h"

#include <cstdio>
#include <cstdlib>

#include "runtime/util/report_reader.h"

namespace vitrine {

void report(const std::string& line) {
  const std::string text = report_mark + line + "\n";
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
    std::_Exit(1);
}

}  // namespace vitrine
