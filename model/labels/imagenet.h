// What the classes of ImageNet are called, in the subsets and orders that classifiers are published with.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace vitrine::imagenet {

struct Set {
  uint64_t classes;
  std::string_view title;           // "ImageNet-1k"
  std::string_view tag;             // how timm's tags call what a model was trained on: "in1k"
  std::span<const uint64_t> held;   // a bit a synset: whether it is a class
  std::span<const uint64_t> first;  // these classes go before the others, in the same order; often none
};

// The one of so many classes, as timm counts (infer_imagenet_subset); null where there is none.
const Set* set_of(uint64_t classes);

// "tabby, tabby cat": one for each class, in order.
std::vector<std::string> class_names(const Set& set);

}  // namespace vitrine::imagenet
