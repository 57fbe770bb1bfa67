// Parameters of copy_runs.comp.
#ifndef VITRINE_COPY_RUNS_H
#define VITRINE_COPY_RUNS_H

#include "lib/shared.h"

VITRINE_SHARED_BEGIN
struct CopyRunsParams {
  uint count;  // elements to copy, in all
  uint from;  // where the first run starts in the source
  uint from_stride;  // from run to run
  uint to;  // the same in the target
  uint to_stride;
};
VITRINE_SHARED_SIZE(CopyRunsParams, 20);
VITRINE_SHARED_END

#endif
