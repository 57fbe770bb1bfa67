// vitrine bench --trace: an inference loop's timeline, in Chrome's trace format.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "runtime/graph/executable.h"
#include "runtime/graph/trace/traced_loop.h"

namespace vitrine::cli {

struct TraceResult {
  std::string file;
  uint64_t runs = 0;
  CopyTimes copies;
};

// Traces a loop of so many runs on what lies in set 0's inputs, and writes `file`; `title` says of what.
// Throws Error(failed) unless each run's outputs are those that set 0 holds.
TraceResult trace_bench(Executable& executable, uint64_t runs, const std::string& file,
                        const std::string& title);

// The file's contents: opens in chrome://tracing and in Perfetto.
nlohmann::ordered_json chrome_trace(const LoopTrace& trace, const std::string& title);

void add_trace(nlohmann::ordered_json& line, const TraceResult& trace);
void print_trace(const TraceResult& trace);

}  // namespace vitrine::cli
