#include "train/augmentation_graph.h"

#include <string>

#include "runtime/ops/pictures/apply_operation.h"

namespace vitrine {

ValueId append_picture_operations(Graph& graph, const PictureAugmentation& augmentation, ValueId pictures) {
  const uint64_t batch = graph.value(pictures).shape[0], count = augmentation.operations();
  const ValueId operations =
      graph.input(std::string(operations_input), {batch, count, VITRINE_OPERATION_WORDS}, DType::u32);
  for (uint64_t i = 0; i < count; ++i) {
    const std::string name = "augment." + std::to_string(i);
    const ValueId tables = operation_tables(graph, name + ".tables", pictures, operations, i);
    pictures = apply_operation(graph, name, pictures, operations, tables,
                               {.operation = i,
                                .interpolates = augmentation.interpolates(),
                                .turns_hues = augmentation.turns_hues()});
  }
  return pictures;
}

}  // namespace vitrine
