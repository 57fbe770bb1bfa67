// As reference.h.
#pragma once

#include "runtime/check/reference_matmul.h"
