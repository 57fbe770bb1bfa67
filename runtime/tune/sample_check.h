// Some rows of a node's result in float64, few enough to be computed on the host whatever the node's size.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/tune/lone_node.h"

namespace vitrine {

struct Sample {
  size_t output = 0;               // of the node
  std::vector<uint64_t> elements;  // of that output
  std::vector<double> expected;    // one an element
  double tolerance = 0;            // of the relative error
};

// Of operators that have several kernels or configurations; nothing for the others.
std::vector<Sample> sample_of(const LoneNode& node);

// How the output differs from the sample; nothing where it doesn't.
std::optional<std::string> fault_in(const Sample& sample, DType dtype, std::span<const std::byte> output);

}  // namespace vitrine
