// Some samples of a data set, in an order of one's own.
#pragma once

#include <memory>
#include <vector>

#include "train/data/dataset.h"

namespace vitrine {

class Selection final : public Dataset {
 public:
  // Sample i is `whole`'s sample numbers[i]; `whole` has to outlive this. Error(usage) for no samples, or for
  // a number that it doesn't have.
  Selection(const Dataset& whole, std::vector<uint32_t> numbers);
  void read(uint64_t i, std::span<uint8_t> pixels) const override;
  std::shared_ptr<const Picture> picture(uint64_t i) const override;
  PicturePatch patch(uint64_t i, const ChooseArea& choose) const override;
  std::filesystem::path file(uint64_t i) const override;

 private:
  const Dataset& whole_;
  std::vector<uint32_t> numbers_;
};

// `count` samples (or all, where there are fewer) that stand for the whole: the first `shown` are of as many
// classes as there are, in turn; the others lie evenly over the rest, as many a set is sorted by class.
std::vector<uint32_t> representative_samples(const Dataset& data, uint64_t shown, uint64_t count);

}  // namespace vitrine
