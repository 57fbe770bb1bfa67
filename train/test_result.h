// How well a model does on labelled samples.
#pragma once

#include <cstdint>
#include <span>

namespace vitrine {

struct TestResult {
  double loss = 0;      // mean cross-entropy, as PyTorch's: of the softmax of what the model gives
  double accuracy = 0;  // the share of samples whose largest number is the label's
};

class TestSums {
 public:
  // results [labels.size(), classes]. A NaN among a sample's results makes the loss NaN.
  void add(std::span<const float> results, std::span<const uint32_t> labels);
  uint64_t samples() const { return samples_; }
  TestResult result() const;

 private:
  double loss_ = 0;
  uint64_t correct_ = 0, samples_ = 0;
};

}  // namespace vitrine
