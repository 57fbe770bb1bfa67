#include "runtime/tune/sweep.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "runtime/check/lone_node.h"
#include "runtime/check/op_case.h"
#include "runtime/check/sample.h"
#include "runtime/graph/executable.h"
#include "runtime/graph/plan.h"
#include "runtime/selftest/self_test.h"
#include "runtime/util/error.h"

namespace vitrine {
namespace {

// Another candidate replaces what heuristics take only where it gains more than a measurement wavers.
constexpr double least_gain = 1.02;
constexpr size_t least_runs = 5, most_runs = 50;
constexpr double seconds_each = 0.1;  // of runs, where these are short
// So many times as long as the best is not worth more runs.
constexpr double far_behind = 1.5;
// A card that has rested takes several times as long at first, which says nothing of a candidate: an H100
// five times, also after half a second in which a pipeline was compiled, and then for longer than this. So
// each is measured in turns with the best.
constexpr double seconds_to_wake = 0.03;

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

using Outputs = std::vector<std::vector<std::byte>>;

double median_of(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2));
  return values[values.size() / 2];
}

// Throws Error where the numbers that were made up for a node's inputs lead to one result everywhere.
void require_varied(const std::vector<double>& result) {
  std::optional<double> first;
  for (const double value : result) {
    if (!std::isfinite(value)) continue;
    if (first && value != *first) return;
    first = value;
  }
  if (result.size() < 2 && first) return;
  throw Error(ErrorCode::failed,
              "its result is the same everywhere for made-up inputs, which proves nothing");
}

// A node with its inputs on the device, in one candidate after the other.
class Bench {
 public:
  Bench(PipelineStore& pipelines, const Graph& graph, const Node& node)
      : pipelines_(pipelines), lone_(graph, node), weights_(pipelines, lone_) {
    candidates_ = candidates_of(lone_.context(pipelines.device().capabilities()));
  }

  const std::vector<Candidate>& candidates() const { return candidates_; }
  // Whether float64 says what some elements of this very node's results are.
  bool has_sample() {
    const auto sample = lone_.node().op->sample;
    if (samples_.empty() && sample) samples_ = sample(lone_);
    return !samples_.empty();
  }
  LowerContext context() const { return lone_.context(pipelines_.device().capabilities()); }

  // Beside the best one until now, which this one becomes where it is faster.
  MeasuredCandidate measure(const Candidate& candidate, bool check) {
    MeasuredCandidate measured{.name = candidate.name()};
    std::unique_ptr<Executable> made = prepare(measured.name);
    if (check) {
      if (auto fault = check_outputs(*made)) {
        measured.fault = std::move(*fault);
        return measured;
      }
    }
    if (best_) {
      measure_beside_best(*made, measured);
      if (measured.seconds >= best_seconds_) return measured;
    } else {
      measure_alone(*made, measured);
    }
    if (!check) return measured;
    best_ = std::move(made);
    best_seconds_ = measured.seconds;
    return measured;
  }

  // Two candidates in turns, so that a machine that is busy for a while slows both.
  void compare(MeasuredCandidate& a, MeasuredCandidate& b) {
    const std::array made{prepare(a.name), prepare(b.name)};
    for (const auto& executable : made) woken(*executable);
    std::array<std::vector<double>, 2> seconds;
    double total = 0;
    while (seconds[0].size() < least_runs || (total < 2 * seconds_each && seconds[0].size() < most_runs)) {
      for (size_t i = 0; i < made.size(); ++i) {
        seconds[i].push_back(seconds_of(*made[i]));
        total += seconds[i].back();
      }
    }
    a.seconds = median_of(seconds[0]);
    b.seconds = median_of(seconds[1]);
    a.runs = b.runs = seconds[0].size();
  }

 private:
  static bool is_enough(size_t runs, double total) {
    return runs >= least_runs && (total >= seconds_each || runs >= most_runs);
  }

  void measure_alone(Executable& executable, MeasuredCandidate& measured) const {
    std::vector<double> seconds = woken(executable);
    for (double total = 0; !is_enough(seconds.size(), total); total += seconds.back())
      seconds.push_back(seconds_of(executable));
    measured.seconds = median_of(seconds);
    measured.runs = seconds.size();
  }

