// The loss of a classifier that asks of each class whether it is there.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/graph/op.h"

namespace vitrine {

extern const OpDef op_binary_cross_entropy;
extern const OpDef op_binary_cross_entropy_gradient;
std::vector<reference::OpCase> binary_cross_entropy_cases();
std::vector<reference::OpCase> binary_cross_entropy_gradient_cases();

struct BinaryCrossEntropyOptions {
  double label_smoothing = 0;  // this part of the target is spread evenly over all classes
  std::optional<double> target_threshold = std::nullopt;  // targets above it become 1, the others 0
  bool sum = false;                                       // over the classes; else their mean
  // Each row's second label [B] u32, and how much of the target is the first one's, [B] f32: both or none.
  ValueId others = {}, shares = {};
};

// logits [B, C] f32, labels [B] u32. Gives each row's loss as [B] f32: the mean over the classes of
// (1 - t) x - log(sigmoid(x)), with t = s / C + (1 - s) (share [c = label] + (1 - share) [c = other]) for a
// label_smoothing of s. The loss of a label that isn't below C is NaN, and so is its gradient.
ValueId binary_cross_entropy(Graph& graph, std::string name, ValueId logits, ValueId labels,
                             const BinaryCrossEntropyOptions& options = {});

// The gradient of the logits, [B, C], where `gradient` [B] f32 is that of the losses.
ValueId binary_cross_entropy_gradient(Graph& graph, std::string name, ValueId gradient, ValueId logits,
                                      ValueId labels, const BinaryCrossEntropyOptions& options = {});

}  // namespace vitrine
