#include <utility>

#include "runtime/check/cases.h"
#include "runtime/ops/pictures/apply_operation.h"
#include "runtime/ops/pictures/reference_operation.h"

namespace vitrine {

using namespace cases;

namespace {

using Kind = PictureOperationKind;

constexpr uint32_t width = 13, height = 11;

std::vector<PictureOperation> some_operations() {
  const AffineMatrix turned{0.86, -0.51, 2.3, 0.51, 0.86, -1.7}, slanted{1, 0.27, 0, 0, 1, 0};
  return {{.kind = Kind::brightness, .factor = 1.3},
          {.kind = Kind::contrast, .factor = 0.4},
          {.kind = Kind::posterize, .number = 3},
          {.kind = Kind::solarize, .number = 100},
          {.kind = Kind::solarize_add, .number = 60},
          {.kind = Kind::invert},
          {.kind = Kind::autocontrast},
          {.kind = Kind::equalize},
          {.kind = Kind::none},
          {.kind = Kind::color, .factor = 1.9},
          {.kind = Kind::hue, .number = 77},
          {.kind = Kind::sharpness, .factor = 1.7},
          {.kind = Kind::nearest, .matrix = turned, .fill = 0xff070605},
          {.kind = Kind::bilinear, .matrix = turned, .fill = 0xff070605},
          {.kind = Kind::bicubic, .matrix = turned, .fill = 0xff070605},
          // Where doubles round decides of bytes here.
          {.kind = Kind::bilinear, .matrix = slanted},
          {.kind = Kind::bicubic, .matrix = slanted}};
}

struct Batch {
  HostTensor pixels, operations, tables, results;
};

Batch batch_of(const std::vector<PictureOperation>& all) {
  const uint64_t count = all.size(), pixels = width * height;
  Batch batch{.pixels = random_tensor({count, height, width}, DType::u32, 1, 0, 0x1000000),
              .operations = {{count, 1, VITRINE_OPERATION_WORDS}, DType::u32, {}},
              .tables = {{count, 256}, DType::u32, {}},
              .results = {{count, height, width}, DType::u32, {}}};
  for (uint64_t i = 0; i < count; ++i) {
    std::vector<uint32_t> picture;
    for (uint64_t k = 0; k < pixels; ++k) {
      double& pixel = batch.pixels.values[i * pixels + k];
      // Channels of a few values, so that neighbours are equal here and there.
      const uint32_t few = static_cast<uint32_t>(pixel) & 0x00f8f0e0;
      picture.push_back(0xff000000 | (few + (i % 2 == 0 ? 0 : 0x00070b13)));
      pixel = picture.back();
    }
    std::vector<uint32_t> words(VITRINE_OPERATION_WORDS);
    write_operation(all[i], width, height, words);
    std::vector<uint32_t> table = reference::operation_table(all[i], picture);
    if (table.empty()) table.assign(256, reference::unwritten_word);
    const std::vector<uint32_t> result = reference::operation_result(all[i], picture, width, height);
    batch.operations.values.insert(batch.operations.values.end(), words.begin(), words.end());
    batch.tables.values.insert(batch.tables.values.end(), table.begin(), table.end());
    batch.results.values.insert(batch.results.values.end(), result.begin(), result.end());
  }
  return batch;
}

}  // namespace

std::vector<OpCase> operation_tables_cases() {
  const Batch batch = batch_of(some_operations());
  return {exactly(one_result("each kind", {{batch.pixels}, {batch.operations}}, batch.tables.values,
                             [](Graph& graph, std::span<const ValueId> ids) {
                               return operation_tables(graph, "y", ids[0], ids[1], 0);
                             }))};
}

std::vector<OpCase> apply_operation_cases() {
  const Batch batch = batch_of(some_operations());
  return {exactly(one_result("each kind", {{batch.pixels}, {batch.operations}, {batch.tables}},
                             batch.results.values, [](Graph& graph, std::span<const ValueId> ids) {
                               return apply_operation(graph, "y", ids[0], ids[1], ids[2], {});
                             }))};
}

}  // namespace vitrine