  // One that was far behind in both of the first turns, or in the first one by twice as much, has no more.
  void measure_beside_best(Executable& executable, MeasuredCandidate& measured) const {
    woken(executable);
    std::vector<double> ratios;
    double total = 0;
    while (!is_enough(ratios.size(), total)) {
      const double best = seconds_of(*best_), own = seconds_of(executable);
      ratios.push_back(own / best);
      total += own;
      const double least = *std::ranges::min_element(ratios);
      if (least > 2 * far_behind || (ratios.size() >= 2 && least > far_behind)) break;
    }
    measured.seconds = best_seconds_ * median_of(ratios);
    measured.runs = ratios.size();
  }

  // With its inputs, and run once.
  std::unique_ptr<Executable> prepare(const std::string& candidate) {
    PlanOptions options;
    options.variants[std::string(lone_.node().op->name)] = candidate;
    auto executable = std::make_unique<Executable>(
        weights_, make_plan(lone_.graph(), pipelines_.device().capabilities(), options));
    for (size_t i = 0; i < executable->plan().inputs.size(); ++i)
      std::ranges::copy(input_bytes(executable->plan().inputs[i]), executable->input(i).begin());
    executable->fill_memory(reference::unwritten_word);
    executable->run();
    return executable;
  }

  const std::vector<std::byte>& input_bytes(ValueId id) {
    std::vector<std::byte>& bytes = inputs_[id];
    if (bytes.empty()) bytes = lone_.bytes(id);
    return bytes;
  }

  // Runs until the device is awake; a run that takes so long itself counts.
  std::vector<double> woken(Executable& executable) const {
    constexpr size_t most = 1000;
    double total = 0, last = 0;
    for (size_t i = 0; i < most && total < seconds_to_wake; ++i) total += last = seconds_of(executable);
    return last < seconds_to_wake ? std::vector<double>{} : std::vector{last};
  }

  double seconds_of(Executable& executable) const {
    if (pipelines_.device().capabilities().timestamp_valid_bits != 0)
      return executable.profile().total_seconds;
    const auto start = Clock::now();
    executable.run();
    return seconds_since(start);
  }

  // Of two results that are both right: each may be off by what float64 allows it. Where there is no sample,
  // that is the usual; or, of long sums, what their rounding errors in f32 add up to as a random walk.
  double tolerance_between(const Value& output) const {
    if (!samples_.empty()) return 2 * samples_.front().tolerance;
    const double terms = lone_.node().op->flops(context()) / 2 / static_cast<double>(output.shape.elements());
    return 2 * std::max(reference::usual_tolerance(output.dtype), 0x1p-24 * std::sqrt(terms));
  }

  std::optional<std::string> check_outputs(const Executable& executable) {
    const Graph& graph = *lone_.graph();
    const auto index_of = [&](size_t output) {
      const auto& outputs = executable.plan().outputs;
      return static_cast<size_t>(std::ranges::find(outputs, lone_.node().outputs[output]) - outputs.begin());
    };
    for (const reference::Sample& sample : samples_) {
      const DType dtype = graph.value(lone_.node().outputs[sample.output]).dtype;
      if (auto fault = fault_in(sample, dtype, executable.output(index_of(sample.output)))) return fault;
    }
    if (first_.empty()) {
      Outputs outputs;
      for (size_t i = 0; i < lone_.node().outputs.size(); ++i) {
        const auto bytes = executable.output(index_of(i));
        if (samples_.empty())
          require_varied(reference::decode(bytes, graph.value(lone_.node().outputs[i]).dtype));
        outputs.emplace_back(bytes.begin(), bytes.end());
      }
      first_ = std::move(outputs);
      return std::nullopt;
    }
    for (size_t i = 0; i < first_.size(); ++i) {
      const Value& output = graph.value(lone_.node().outputs[i]);
      reference::OpCase limits;
      limits.tolerance = tolerance_between(output);
      const auto fault = reference::difference(
          limits, output.dtype, reference::decode(executable.output(index_of(i)), output.dtype),
          reference::decode(first_[i], output.dtype));
      if (!fault) continue;
      const std::string text = "it differs from the first candidate that was right: " + *fault;
      // Without a sample nobody knows which of the two is wrong here.
      if (samples_.empty()) throw Error(ErrorCode::failed, text);
      return text;
    }
    return std::nullopt;
  }

