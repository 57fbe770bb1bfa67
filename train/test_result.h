// How well a model does on labelled samples.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

namespace vitrine {

// Is given a model's results [labels, classes] on some samples, and their labels.
using TakeResults = std::function<void(std::span<const float> results, std::span<const uint32_t> labels)>;

struct TestResult {
  double loss = 0;      // mean cross-entropy, as PyTorch's: of the softmax of what the model gives
  double accuracy = 0;  // the share of samples whose largest number is the label's
  double top5 = 0;      // the share whose label is among the five largest; of equal ones the first count
};

class TestSums {
 public:
  // results [labels.size(), classes]. A NaN among a sample's results makes the loss NaN.
  void add(std::span<const float> results, std::span<const uint32_t> labels);
  uint64_t samples() const { return samples_; }
  TestResult result() const;

 private:
  double loss_ = 0;
  uint64_t correct_ = 0, among_five_ = 0, samples_ = 0;
};

}  // namespace vitrine
