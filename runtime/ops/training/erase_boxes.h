// Random erasing: boxes of samples are overwritten.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/graph/op.h"

namespace vitrine {

extern const OpDef op_erase_boxes;
std::vector<reference::OpCase> erase_boxes_cases();

struct EraseBoxesOptions {
  uint32_t fill = 0;    // VITRINE_ERASE_CONST, _RAND or _PIXEL
  uint32_t stream = 0;  // of the random numbers; nodes of one graph draw from streams of their own
};

// samples [B, C, H, W] f32, boxes [B, N, VITRINE_BOX_WORDS] u32 (shaders/training/erase_boxes.h), the step
// [VITRINE_STEP_WORDS] u32. Gives the samples with 0 in their boxes, or numbers of a standard normal
// distribution: one for each box and channel (RAND; a box that comes later lies above), or one for each
// element (PIXEL). Number n of sample b is normal_quantile(uniform_from(w)) with w the word n % 4 of Philox's
// block {n / 4, b, stream, step}, and n = box * C + channel or the element's place in its sample. It has no
// derivative.
ValueId erase_boxes(Graph& graph, std::string name, ValueId samples, ValueId boxes, ValueId step,
                    const EraseBoxesOptions& options);

}  // namespace vitrine
