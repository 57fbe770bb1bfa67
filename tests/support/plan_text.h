// All of a plan as text: equal plans have equal texts.
#pragma once

#include <string>

#include "runtime/graph/plan.h"

namespace vitrine::test {

std::string text_of(const Plan& plan);

}  // namespace vitrine::test
