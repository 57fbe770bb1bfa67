// The words that runtime/ops/GROUP/NAME_cases.cpp are written in; `using namespace cases` brings them. Not
// all of reference: its functions have the operators' names.
#pragma once

#include "runtime/check/lone_node.h"
#include "runtime/check/op_case.h"
#include "runtime/check/reference.h"
#include "runtime/check/sample.h"

namespace vitrine::cases {

using reference::dtypes, reference::exactly, reference::filled, reference::one_result,
    reference::optional_values, reference::random_tensor, reference::round_to, reference::rows_of,
    reference::rows_sample, reference::some_rows;
using reference::HostTensor, reference::LoneNode, reference::OpCase, reference::Sample, reference::Values;

}  // namespace vitrine::cases
