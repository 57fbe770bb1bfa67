// Some elements of a node's results in float64, few enough to be computed on the host whatever the node's
// size: what an operator's `sample` gives, and what such functions are made of.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/check/lone_node.h"
#include "runtime/check/reference.h"

namespace vitrine::reference {

struct Sample {
  size_t output = 0;               // of the node
  std::vector<uint64_t> elements;  // of that output
  std::vector<double> expected;    // one an element
  double tolerance = 0;            // of the relative error
};

// The first, the last, and some between, at uneven distances so that they meet tiles at different places.
std::vector<uint64_t> some_rows(uint64_t rows);

// Of whole rows of output 0, whose last dimension is `width`.
Sample rows_sample(const LoneNode& node, const std::vector<uint64_t>& rows, uint64_t width, Values expected);

// Rows of an input of which each has `width` elements, one after the other.
Values rows_of(const LoneNode& node, size_t input, const std::vector<uint64_t>& rows, uint64_t width);
// A whole input; nothing where it was left out.
Values optional_values(const LoneNode& node, size_t input);

// How the output differs from the sample; nothing where it doesn't.
std::optional<std::string> fault_in(const Sample& sample, DType dtype, std::span<const std::byte> output);

}  // namespace vitrine::reference
