// What a program that uses an installed Vitrine may look like; it needs no GPU.
#include <iostream>

#include "model/presets.h"

int main() {
  const vitrine::ViTConfig config = vitrine::preset("vit_tiny_patch16_224");
  std::cout << config.tokens() << " tokens, " << vitrine::parameter_count(config) << " parameters\n";
  return 0;
}
