#include "runtime/graph/trace/traced_loop.h"

#include <algorithm>
#include <utility>

namespace vitrine {
namespace {

double overlap(const TraceSpan& a, const TraceSpan& b) {
  return std::max(0.0, std::min(a.end, b.end) - std::max(a.begin, b.begin));
}

}  // namespace

CopyTimes copy_times(const LoopTrace& trace) {
  CopyTimes times;
  for (const TraceSpan& copy : trace.spans) {
    if (copy.lane != TraceLane::copies) continue;
    times.seconds += copy.end - copy.begin;
    for (const TraceSpan& run : trace.spans) {
      if (run.lane == TraceLane::compute && run.operator_name.empty())
        times.beside_runs += overlap(copy, run);
    }
  }
  return times;
}

TracedLoop::TracedLoop(Executable& executable)
    : executable_(executable),
      device_(executable.device_),
      begin_(host_seconds()),
      commands_(device_),
      copy_commands_(device_, device_.copy_queue_family()),
      recordings_(Executable::io_sets),
      watched_(Executable::io_sets) {
  const Capabilities& caps = device_.capabilities();
  if (caps.timestamp_valid_bits != 0)
    steps_clock_.emplace(caps.timestamp_valid_bits, caps.timestamp_period_ns);
  if (device_.copy_timestamp_bits() != 0 && device_.resets_queries())
    copies_clock_.emplace(device_.copy_timestamp_bits(), caps.timestamp_period_ns);
  before_ = read_clocks(device_);
  for (Executable::Set& set : executable_.sets_) executable_.settle(set);
  for (uint32_t set = 0; set < recordings_.size(); ++set) note("record", 0, set, [&] { record(set); });
  if (!before_ || !steps_clock_ || !copies_clock_) {
    computed_ = std::make_unique<Completions>(executable_.computed_);
    copied_ = std::make_unique<Completions>(executable_.copied_);
  }
}

TracedLoop::~TracedLoop() {
  for (uint32_t i = 0; i < recordings_.size(); ++i) {
    Executable::Set& set = executable_.sets_[i];
    // What is still under way has these recordings and timestamps.
    executable_.computed_.wait_without_check(set.computed);
    executable_.copied_.wait_without_check(set.copied);
    set.download_due = false;
    swap_commands(set, recordings_[i]);
  }
}

void TracedLoop::swap_commands(Executable::Set& set, Recording& recording) {
  std::swap(set.upload, recording.upload);
  std::swap(set.download, recording.download);
  std::swap(set.slices, recording.slices);
}

void TracedLoop::record(uint32_t index) {
  Executable::Set& set = executable_.sets_[index];
  Recording& recording = recordings_[index];
  Executable::Marker mark;
  uint32_t next_step = 0, next_copy = 0;
  if (steps_clock_) {
    const uint32_t count = timestamps_of(executable_.plan());
    recording.steps = std::make_unique<Timestamps>(device_, count);
    mark = [&, count](VkCommandBuffer commands, Executable::Mark at) {
      if (next_step == 0) recording.steps->reset(commands);
      if (next_step > 0) recording.step_of.push_back(at.slice_begins ? std::nullopt : std::optional(at.step));
      recording.steps->write(commands, next_step++);
      if (next_step == count) recording.steps->copy_to_host(commands);
    };
  }
  Executable::CopyMarker mark_copy;
  const uint32_t copies = (set.upload ? 1 : 0) + (set.download ? 1 : 0);
  if (copies_clock_ && copies != 0) {
    recording.copies = std::make_unique<Timestamps>(device_, 2 * copies);
    mark_copy = [&](VkCommandBuffer commands) { recording.copies->write(commands, next_copy++); };
  }
  recording.upload = executable_.record_upload(copy_commands_, set, mark_copy);
  recording.download = executable_.record_download(copy_commands_, set, mark_copy);
  recording.slices = executable_.record_slices(commands_, set, false, mark);
  swap_commands(set, recording);
}

void TracedLoop::note(const char* name, uint64_t run, uint32_t set, const std::function<void()>& what) {
  TraceSpan span{.lane = TraceLane::host, .name = name, .begin = host_seconds(), .run = run, .set = set};
  what();
  span.end = host_seconds();
  host_spans_.push_back(std::move(span));
}

// What was submitted since the last call.
void TracedLoop::watch() {
  if (!computed_) return;
  std::vector<uint64_t> copies;
  for (size_t i = 0; i < watched_.size(); ++i) {
    const Executable::Set& set = executable_.sets_[i];
    if (std::exchange(watched_[i].computed, set.computed) != set.computed) computed_->add(set.computed);
    if (std::exchange(watched_[i].copied, set.copied) != set.copied) copies.push_back(set.copied);
  }
  std::ranges::sort(copies);
  for (const uint64_t value : copies) copied_->add(value);
}

void TracedLoop::launch(Flight& flight, const Touch& fill) {
  Executable::Set& set = executable_.sets_[flight.set];
  Recording& recording = recordings_[flight.set];
  note("fill", flight.run, flight.set, [&] { fill(flight.set); });
  if (recording.copies) recording.copies->reset();
  note("submit", flight.run, flight.set, [&] { executable_.submit(flight.set); });
  flight.submitted = host_spans_.back().begin;
  watch();
  flight.computed_value = set.computed;
  if (set.upload) flight.upload_value = set.copied;
}

void TracedLoop::land(Flight& flight, const Touch& read) {
  Executable::Set& set = executable_.sets_[flight.set];
  const Recording& recording = recordings_[flight.set];
  note("wait", flight.run, flight.set, [&] {
    executable_.submit_download(set);
    watch();
    executable_.wait(flight.set);
  });
  flight.landed = host_spans_.back().end;
  note("read", flight.run, flight.set, [&] { read(flight.set); });
  if (set.download) flight.download_value = set.copied;
  if (recording.steps) flight.step_ticks = recording.steps->ticks();
  if (recording.copies) flight.copy_ticks = recording.copies->ticks();
}

LoopTrace TracedLoop::run(uint64_t runs, const Touch& fill, const Touch& read) {
  flights_.clear();
  for (uint64_t run = 0; run < runs; ++run)
    flights_.push_back({.run = run, .set = static_cast<uint32_t>(run % Executable::io_sets)});
  // As Runner's loop goes: the other set stays with the device while the host reads and fills this one.
  for (uint64_t run = 0; run < runs + Executable::io_sets; ++run) {
    const uint64_t landing = run - Executable::io_sets;
    if (run >= Executable::io_sets && landing < runs) land(flights_[landing], read);
    if (run < runs) launch(flights_[run], fill);
  }
  LoopTrace trace;
  trace.spans = std::exchange(host_spans_, {});
  match_clocks(trace);
  double previous_end = 0;
  for (const Flight& flight : flights_) {
    const size_t first = trace.spans.size();
    add_computation(flight, previous_end, trace);
    previous_end = trace.spans[first].end;
    add_copies(flight, trace);
  }
  for (TraceSpan& span : trace.spans) {
    span.begin -= begin_;
    span.end -= begin_;
  }
  return trace;
}

// Who waited for all of it may have known before who waits for each part.
double TracedLoop::computed_at(const Flight& flight) {
  return std::min(flight.landed, computed_->seen(flight.computed_value));
}
double TracedLoop::copied_at(const Flight& flight, uint64_t value) {
  return std::min(flight.landed, copied_->seen(value));
}

void TracedLoop::match_clocks(LoopTrace& trace) {
  const std::optional<ClockPair> after = before_ ? read_clocks(device_) : std::nullopt;
  std::vector<Bracket> steps, copies;
  if (!after) {
    for (const Flight& flight : flights_) {
      if (!flight.step_ticks.empty()) {
        steps.push_back(
            {flight.submitted, computed_at(flight), flight.step_ticks.front(), flight.step_ticks.back()});
      }
      size_t next = 0;
      for (const uint64_t value : {flight.upload_value, flight.download_value}) {
        if (value == 0 || flight.copy_ticks.empty()) continue;
        copies.push_back({flight.submitted, copied_at(flight, value), flight.copy_ticks[next],
                          flight.copy_ticks[next + 1]});
        next += 2;
      }
    }
  }
  for (const auto& [clock, brackets] : {std::pair{&steps_clock_, &steps}, {&copies_clock_, &copies}}) {
    if (!*clock) continue;
    if (after) {
      (*clock)->match(*before_, *after);
    } else {
      (*clock)->match(*brackets);
    }
    trace.uncertainty = std::max(trace.uncertainty, (*clock)->uncertainty());
  }
  if (!steps_clock_ && !copies_clock_) {
    trace.clocks =
        "the queues have no timestamps: runs and copies are as the host saw them submitted and done";
  } else if (after) {
    trace.clocks = "by calibrated timestamps";
  } else {
    trace.clocks = "by when the host submitted what they belong to and saw it done";
  }
  if (steps_clock_ && !copies_clock_)
    trace.clocks += "; copies, whose queue has none, as the host saw them submitted and done";
}

void TracedLoop::add_computation(const Flight& flight, double previous_end, LoopTrace& trace) {
  TraceSpan run{.lane = TraceLane::compute, .name = "run", .run = flight.run, .set = flight.set};
  if (flight.step_ticks.empty()) {
    run.begin = std::max(previous_end, flight.submitted);
    if (flight.upload_value != 0) run.begin = std::max(run.begin, copied_at(flight, flight.upload_value));
    run.end = std::max(run.begin, computed_at(flight));
    trace.spans.push_back(run);
    return;
  }
  const Plan& plan = executable_.plan();
  run.begin = steps_clock_->at(flight.step_ticks.front());
  run.end = steps_clock_->at(flight.step_ticks.back());
  trace.spans.push_back(run);
  const auto& step_of = recordings_[flight.set].step_of;
  for (size_t i = 0; i < step_of.size(); ++i) {
    if (!step_of[i]) continue;
    const Node& node = plan.graph->nodes()[plan.steps[*step_of[i]].node];
    trace.spans.push_back({.lane = TraceLane::compute,
                           .name = node.name,
                           .operator_name = std::string(node.op->name),
                           .begin = steps_clock_->at(flight.step_ticks[i]),
                           .end = steps_clock_->at(flight.step_ticks[i + 1]),
                           .run = flight.run,
                           .set = flight.set});
  }
}

void TracedLoop::add_copies(const Flight& flight, LoopTrace& trace) {
  size_t next = 0;
  const auto add = [&](const char* name, uint64_t value, double earliest) {
    if (value == 0) return;
    TraceSpan span{.lane = TraceLane::copies, .name = name, .run = flight.run, .set = flight.set};
    if (flight.copy_ticks.empty()) {
      span.begin = earliest;
      span.end = copied_at(flight, value);
    } else {
      span.begin = copies_clock_->at(flight.copy_ticks[next]);
      span.end = copies_clock_->at(flight.copy_ticks[next + 1]);
    }
    span.end = std::max(span.begin, span.end);
    next += 2;
    trace.spans.push_back(span);
  };
  add("upload", flight.upload_value, flight.submitted);
  const double computed = flight.copy_ticks.empty() && flight.download_value != 0 ? computed_at(flight) : 0;
  add("download", flight.download_value, computed);
}

}  // namespace vitrine
