#include "apps/cli/bench/op_cases.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>

#include "runtime/ops/attention/attention.h"
#include "runtime/ops/elementwise/binary.h"
#include "runtime/ops/products/matmul.h"
#include "runtime/util/error.h"
#include "runtime/util/half.h"
#include "runtime/util/text.h"

namespace vitrine::cli {
namespace {

// SplitMix64's mixing function (Steele, Lea and Flood, 2014): a benchmark's gigabyte of numbers takes a
// second.
uint64_t mixed(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

// y[m, n] = sum over k of x[m, k] w[n, k]
class MatmulCase final : public OpCase {
 public:
  explicit MatmulCase(const std::vector<uint64_t>& sizes) : m_(sizes[0]), n_(sizes[1]), k_(sizes[2]) {}
  ValueId build(Graph& graph, const std::string& name, DType dtype) const override {
    return matmul(graph, name, constant(graph, "x", {m_, k_}, dtype), constant(graph, "w", {n_, k_}, dtype));
  }
  uint64_t rows() const override { return m_; }
  std::vector<double> reference(const RandomValues& values, DType dtype, uint64_t,
                                uint64_t row) const override {
    std::vector<double> x(k_), y(n_);
    for (uint64_t k = 0; k < k_; ++k) x[k] = values.value("x", row * k_ + k, dtype);
    for (uint64_t n = 0; n < n_; ++n) {
      for (uint64_t k = 0; k < k_; ++k) y[n] += x[k] * values.value("w", n * k_ + k, dtype);
    }
    return y;
  }

  static ValueId constant(Graph& graph, const std::string& name, const Shape& shape, DType dtype) {
    const ValueId found = graph.find(name);
    return found ? found : graph.constant(name, shape, dtype);
  }

 private:
  uint64_t m_, n_, k_;
};

// Self-attention on one projection's output, read where it lies: [images, tokens, 3 * heads * width].
class AttentionCase final : public OpCase {
 public:
  explicit AttentionCase(const std::vector<uint64_t>& sizes)
      : images_(sizes[0]), tokens_(sizes[1]), heads_(sizes[2]), width_(sizes[3]) {}
  ValueId build(Graph& graph, const std::string& name, DType dtype) const override {
    const ValueId qkv = MatmulCase::constant(graph, "qkv", {images_, tokens_, 3 * all()}, dtype);
    return attention(graph, name, qkv, qkv, qkv,
                     {.heads = heads_, .key_width = width_, .k_offset = all(), .v_offset = 2 * all()})
        .out;
  }
  uint64_t rows() const override { return tokens_; }
  uint64_t batch() const override { return images_; }
  double range() const override { return 2; }  // scores far enough apart for a softmax to matter
  std::vector<double> reference(const RandomValues& values, DType dtype, uint64_t image,
                                uint64_t row) const override {
    const auto qkv = [&](uint64_t token, uint64_t element) {
      return values.value("qkv", (image * tokens_ + token) * 3 * all() + element, dtype);
    };
    std::vector<double> out(all()), weights(tokens_), q(width_);
    for (uint64_t head = 0; head < heads_; ++head) {
      const uint64_t at = head * width_;
      for (uint64_t i = 0; i < width_; ++i) q[i] = qkv(row, at + i);
      double sum = 0;
      for (uint64_t token = 0; token < tokens_; ++token) {
        double score = 0;
        for (uint64_t i = 0; i < width_; ++i) score += q[i] * qkv(token, all() + at + i);
        // Scores are small enough for exp without taking the largest off.
        weights[token] = std::exp(score / std::sqrt(static_cast<double>(width_)));
        sum += weights[token];
      }
      for (uint64_t token = 0; token < tokens_; ++token) {
        for (uint64_t i = 0; i < width_; ++i) {
          out[at + i] += weights[token] / sum * qkv(token, 2 * all() + at + i);
        }
      }
    }
    return out;
  }

 private:
  uint64_t all() const { return heads_ * width_; }
  uint64_t images_, tokens_, heads_, width_;
};

// a + b: what memory can deliver.
class AddCase final : public OpCase {
 public:
  explicit AddCase(const std::vector<uint64_t>& sizes) : m_(sizes[0]), n_(sizes[1]) {}
  ValueId build(Graph& graph, const std::string& name, DType dtype) const override {
    return add(graph, name, MatmulCase::constant(graph, "a", {m_, n_}, dtype),
               MatmulCase::constant(graph, "b", {m_, n_}, dtype));
  }
  uint64_t rows() const override { return m_; }
  std::vector<double> reference(const RandomValues& values, DType dtype, uint64_t,
                                uint64_t row) const override {
    std::vector<double> y(n_);
    for (uint64_t n = 0; n < n_; ++n) {
      y[n] = values.value("a", row * n_ + n, dtype) + values.value("b", row * n_ + n, dtype);
    }
    return y;
  }

 private:
  uint64_t m_, n_;
};

template <typename Case>
std::unique_ptr<OpCase> make(const std::vector<uint64_t>& sizes) {
  return std::make_unique<Case>(sizes);
}

struct Kind {
  const char *name, *sizes;
  size_t size_count;
  std::unique_ptr<OpCase> (*make)(const std::vector<uint64_t>&);
};

constexpr std::array kinds{
    Kind{"matmul", "MxNxK, as in 50432x3072x768", 3, make<MatmulCase>},
    Kind{"attention", "IMAGESxTOKENSxHEADSxWIDTH, as in 8x1370x16x64", 4, make<AttentionCase>},
    Kind{"add", "ROWSxCOLUMNS, as in 16384x1024", 2, make<AddCase>},
};

std::vector<uint64_t> sizes_of(const std::string& shape) {
  std::vector<uint64_t> sizes;
  for (size_t at = 0; at <= shape.size();) {
    const size_t end = std::min(shape.find('x', at), shape.size());
    uint64_t size = 0;
    const auto [stop, error] = std::from_chars(shape.data() + at, shape.data() + end, size);
    // No tensor of these can have more elements than 32 bits count.
    if (error != std::errc() || stop != shape.data() + end || size == 0 || size > UINT32_MAX) return {};
    sizes.push_back(size);
    at = end + 1;
  }
  return sizes;
}

}  // namespace

uint64_t RandomValues::stream_of(const std::string& name) const {
  uint64_t stream = mixed(seed_ + 0x9E3779B97F4A7C15ull);
  for (const char c : name) stream = mixed(stream ^ static_cast<uint8_t>(c));
  return stream;
}

float RandomValues::plain_value(uint64_t stream, uint64_t element) const {
  const uint64_t bits = mixed(stream + element * 0x9E3779B97F4A7C15ull);
  return static_cast<float>((static_cast<double>(bits >> 11) * 0x1p-52 - 1) * range_);
}

double RandomValues::value(const std::string& name, uint64_t element, DType dtype) const {
  const float value = plain_value(stream_of(name), element);
  return dtype == DType::f16 ? f16_to_f32(f32_to_f16(value)) : value;
}

ConstantParts RandomValues::find(const std::string& name, const Shape& shape, DType dtype) {
  const uint64_t stream = stream_of(name), count = shape.elements();
  bytes_.resize(count * size_of(dtype));
  for (uint64_t i = 0; i < count; ++i) {
    const float value = plain_value(stream, i);
    if (dtype == DType::f16) {
      const uint16_t bits = f32_to_f16(value);
      std::memcpy(&bytes_[i * sizeof bits], &bits, sizeof bits);
    } else {
      std::memcpy(&bytes_[i * sizeof value], &value, sizeof value);
    }
  }
  return {{dtype, bytes_}};
}

const std::vector<std::string>& op_case_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const Kind& kind : kinds) all.emplace_back(kind.name);
    return all;
  }();
  return names;
}

std::unique_ptr<OpCase> make_op_case(const std::string& name, const std::string& shape) {
  const Kind& kind = *std::ranges::find_if(kinds, [&](const Kind& k) { return name == k.name; });
  const std::vector<uint64_t> sizes = sizes_of(shape);
  if (sizes.size() != kind.size_count) {
    throw Error(ErrorCode::usage,
                "--shape: found " + in_quotes(shape) + ", expected " + kind.sizes + ", for --op " + name);
  }
  return kind.make(sizes);
}

}  // namespace vitrine::cli
