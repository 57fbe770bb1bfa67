// Whether a training forgets what it had learnt, by the losses of its updates.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace vitrine {

// Looks at means over so many updates in a row, as single losses jump about.
class LossWatch {
 public:
  static constexpr uint64_t span = 50;

  // The loss of an update, counted from 1; those that aren't finite are left out. Gives a sentence's
  // beginning once, when half of what the loss had fallen by is lost again, or it is one and a half times
  // what it began with: "the loss rises: ...".
  std::optional<std::string> add(uint64_t update, double loss);

 private:
  double sum_ = 0;
  uint64_t counted_ = 0, first_update_ = 0;
  std::optional<double> first_, least_;
  bool said_ = false;
};

}  // namespace vitrine
