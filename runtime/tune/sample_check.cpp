#include "runtime/tune/sample_check.h"

#include <algorithm>
#include <cstring>

#include "runtime/ops/attention/attention.h"
#include "runtime/ops/attention/attention_kernels.h"
#include "runtime/ops/norms/layer_norm.h"
#include "runtime/ops/norms/softmax.h"
#include "runtime/ops/products/matmul.h"
#include "runtime/ops/products/matmul_kernels.h"
#include "runtime/ops/tokens/patch_embed.h"
#include "runtime/selftest/op_case.h"
#include "runtime/selftest/reference_gradients.h"
#include "runtime/selftest/reference_matmul.h"

namespace vitrine {
namespace {

using reference::Values;

constexpr uint64_t most_rows = 8;

// The first, the last, and some between, at uneven distances so that they meet tiles at different places.
std::vector<uint64_t> some_rows(uint64_t rows) {
  std::vector<uint64_t> picked;
  for (uint64_t i = 0; i < std::min(rows, most_rows); ++i)
    picked.push_back(rows <= most_rows ? i : (rows - 1) * i * i / ((most_rows - 1) * (most_rows - 1)));
  picked.erase(std::unique(picked.begin(), picked.end()), picked.end());
  return picked;
}

double tolerance_for(DType dtype) { return dtype == DType::f16 ? 2e-3 : 2e-6; }

// Of whole rows of a result whose last dimension is `width`.
Sample rows_sample(const LoneNode& node, const std::vector<uint64_t>& rows, uint64_t width, Values expected) {
  Sample sample{.expected = std::move(expected),
                .tolerance = tolerance_for(node.graph()->value(node.node().outputs[0]).dtype)};
  for (const uint64_t row : rows) {
    for (uint64_t i = 0; i < width; ++i) sample.elements.push_back(row * width + i);
  }
  return sample;
}

Values rows_of(const LoneNode& node, size_t input, const std::vector<uint64_t>& rows, uint64_t width) {
  Values values;
  for (const uint64_t row : rows) {
    for (uint64_t i = 0; i < width; ++i) values.push_back(node.value(input, row * width + i));
  }
  return values;
}

// The same of a matrix that lies column by column, with `count` rows.
Values columns_of(const LoneNode& node, size_t input, const std::vector<uint64_t>& rows, uint64_t count,
                  uint64_t width) {
  Values values;
  for (const uint64_t row : rows) {
    for (uint64_t i = 0; i < width; ++i) values.push_back(node.value(input, i * count + row));
  }
  return values;
}

Values optional_values(const LoneNode& node, size_t input) {
  return node.has_input(input) ? node.values(input) : Values();
}

Sample matmul_sample(const LoneNode& node) {
  const auto [m, n, k] =
      matmul_sizes(node.node(), node.input(matmul_input::x).shape, node.input(matmul_input::weight).shape);
  const std::vector<uint64_t> rows = some_rows(m);
  const Values x = is_x_transposed(node.node()) ? columns_of(node, matmul_input::x, rows, m, k)
                                                : rows_of(node, matmul_input::x, rows, k);
  Values weight = node.values(matmul_input::weight);
  if (is_weight_transposed(node.node())) weight = reference::transpose(weight, k, n);
  reference::Epilogue epilogue{
      .bias = optional_values(node, matmul_input::bias),
      .scale = optional_values(node, matmul_input::scale),
      .residual =
          node.has_input(matmul_input::residual) ? rows_of(node, matmul_input::residual, rows, n) : Values(),
      .activation = static_cast<Activation>(node.node().attributes.integer("activation"))};
  Sample sample = rows_sample(node, rows, n, reference::matmul(x, weight, rows.size(), n, k, epilogue));
  // A sum of k terms is rounded k times; what long ones may lose is measured at k = 4096.
  if (k > 1024) sample.tolerance = std::max(sample.tolerance, 5e-6);
  return sample;
}

std::vector<Sample> attention_samples(const LoneNode& node) {
  const Attributes& attributes = node.node().attributes;
  const auto whole = [&](const char* name) { return static_cast<uint64_t>(attributes.integer(name)); };
  const uint64_t heads = whole("heads"), key_width = whole("key_width"), value_width = whole("value_width");
  const Shape &q = node.input(attention_input::q).shape, &k = node.input(attention_input::k).shape,
              &v = node.input(attention_input::v).shape;
  // All of the last image's keys, and some of its queries.
  const uint64_t image = q[0] - 1, queries = q[1];
  const std::vector<uint64_t> rows = some_rows(queries);
  std::vector<uint64_t> query_rows, key_rows;
  for (const uint64_t row : rows) query_rows.push_back(image * queries + row);
  for (uint64_t row = 0; row < k[1]; ++row) key_rows.push_back(image * k[1] + row);
  const Values q_values = rows_of(node, attention_input::q, query_rows, q[2]),
               k_values = rows_of(node, attention_input::k, key_rows, k[2]),
               v_values = rows_of(node, attention_input::v, key_rows, v[2]);
  const reference::Attention expected = reference::attention(
      {q_values, rows.size(), q[2], whole("q_offset"), key_width},
      {k_values, k[1], k[2], whole("k_offset"), key_width},
      {v_values, k[1], v[2], whole("v_offset"), value_width}, 1, heads, attributes.number("scale"));
  std::vector<Sample> samples{rows_sample(node, query_rows, heads * value_width, expected.out)};
  if (attributes.flag("store_lse")) {
    Sample& lse = samples.emplace_back(Sample{
        .output = 1, .elements = {}, .expected = expected.lse, .tolerance = tolerance_for(DType::f32)});
    for (uint64_t head = 0; head < heads; ++head) {
      for (const uint64_t row : rows) lse.elements.push_back((image * heads + head) * queries + row);
    }
  }
  return samples;
}

Sample layer_norm_sample(const LoneNode& node) {
  const Shape& x = node.input(0).shape;
  const std::vector<uint64_t> rows = some_rows(x.rows());
  return rows_sample(node, rows, x[-1],
                     reference::layer_norm(rows_of(node, 0, rows, x[-1]), node.values(1), node.values(2),
                                           node.node().attributes.number("eps")));
}

Sample softmax_sample(const LoneNode& node) {
  const Shape& x = node.input(0).shape;
  const std::vector<uint64_t> rows = some_rows(x.rows());
  return rows_sample(node, rows, x[-1], reference::softmax(rows_of(node, 0, rows, x[-1]), x[-1]));
}

Sample patch_embed_sample(const LoneNode& node) {
  const Shape &image = node.input(0).shape, &weight = node.input(1).shape;
  const uint64_t channels = weight[1], height = weight[2], width = weight[3];
  const uint64_t rows = image[2] / height, columns = image[3] / width;
  // Each sampled patch as an image of its own.
  const std::vector<uint64_t> patches = some_rows(image[0] * rows * columns);
  Values pixels;
  for (const uint64_t patch : patches) {
    const uint64_t b = patch / (rows * columns), y = patch / columns % rows, x = patch % columns;
    for (uint64_t c = 0; c < channels; ++c) {
      for (uint64_t dy = 0; dy < height; ++dy) {
        for (uint64_t dx = 0; dx < width; ++dx) {
          const uint64_t row = (b * channels + c) * image[2] + y * height + dy;
          pixels.push_back(node.value(0, row * image[3] + x * width + dx));
        }
      }
    }
  }
  return rows_sample(node, patches, weight[0],
                     reference::patch_embed(pixels, {patches.size(), channels, height, width}, node.values(1),
                                            weight, optional_values(node, 2)));
}

}  // namespace

std::vector<Sample> sample_of(const LoneNode& node) {
  const OpDef* op = node.node().op;
  if (op == &op_matmul) return {matmul_sample(node)};
  if (op == &op_attention) return attention_samples(node);
  if (op == &op_layer_norm) return {layer_norm_sample(node)};
  if (op == &op_softmax) return {softmax_sample(node)};
  if (op == &op_patch_embed) return {patch_embed_sample(node)};
  return {};
}

std::optional<std::string> fault_in(const Sample& sample, DType dtype, std::span<const std::byte> output) {
  std::vector<double> out;
  for (const uint64_t element : sample.elements) {
    const auto bytes = output.subspan(element * size_of(dtype), size_of(dtype));
    out.push_back(selftest::decode(bytes, dtype)[0]);
  }
  selftest::OpCase limits;
  limits.tolerance = sample.tolerance;
  return selftest::difference(limits, dtype, out, sample.expected);
}

}  // namespace vitrine
