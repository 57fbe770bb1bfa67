// How what takes long is stopped by who waits for it.
#pragma once

#include <exception>
#include <functional>

namespace vitrine {

// Asked now and then whether to go on; told which share of the work is done.
using GoOn = std::function<bool(double share_done)>;

// What is thrown after a "no" where nothing else can say that there is no result.
struct Interrupted : std::exception {
  const char* what() const noexcept override { return "the work was interrupted"; }
};

}  // namespace vitrine
