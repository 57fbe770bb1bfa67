// What model/labels/imagenet.h hands out.
#pragma once

#include "model/labels/imagenet.h"

namespace vitrine::imagenet {

// Every synset's, by number of the synset: each ends with a newline, and none lies in two texts.
extern const std::span<const std::string_view* const> words;
extern const std::span<const Set> sets;

}  // namespace vitrine::imagenet
