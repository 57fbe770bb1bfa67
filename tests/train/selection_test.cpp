#include "train/data/selection.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <set>

#include "runtime/util/error.h"
#include "tests/train/sample_files.h"

namespace vitrine {
namespace {

// Sorted by class, as image folders are.
std::string sorted_labels(uint32_t count, uint32_t classes) {
  std::string bytes = test::big_endian(0x801) + test::big_endian(count);
  for (uint32_t i = 0; i < count; ++i) bytes += static_cast<char>(i * classes / count);
  return bytes;
}

TEST_CASE("a selection holds the samples that were named, in their order") {
  const test::TemporaryFolder folder;
  folder.file("t10k-images-idx3-ubyte", test::idx_pictures(30, 5, 3));
  folder.file("t10k-labels-idx1-ubyte", test::idx_labels(30, 7));
  const auto data = open_dataset(folder.path(), Split::test);
  const Selection some(*data, {29, 3, 3, 14});
  REQUIRE(some.count() == 4);
  CHECK(some.shape() == data->shape());
  CHECK(some.classes() == data->classes());
  const std::vector<uint64_t> numbers{29, 3, 3, 14};
  for (uint64_t i = 0; i < 4; ++i) {
    CHECK(some.label(i) == data->label(numbers[i]));
    CHECK(test::has_pattern(some, i, numbers[i]));
  }
  CHECK_THROWS_AS(Selection(*data, {}), Error);
  CHECK_THROWS_AS(Selection(*data, {30}), Error);
}

TEST_CASE("representative samples show every class and cover the whole set") {
  const test::TemporaryFolder folder;
  folder.file("t10k-images-idx3-ubyte", test::idx_pictures(100, 4, 4));
  folder.file("t10k-labels-idx1-ubyte", sorted_labels(100, 10));
  const auto data = open_dataset(folder.path(), Split::test);
  for (const uint64_t count : {1u, 16u, 17u, 40u, 99u, 100u, 1000u}) {
    INFO(count << " samples");
    const std::vector<uint32_t> numbers = representative_samples(*data, 16, count);
    CHECK(numbers.size() == std::min<uint64_t>(count, 100));
    CHECK(std::set<uint32_t>(numbers.begin(), numbers.end()).size() == numbers.size());
    for (uint64_t i = 0; i < std::min<uint64_t>(16, count); ++i) CHECK(data->label(numbers[i]) == i % 10);
  }
  // The rest are spread over the classes.
  std::vector<int> of_class(10);
  for (const uint32_t number : representative_samples(*data, 16, 56)) ++of_class[data->label(number)];
  for (const int count : of_class) CHECK((count >= 4 && count <= 7));
}

}  // namespace
}  // namespace vitrine
