// Which kernel runs a node, in which configuration, and who says so: a wish, a table of what was measured
// on this device, or the kernels' own preferences. Pure, as planning is.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/graph/op.h"

namespace vitrine {

// One way of running a node.
struct Candidate {
  const KernelDef* kernel = nullptr;
  std::string configuration;  // empty for kernels that have only one
  std::string name() const;   // "simple", "tiled:64x64x16/4x4"
};
// Its kernel of an operator, without looking whether it fits; no kernel where there is none of that name.
Candidate candidate_named(const OpDef& op, std::string_view name);

// All that can run the node, what the kernels themselves would take first. `refusals` gets a sentence for
// each kernel that can't.
std::vector<Candidate> candidates_of(const LowerContext& context,
                                     std::vector<std::string>* refusals = nullptr);
Lowered lower_as(const LowerContext& context, const Candidate& candidate);

// All that decides how fast a kernel runs a node, on one line: the operator, its inputs' shapes, types and
// which of them are constants, its attributes. Nodes with equal keys are the same work.
std::string node_key(const Graph& graph, const Node& node);

// Name a candidate with the very code that it runs, one piece each: a shader, and what chooses a path through
// it. These are its switches, and numbers that stand for a choice; sizes and tiles run the same code, and how
// a product goes on is tested with all of it and with none. A changed shader has another key.
std::vector<std::string> certificate_keys(const OpDef& op, const Candidate& candidate,
                                          const Lowered& lowered);

// What is known of a device and its driver.
struct KernelChoices {
  // node_key -> the fastest candidate's name
  std::map<std::string, std::string, std::less<>> tuned;
  // each of certificate_keys -> how the self-test failed; empty: it passed
  std::map<std::string, std::string, std::less<>> certificates;
  bool operator==(const KernelChoices&) const = default;
};

// How the candidate failed its self-test with any of the code that it would run here; nothing where it passed
// or was not tested.
std::optional<std::string> failure_of(const LowerContext& context, const Candidate& candidate,
                                      const KernelChoices& known);

struct KernelChoice {
  Candidate candidate;
  std::string text;  // for people: the name, who chose it, and why the others were not taken
};
// `wish`: a kernel, or kernel:configuration, that has to be taken; empty: none. A candidate that failed its
// self-test is never taken. What the table says is passed over where it doesn't fit any more. Throws
// Error(failed) when nothing is left.
KernelChoice choose_kernel(const Graph& graph, const LowerContext& context, std::string_view wish,
                           const KernelChoices* known);

}  // namespace vitrine
