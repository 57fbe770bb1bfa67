// Parameters of principal_vectors.comp and principal_colors.comp, and what the first leaves for the second.
#ifndef VITRINE_PRINCIPAL_COLORS_H
#define VITRINE_PRINCIPAL_COLORS_H
#include "lib/shared.h"

// Vectors that are iterated for the first three: with more, they converge faster.
#define VITRINE_PRINCIPAL_VECTORS 8
// Products of a round before the vectors are rotated.
#define VITRINE_PRINCIPAL_POWERS 8
// Words of the state: the eigenvalues' estimates, then how the iteration stands.
#define VITRINE_PRINCIPAL_STATUS 8
#define VITRINE_PRINCIPAL_STATE_WORDS 9

#define VITRINE_PRINCIPAL_RUNNING 0.0
#define VITRINE_PRINCIPAL_CONVERGED 1.0
#define VITRINE_PRINCIPAL_UNIFORM 2.0  // all rows are the same
#define VITRINE_PRINCIPAL_BROKEN 3.0   // a number is infinite or none

VITRINE_SHARED_BEGIN

struct PrincipalColorsParams {
  uint order;    // of the symmetric matrix
  uint rows;     // patches
  uint width;    // of a token
  uint starts;   // the first of several dispatches that go on with each other's vectors
  uint rounds;   // of one of them
};
VITRINE_SHARED_SIZE(PrincipalColorsParams, 20);

VITRINE_SHARED_END
#endif