  PipelineStore& pipelines_;
  reference::LoneNode lone_;
  WeightStore weights_;
  std::vector<Candidate> candidates_;
  std::map<ValueId, std::vector<std::byte>> inputs_;
  std::vector<reference::Sample> samples_;
  Outputs first_;  // of the first candidate
  std::unique_ptr<Executable> best_;
  double best_seconds_ = 0;
};

struct Work {
  const Graph* graph = nullptr;
  const Node* node = nullptr;
  MeasuredNode result;
};

std::vector<Work> work_of(std::span<const std::shared_ptr<const Graph>> graphs) {
  std::vector<Work> all;
  std::map<std::string, size_t> at;
  for (const auto& graph : graphs) {
    for (const Node& node : graph->nodes()) {
      const auto [entry, is_new] = at.try_emplace(node_key(*graph, node), all.size());
      if (is_new) all.push_back({graph.get(), &node, {.key = entry->first, .name = node.name}});
      ++all[entry->second].result.count;
    }
  }
  return all;
}

class Sweeper {
 public:
  Sweeper(PipelineStore& pipelines, std::span<const std::shared_ptr<const Graph>> graphs,
          const SweepOptions& options)
      : pipelines_(pipelines), options_(options), work_(work_of(graphs)) {}

  SweepResult run() {
    for (Work& work : work_) {
      Bench bench(pipelines_, *work.graph, *work.node);
      begin(work, bench, 0);
    }
    std::ranges::stable_sort(work_, std::greater{}, cost);
    start_ = now();
    double cost_left = 0;
    for (const Work& work : work_) cost_left += has_choice(work) ? cost(work) : 0;
    for (Work& work : work_) {
      if (!has_choice(work) || used() >= 1) continue;
      const double own = cost(work), left = (1 - used()) * options_.seconds;
      improve(work, now() + left * (own < cost_left ? own / cost_left : 1));
      cost_left -= own;
    }
    for (Work& work : work_) result_.nodes.push_back(std::move(work.result));
    return std::move(result_);
  }

 private:
  static double cost(const Work& work) {
    return static_cast<double>(work.result.count) * work.result.heuristic_seconds();
  }
  static bool has_choice(const Work& work) { return work.result.candidates > 1; }

  double now() const {
    return options_.clock ? options_.clock()
                          : std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
  }
  double used() const { return (now() - start_) / options_.seconds; }

  void say(const Work& work, const std::string& candidate, double share) const {
    if (options_.progress) options_.progress(work.result.name + " " + candidate, share);
  }

  // Candidates that may run, and among them those whose result can be checked.
  std::vector<Candidate> allowed(const Bench& bench) const {
    std::vector<Candidate> candidates = bench.candidates();
    std::erase_if(candidates, [&](const Candidate& candidate) {
      return failure_of(bench.context(), candidate, options_.known).has_value();
    });
    return candidates;
  }

  void begin(Work& work, Bench& bench, double share) {
    const std::vector<Candidate> candidates = allowed(bench);
    if (candidates.empty())
      throw Error(ErrorCode::failed, work.result.key + ": found no kernel that can run it, expected one");
    work.result.candidates = candidates.size();
    say(work, candidates[0].name(), share);
    MeasuredCandidate first = bench.measure(candidates[0], false);
    work.result.measured = {std::move(first)};
  }

