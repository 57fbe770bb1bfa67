// The float64 references are the library's: its self-test compares with them, too.
#pragma once

#include "runtime/check/reference.h"
