// Measures the ways in which a device can run a graph's nodes, and keeps the fastest that are right.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/graph/kernel_choice.h"
#include "runtime/graph/pipeline_store.h"

namespace vitrine {

struct SweepOptions {
  // For all candidates together; what heuristics would take is measured in any case. A node has as large a
  // share of what is left as it has of the run's time, so that one whose pipelines take long to compile
  // leaves time for the others.
  double seconds = 60;
  KernelChoices known;  // candidates that failed before are left out
  // Told what is measured next, and how much of the time is used up, from 0 to 1.
  std::function<void(std::string_view what, double used)> progress;
  std::function<double()> clock;  // in seconds; the system's where there is none
};

struct MeasuredCandidate {
  std::string name;
  double seconds = 0;  // median
  uint64_t runs = 0;
  std::string fault;  // why its time doesn't count
};

// Work that the graphs hold `count` times.
struct MeasuredNode {
  std::string key;   // node_key
  std::string name;  // of the first such node
  uint64_t count = 0;
  size_t candidates = 0;                    // that the device could run
  std::vector<MeasuredCandidate> measured;  // those that were; what heuristics take first
  size_t best = 0;                          // of them

  double heuristic_seconds() const { return measured.front().seconds; }
  double best_seconds() const { return measured[best].seconds; }
};

struct SweepResult {
  std::vector<MeasuredNode> nodes;  // the most expensive first
  KernelChoices found;              // what was measured, to be stored

  // Of all nodes of the graphs, each alone.
  double heuristic_seconds() const;
  double best_seconds() const;
};

// A candidate's time counts when its result agrees with float64 at a sample of the node's elements
// (OpDef::sample), or where the operator has none, on the operator's cases; and everywhere with that of the
// first candidate that did. What disagrees with float64 gets a certificate that says so, and is not used
// again.
SweepResult sweep(PipelineStore& pipelines, std::span<const std::shared_ptr<const Graph>> graphs,
                  const SweepOptions& options);

}  // namespace vitrine
