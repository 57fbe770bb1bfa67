// Measured times as a flame bar: the parts of a model above each other, each as wide as its time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/graph/executable.h"

namespace vitrine::desktop {

// One dispatch.
struct ProfileStep {
  std::string node;  // "blocks.0.attn.qkv"
  std::string operator_name, kernel;
  double seconds = 0;
};

// What lies at one depth: a model's part with all that is inside it, or at the end of its path a node.
struct ProfileBar {
  std::string name;               // within its parent: "attn"
  std::string path;               // "blocks.0.attn"
  std::string kernel;             // of a node: what ran it
  uint32_t depth = 0;             // 0: the whole inference
  double start = 0, seconds = 0;  // start: after the beginning of the inference
  uint32_t dispatches = 0;
};

struct ProfileResult {
  double total_seconds = 0;
  std::vector<ProfileStep> steps;  // in their order
  std::vector<ProfileBar> bars;    // parents before their children, and in the order of their starts
};

ProfileResult profile_result(const Plan& plan, const Profile& profile);

}  // namespace vitrine::desktop
