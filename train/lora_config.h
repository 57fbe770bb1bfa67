// What a training with LoRA is told, as PEFT's LoraConfig names it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace vitrine {

struct Lora {
  uint64_t rank = 8;
  double alpha = 16;    // what a pair gives is multiplied by alpha / rank
  bool rslora = false;  // by alpha / sqrt(rank) instead
  double dropout = 0;   // of what a pair is given
  // Which layers have pairs: names of the library's modules, whole or behind a dot. Empty: all linear layers
  // of the blocks.
  std::vector<std::string> targets;
  // Whether the head is trained beside them, and saved with them; left out: where it is new.
  std::optional<bool> head;
  // Whose names the base's tensors have (Family::name), and what stands in front of them.
  std::string family = "timm", prefix;
  bool operator==(const Lora&) const = default;
};

}  // namespace vitrine
