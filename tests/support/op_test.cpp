#include "tests/support/op_test.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <cstring>
#include <random>

#include "runtime/graph/executable.h"
#include "runtime/util/half.h"
#include "tests/support/test_device.h"

namespace vitrine::test {
namespace {

// A NaN in f32, and in both halves in f16 and bf16.
constexpr uint32_t nan_word = 0x7fcd7fcd;

class CaseConstants final : public ConstantSource {
 public:
  explicit CaseConstants(const OpCase& op_case) {
    for (const OpInput& input : op_case.inputs) bytes_.push_back(encode(input.tensor));
  }
  ConstantParts find(const std::string& name, const Shape&, DType dtype) override {
    return {{dtype, bytes_.at(std::stoul(name.substr(1)))}};
  }

 private:
  std::vector<std::vector<std::byte>> bytes_;
};

std::shared_ptr<const Graph> build(const OpCase& op_case) {
  auto graph = std::make_shared<Graph>();
  std::vector<ValueId> ids;
  for (size_t i = 0; i < op_case.inputs.size(); ++i) {
    const OpInput& input = op_case.inputs[i];
    const std::string name = "i" + std::to_string(i);
    ids.push_back(input.role == Role::constant ? graph->constant(name, input.tensor.shape, input.tensor.dtype)
                                               : graph->input(name, input.tensor.shape, input.tensor.dtype));
  }
  const std::vector<ValueId> results = op_case.build(*graph, ids);
  REQUIRE(results.size() == op_case.expected.size());
  for (size_t i = 0; i < results.size(); ++i) graph->output(results[i], "o" + std::to_string(i));
  return graph;
}

std::optional<std::string> refusal(const Graph& graph, const OpDef& op, const KernelDef& kernel,
                                   const Capabilities& device) {
  for (const Node& node : graph.nodes()) {
    if (node.op != &op) continue;
    if (const auto why = kernel.refuses(LowerContext(graph, node, device))) return why;
  }
  return std::nullopt;
}

// Every byte that belongs to no tensor still holds what the memory was filled with.
void check_guards(Executable& executable) {
  const Plan& plan = executable.plan();
  std::vector<std::vector<std::byte>> memory = executable.read_memory();
  std::vector<std::vector<bool>> covered;
  for (const auto& buffer : memory) covered.emplace_back(buffer.size(), false);
  const auto cover = [&](size_t buffer, uint64_t offset, uint64_t bytes) {
    std::fill_n(covered[buffer].begin() + static_cast<std::ptrdiff_t>(offset), bytes, true);
  };
  for (const Plan::Tensor& tensor : plan.tensors)
    cover(tensor.range.index, tensor.range.offset, tensor.range.bytes);
  const size_t slabs = plan.slab_bytes.size();
  for (size_t i = 0; i < plan.outputs.size(); ++i)
    cover(slabs + i, 0, plan.graph->value(plan.outputs[i]).bytes());
  for (size_t b = 0; b < memory.size(); ++b) {
    for (size_t at = 0; at < memory[b].size(); ++at) {
      const auto expected = static_cast<std::byte>(nan_word >> (8 * (at % 4)));
      if (!covered[b][at] && memory[b][at] != expected) {
        FAIL("memory was written outside every tensor: buffer " << b << " of " << slabs << " slabs, byte "
                                                                << at);
      }
    }
  }
}

void compare(const OpCase& op_case, DType dtype, std::span<const double> out,
             std::span<const double> expected) {
  REQUIRE(out.size() == expected.size());
  double norm = 0, error = 0;
  size_t finite = 0;
  for (size_t i = 0; i < out.size(); ++i) {
    if (op_case.exact || !std::isfinite(expected[i])) {
      const bool same = out[i] == expected[i] || (std::isnan(out[i]) && std::isnan(expected[i]));
      if (!same) FAIL("element " << i << " is " << out[i] << ", the reference is " << expected[i]);
      continue;
    }
    if (!std::isfinite(out[i]))
      FAIL("element " << i << " is " << out[i] << ", the reference is " << expected[i]);
    norm += expected[i] * expected[i];
    error += (out[i] - expected[i]) * (out[i] - expected[i]);
    ++finite;
  }
  if (op_case.exact || finite == 0) return;
  const double tolerance = op_case.tolerance > 0  ? op_case.tolerance
                           : dtype == DType::f16  ? 2e-3
                           : dtype == DType::bf16 ? 1e-2
                                                  : 2e-6;
  const double relative = std::sqrt(error / norm);
  INFO("relative error " << relative << ", allowed " << tolerance);
  if (!(relative <= tolerance)) FAIL("relative error " << relative << " is more than " << tolerance);
  // One wrong element among a million hides in the norm: each may be off by its own rounding and by
  // that of terms as large as the tensor's typical value.
  const double typical = std::sqrt(norm / static_cast<double>(finite));
  for (size_t i = 0; i < out.size(); ++i) {
    if (!std::isfinite(expected[i])) continue;
    const double allowed = tolerance * (std::abs(expected[i]) + 16 * typical);
    if (!(std::abs(out[i] - expected[i]) <= allowed)) {
      FAIL("element " << i << " is " << out[i] << ", the reference is " << expected[i]
                      << ", allowed difference " << allowed);
    }
  }
}

void require_telling_reference(const OpCase& op_case) {
  for (const auto& expected : op_case.expected) {
    if (expected.size() < 2 || op_case.allow_nonfinite) continue;
    const bool constant =
        std::all_of(expected.begin(), expected.end(), [&](double v) { return v == expected[0]; });
    if (constant) FAIL("the reference is the same everywhere and would prove nothing");
    if (std::any_of(expected.begin(), expected.end(), [](double v) { return !std::isfinite(v); })) {
      FAIL("the reference holds NaN or Inf, which this case does not expect");
    }
  }
}

std::vector<std::vector<std::byte>> run(Executable& executable) {
  executable.fill_memory(nan_word);
  executable.run();
  std::vector<std::vector<std::byte>> outputs;
  for (size_t i = 0; i < executable.plan().outputs.size(); ++i) {
    const auto bytes = executable.output(i);
    outputs.emplace_back(bytes.begin(), bytes.end());
  }
  return outputs;
}

}  // namespace

double round_to(DType dtype, double value) {
  switch (dtype) {
    case DType::f32:
      return static_cast<double>(static_cast<float>(value));
    case DType::f16:
      return static_cast<double>(f16_to_f32(f32_to_f16(static_cast<float>(value))));
    case DType::bf16:
      return static_cast<double>(bf16_to_f32(f32_to_bf16(static_cast<float>(value))));
    case DType::u32:
      return std::floor(value);
  }
  return value;
}

HostTensor random_tensor(Shape shape, DType dtype, uint64_t seed, double low, double high) {
  HostTensor tensor{shape, dtype, {}};
  std::mt19937_64 engine(seed);
  tensor.values.reserve(shape.elements());
  for (uint64_t i = 0; i < shape.elements(); ++i) {
    const double unit = static_cast<double>(engine() >> 11) * 0x1p-53;
    tensor.values.push_back(round_to(dtype, low + (high - low) * unit));
  }
  return tensor;
}

HostTensor filled(Shape shape, DType dtype, double value) {
  return {shape, dtype, std::vector<double>(shape.elements(), round_to(dtype, value))};
}

std::vector<std::byte> encode(const HostTensor& tensor) {
  std::vector<std::byte> bytes(tensor.values.size() * size_of(tensor.dtype));
  for (size_t i = 0; i < tensor.values.size(); ++i) {
    const auto put = [&](auto value) { std::memcpy(bytes.data() + i * sizeof value, &value, sizeof value); };
    const auto value = static_cast<float>(tensor.values[i]);
    switch (tensor.dtype) {
      case DType::f32:
        put(value);
        break;
      case DType::f16:
        put(f32_to_f16(value));
        break;
      case DType::bf16:
        put(f32_to_bf16(value));
        break;
      case DType::u32:
        put(static_cast<uint32_t>(tensor.values[i]));
        break;
    }
  }
  return bytes;
}

std::vector<double> decode(std::span<const std::byte> bytes, DType dtype) {
  std::vector<double> values(bytes.size() / size_of(dtype));
  for (size_t i = 0; i < values.size(); ++i) {
    const auto get = [&](auto value) {
      std::memcpy(&value, bytes.data() + i * sizeof value, sizeof value);
      return value;
    };
    switch (dtype) {
      case DType::f32:
        values[i] = get(float{});
        break;
      case DType::f16:
        values[i] = f16_to_f32(get(uint16_t{}));
        break;
      case DType::bf16:
        values[i] = bf16_to_f32(get(uint16_t{}));
        break;
      case DType::u32:
        values[i] = get(uint32_t{});
        break;
    }
  }
  return values;
}

double relative_error(std::span<const double> out, std::span<const double> reference) {
  double norm = 0, error = 0;
  for (size_t i = 0; i < reference.size(); ++i) {
    norm += reference[i] * reference[i];
    error += (out[i] - reference[i]) * (out[i] - reference[i]);
  }
  return std::sqrt(error / norm);
}

void check_op(const OpDef& op, const OpCase& op_case) {
  INFO("case " << op_case.label);
  require_telling_reference(op_case);
  TestDevice& device = test_device();
  const std::shared_ptr<const Graph> graph = build(op_case);
  CaseConstants constants(op_case);
  size_t ran = 0;
  std::string refusals;
  for (const KernelDef& kernel : op.kernels) {
    INFO("kernel " << op.name << "=" << kernel.name);
    if (const auto why = refusal(*graph, op, kernel, device.device->capabilities())) {
      refusals += std::string(kernel.name) + ": " + *why + "; ";
      continue;
    }
    PlanOptions options;
    options.variants[std::string(op.name)] = std::string(kernel.name);
    options.guard_bytes = 1024;
    WeightStore weights(*device.pipelines, constants);
    Executable executable(weights, make_plan(graph, device.device->capabilities(), options));
    for (size_t i = 0, at = 0; i < op_case.inputs.size(); ++i) {
      if (op_case.inputs[i].role != Role::input) continue;
      const std::vector<std::byte> bytes = encode(op_case.inputs[i].tensor);
      const auto target = executable.input(at++);
      REQUIRE(target.size() == bytes.size());
      std::memcpy(target.data(), bytes.data(), bytes.size());
    }
    const auto first = run(executable);
    check_guards(executable);
    const auto second = run(executable);
    for (size_t i = 0; i < first.size(); ++i) {
      INFO("output " << i);
      // Plan::outputs is in the order of values; names say which result is which.
      const Value& value = graph->value(executable.plan().outputs[i]);
      const size_t which = std::stoul(value.name.substr(1));
      if (first[i] != second[i]) FAIL("two runs gave different bytes");
      compare(op_case, value.dtype, decode(first[i], value.dtype), op_case.expected[which]);
    }
    require_no_validation_messages();
    ++ran;
  }
  if (ran == 0) FAIL("no kernel of " << op.name << " could run: " << refusals);
  SUCCEED();
}

}  // namespace vitrine::test
