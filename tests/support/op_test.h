// Runs one operator under every kernel that the device can run it with, and compares each result with a
// float64 reference.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "runtime/check/op_case.h"
#include "runtime/graph/op.h"

namespace vitrine::test {

using reference::decode;
using reference::encode;
using reference::filled;
using reference::HostTensor;
using reference::OpCase;
using reference::OpInput;
using reference::random_tensor;
using reference::relative_error;
using reference::round_to;

// Forces each kernel of `op` in turn, and takes the node apart where rules of fusion can, in memory that is
// filled with NaN and has guard bands around every tensor; runs twice for equal bits; no validation message.
// Fails when no kernel could run, or when the reference is constant and so would prove nothing.
//
// Where compiling takes many times as long (Capabilities::loops_gather), kernels that wouldn't be chosen for
// the case, which are those for GPUs, run a test's first cases only: drivers that compile them quickly run
// them all. In one turn of several (turns.h) what is chosen runs a test's first case, and a part of all
// kernels and cases.
void check_op(const OpDef& op, const OpCase& op_case);

// The same with the kernels that are chosen, with and without fusion.
void check_chosen(const OpCase& op_case);

// The same with every configuration of every kernel, or in one turn of several with a part of them.
void check_configurations(const OpDef& op, const OpCase& op_case);

using Results = std::vector<std::vector<double>>;
// What the reference gives for other values of a case's inputs.
using Reference = std::function<Results(std::span<const std::vector<double>>)>;

// NaN in is NaN out: checks the case with a single NaN, which stands in each of its inputs of floats in turn,
// as the first element, in the middle and as the last one. NaN must come out where the reference has it, and
// only there.
void check_nan(const OpDef& op, const OpCase& op_case, const Reference& reference);

}  // namespace vitrine::test
