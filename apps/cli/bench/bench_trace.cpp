#include "apps/cli/bench/bench_trace.h"

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <span>
#include <vector>

#include "runtime/util/atomic_file.h"
#include "runtime/util/error.h"

namespace vitrine::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr int process = 1;

struct Lane {
  TraceLane lane;
  const char* name;
};
// From above to below, as they are shown.
constexpr Lane lanes[] = {{TraceLane::host, "host"},
                          {TraceLane::compute, "queue: computation"},
                          {TraceLane::copies, "queue: copies"}};

int number_of(TraceLane lane) { return 1 + static_cast<int>(lane); }

Json named(const char* what, int lane, const Json& value) {
  return {{"name", what}, {"ph", "M"}, {"pid", process}, {"tid", lane}, {"args", value}};
}

std::string title_of(const TraceSpan& span) {
  const std::string set(1, static_cast<char>('A' + span.set));
  // What lies in a run needs no number.
  if (!span.operator_name.empty()) return span.operator_name;
  return span.name + " " + std::to_string(span.run) + " (" + set + ")";
}

// In whole nanoseconds: what follows another span begins just where that ends, for viewers that nest what
// overlaps.
double nanoseconds(double seconds) { return std::round(seconds * 1e9); }

// `first` is when the timeline begins.
Json event_of(const TraceSpan& span, double first) {
  const double begin = nanoseconds(span.begin - first), end = nanoseconds(span.end - first);
  Json arguments{{"run", span.run}, {"set", std::string(1, static_cast<char>('A' + span.set))}};
  if (!span.operator_name.empty()) arguments["node"] = span.name;
  return {{"name", title_of(span)},
          {"cat", span.operator_name.empty() ? span.name : "dispatch"},
          {"ph", "X"},
          {"pid", process},
          {"tid", number_of(span.lane)},
          {"ts", begin / 1e3},
          {"dur", std::max(0.0, end - begin) / 1e3},
          {"args", std::move(arguments)}};
}

std::vector<std::vector<std::byte>> copy_of(size_t count, const auto& bytes_at) {
  std::vector<std::vector<std::byte>> all;
  for (size_t i = 0; i < count; ++i) {
    const auto bytes = bytes_at(i);
    all.emplace_back(bytes.begin(), bytes.end());
  }
  return all;
}

}  // namespace

Json chrome_trace(const LoopTrace& trace, const std::string& title) {
  Json events = Json::array();
  events.push_back(named("process_name", 0, {{"name", title}}));
  for (const Lane& lane : lanes) {
    // A device that copies nothing has no queue for it.
    if (std::ranges::find(trace.spans, lane.lane, &TraceSpan::lane) == trace.spans.end()) continue;
    events.push_back(named("thread_name", number_of(lane.lane), {{"name", lane.name}}));
    events.push_back(
        named("thread_sort_index", number_of(lane.lane), {{"sort_index", number_of(lane.lane)}}));
  }
  const auto first_span = std::ranges::min_element(trace.spans, {}, &TraceSpan::begin);
  const double first = first_span == trace.spans.end() ? 0 : first_span->begin;
  for (const TraceSpan& span : trace.spans) events.push_back(event_of(span, first));
  return {{"displayTimeUnit", "ms"},
          {"otherData",
           {{"title", title}, {"device_clock", trace.clocks}, {"uncertainty_us", trace.uncertainty * 1e6}}},
          {"traceEvents", std::move(events)}};
}

TraceResult trace_bench(Executable& executable, uint64_t runs, const std::string& file,
                        const std::string& title) {
  const Plan& plan = executable.plan();
  const auto inputs = copy_of(plan.inputs.size(), [&](size_t i) { return executable.input(i); });
  const auto expected = copy_of(plan.outputs.size(), [&](size_t i) { return executable.output(i); });
  const auto fill = [&](uint32_t set) {
    for (size_t i = 0; i < inputs.size(); ++i)
      std::memcpy(executable.input(i, set).data(), inputs[i].data(), inputs[i].size());
  };
  bool same = true;
  const auto read = [&](uint32_t set) {
    for (size_t i = 0; i < expected.size(); ++i)
      same = same && std::ranges::equal(executable.output(i, set), expected[i]);
  };
  LoopTrace trace;
  {
    TracedLoop loop(executable);
    loop.run(Executable::io_sets, fill, read);  // warm, as what is timed beside it is
    trace = loop.run(runs, fill, read);
  }
  if (!same) {
    throw Error(ErrorCode::failed,
                title + ": the output of a traced run differs from the others', expected the same bits");
  }
  const std::string text =
      chrome_trace(trace, title).dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  write_file_atomically(file, std::as_bytes(std::span(text)));
  return {.file = file, .runs = runs, .copies = copy_times(trace)};
}

void add_trace(Json& line, const TraceResult& trace) {
  line["trace"] = {{"file", trace.file},
                   {"runs", trace.runs},
                   {"copies_ms", trace.copies.seconds * 1e3},
                   {"copies_beside_runs_ms", trace.copies.beside_runs * 1e3}};
}

void print_trace(const TraceResult& trace) {
  std::printf("  timeline of %" PRIu64 " runs in %s", trace.runs, trace.file.c_str());
  if (trace.copies.seconds > 0) {
    std::printf(": copies took %.3f ms, %.3f of them beside a run", trace.copies.seconds * 1e3,
                trace.copies.beside_runs * 1e3);
  }
  std::printf("\n");
}

}  // namespace vitrine::cli
