// As reference.h.
#pragma once

#include "runtime/selftest/reference_matmul.h"