  void improve(Work& work, double until) {
    Bench bench(pipelines_, *work.graph, *work.node);
    if (!bench.has_sample() && !work.node->op->cases) return;  // nothing to check results with
    MeasuredNode& node = work.result;
    const std::vector<Candidate> candidates = allowed(bench);
    bool found = false;  // whether `best` is right
    for (size_t i = 0; i < candidates.size() && now() < until; ++i) {
      say(work, candidates[i].name(), used());
      const MeasuredCandidate measured = measure(bench, candidates[i], found);
      if (i == 0) {
        node.measured.front().fault = measured.fault;
        if (measured.fault.empty()) node.measured.front() = measured;  // at the same time as the others
      } else {
        node.measured.push_back(measured);
      }
      if (!measured.fault.empty()) continue;
      if (!found || measured.seconds < node.best_seconds()) node.best = node.measured.size() - 1;
      found = true;
    }
    MeasuredCandidate& first = node.measured.front();
    if (node.best != 0 && first.fault.empty()) {
      bench.compare(first, node.measured[node.best]);
      if (node.best_seconds() * least_gain > first.seconds) node.best = 0;
    }
    if (found && node.measured.size() > 1) result_.found.tuned[node.key] = node.measured[node.best].name;
  }

  MeasuredCandidate measure(Bench& bench, const Candidate& candidate, bool behind_a_right_one) {
    try {
      MeasuredCandidate measured{.name = candidate.name()};
      if (!bench.has_sample()) measured.fault = fault_on_cases(bench, candidate, behind_a_right_one);
      if (measured.fault.empty()) measured = bench.measure(candidate, true);
      certify(bench, candidate, measured.fault);
      return measured;
    } catch (const Error& error) {
      // Such as too little memory: no proof that it is wrong, and no time either.
      return {.name = candidate.name(), .fault = error.what()};
    }
  }

  // What is wrong with a candidate on its operator's own cases; nothing where it is right, or was before. One
  // that no case runs can be compared with a right one, but not be the first.
  std::string fault_on_cases(const Bench& bench, const Candidate& candidate, bool behind_a_right_one) {
    const LowerContext context = bench.context();
    const OpDef& op = *context.node().op;
    std::set<std::string> unknown;
    for (const std::string& key : certificate_keys(op, candidate, lower_as(context, candidate))) {
      bool known = false;
      for (const KernelChoices* choices : {&options_.known, &std::as_const(result_.found)}) {
        const auto verdict = choices->certificates.find(key);
        if (verdict == choices->certificates.end()) continue;
        if (!verdict->second.empty()) return verdict->second;
        known = true;
      }
      if (!known) unknown.insert(key);
    }
    if (unknown.empty()) return "";
    const auto& tests =
        self_tests_.try_emplace(&op, pipelines_.device().capabilities(), op).first->second.tests();
    for (const selftest::SelfTest& test : tests) {
      const auto wanted = [&](const std::string& key) { return unknown.contains(key); };
      if (test.candidate.name() != candidate.name() || std::ranges::none_of(test.certificates, wanted))
        continue;
      if (const auto fault = selftest::fault_of(pipelines_, test)) return *fault;
      for (const std::string& key : test.certificates) unknown.erase(key);
    }
    if (unknown.empty()) return "";
    if (!behind_a_right_one)
      throw Error(ErrorCode::failed,
                  "none of its operator's cases runs it, so nothing shows whether it is right");
    return "";
  }

  // One wrong result outweighs all right ones.
  void certify(const Bench& bench, const Candidate& candidate, const std::string& fault) {
    const LowerContext context = bench.context();
    for (const std::string& key :
         certificate_keys(*context.node().op, candidate, lower_as(context, candidate))) {
      std::string& verdict = result_.found.certificates[key];
      if (verdict.empty()) verdict = fault;
    }
  }

  PipelineStore& pipelines_;
  const SweepOptions& options_;
  std::vector<Work> work_;
  SweepResult result_;
  std::map<const OpDef*, selftest::SelfTests> self_tests_;
  double start_ = 0;
};

}  // namespace

double SweepResult::heuristic_seconds() const {
  double sum = 0;
  for (const MeasuredNode& node : nodes) sum += static_cast<double>(node.count) * node.heuristic_seconds();
  return sum;
}

double SweepResult::best_seconds() const {
  double sum = 0;
  for (const MeasuredNode& node : nodes) sum += static_cast<double>(node.count) * node.best_seconds();
  return sum;
}

SweepResult sweep(PipelineStore& pipelines, std::span<const std::shared_ptr<const Graph>> graphs,
                  const SweepOptions& options) {
  return Sweeper(pipelines, graphs, options).run();
}

}  // namespace vitrine
