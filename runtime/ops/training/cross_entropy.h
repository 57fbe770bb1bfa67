// The loss of a classifier.
#pragma once

#include <string>
#include <vector>

#include "runtime/graph/op.h"

namespace vitrine {

extern const OpDef op_cross_entropy;
extern const OpDef op_cross_entropy_gradient;
std::vector<reference::OpCase> cross_entropy_cases();
std::vector<reference::OpCase> cross_entropy_gradient_cases();

struct CrossEntropyOptions {
  double label_smoothing = 0;  // this part of the target is spread evenly over all classes
};

// logits [B, C] f32, labels [B] u32. Gives each row's loss as [B] f32:
// (1 - s) * -log(softmax(logits)[label]) + s * the mean of -log(softmax(logits)), s being label_smoothing.
// The loss of a label that isn't below C is NaN, and so is its gradient.
ValueId cross_entropy(Graph& graph, std::string name, ValueId logits, ValueId labels,
                      const CrossEntropyOptions& options = {});

// The gradient of the logits, [B, C], where `gradient` [B] f32 is that of the losses.
ValueId cross_entropy_gradient(Graph& graph, std::string name, ValueId gradient, ValueId logits,
                               ValueId labels, const CrossEntropyOptions& options = {});

}  // namespace vitrine
