// What a program that uses an installed Vitrine may look like. It needs no GPU, and links all of it.
#include <iostream>

#include "images/image.h"
#include "model/vit/presets.h"
#include "model/vit/vit_graph.h"
#include "runtime/util/error.h"
#include "runtime/vk/instance.h"
#include "train/data/dataset.h"

int main() {
  const auto graph = vitrine::make_vit_graph(vitrine::preset("vit_tiny_patch16_224"), {.batch = 2});
  std::cout << "logits " << graph->value(graph->find("logits")).shape.to_string() << "\n";
  try {
    vitrine::decode_image({}, "nothing");
  } catch (const vitrine::Error& error) {
    std::cout << error.what() << "\n";
  }
  try {
    vitrine::open_dataset("nothing", vitrine::Split::train);
  } catch (const vitrine::Error& error) {
    std::cout << error.what() << "\n";
  }
  try {
    for (const auto& device : vitrine::Instance().devices()) std::cout << device.capabilities.name << "\n";
  } catch (const vitrine::Error& error) {
    std::cout << error.what() << "\n";
  }
  return 0;
}
