// What patches have in common, as colors: the first three principal components of their tokens.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/graph/op.h"

namespace vitrine {

extern const OpDef op_principal_colors;
std::vector<reference::OpCase> principal_colors_cases();

// tokens [.., N, width] f32 of one image, of which `count` patches from `first` on are looked at. Gives
// [count] u32: red, green and blue (lowest byte) are a patch's scores in the first, second and third
// component, each from 0 for the smallest to 255 for the largest one among the patches; alpha is 255. The
// sign of a component is the one that makes its score farthest from zero positive. Components that there are
// not (tokens that are all alike, or of fewer than three numbers) are an even 128; where a token isn't
// finite, all is magenta.
//
// By subspace iteration on the smaller one of the two matrices of products, of tokens or of their numbers.
// Components are accurate to the bytes where the third eigenvalue stands out from the ninth; about 140
// products with the matrix end it in any case.
ValueId principal_colors(Graph& graph, const std::string& name, ValueId tokens, uint64_t first,
                         uint64_t count);

}  // namespace vitrine
