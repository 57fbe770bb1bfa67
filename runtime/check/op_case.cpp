#include "runtime/check/op_case.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <random>

#include "runtime/graph/executable.h"
#include "runtime/util/error.h"
#include "runtime/util/half.h"

namespace vitrine::reference {
namespace {

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

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", value);
  return text;
}

// Nothing where every byte that belongs to no tensor still holds what the memory was filled with.
std::optional<std::string> guard_fault(Executable& executable) {
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
      const auto expected = static_cast<std::byte>(unwritten_word >> (8 * (at % 4)));
      if (!covered[b][at] && memory[b][at] != expected) {
        return "memory was written outside every tensor: buffer " + std::to_string(b) + " of " +
               std::to_string(slabs) + " slabs, byte " + std::to_string(at);
      }
    }
  }
  return std::nullopt;
}

std::vector<std::vector<std::byte>> run(Executable& executable) {
  executable.fill_memory(unwritten_word);
  executable.run();
  std::vector<std::vector<std::byte>> outputs;
  for (size_t i = 0; i < executable.plan().outputs.size(); ++i) {
    const auto bytes = executable.output(i);
    outputs.emplace_back(bytes.begin(), bytes.end());
  }
  return outputs;
}

}  // namespace

OpCase one_result(std::string label, std::vector<OpInput> inputs, std::vector<double> expected,
                  std::function<ValueId(Graph&, std::span<const ValueId>)> build) {
  OpCase op_case;
  op_case.label = std::move(label);
  op_case.inputs = std::move(inputs);
  op_case.expected = {std::move(expected)};
  op_case.build = [build = std::move(build)](Graph& graph, std::span<const ValueId> ids) {
    return std::vector{build(graph, ids)};
  };
  return op_case;
}

OpCase exactly(OpCase op_case) {
  op_case.exact = true;
  return op_case;
}

double usual_tolerance(DType dtype) {
  return dtype == DType::f16 ? 2e-3 : dtype == DType::bf16 ? 1e-2 : 2e-6;
}

std::shared_ptr<const Graph> graph_of(const OpCase& op_case) {
  auto graph = std::make_shared<Graph>();
  std::vector<ValueId> ids;
  for (size_t i = 0; i < op_case.inputs.size(); ++i) {
    const OpInput& input = op_case.inputs[i];
    const std::string name = "i" + std::to_string(i);
    ids.push_back(input.role == Role::constant ? graph->constant(name, input.tensor.shape, input.tensor.dtype)
                                               : graph->input(name, input.tensor.shape, input.tensor.dtype));
  }
  const std::vector<ValueId> results = op_case.build(*graph, ids);
  if (results.size() != op_case.expected.size()) {
    throw Error(ErrorCode::usage, op_case.label + ": found " + std::to_string(results.size()) +
                                      " results, expected " + std::to_string(op_case.expected.size()));
  }
  for (size_t i = 0; i < results.size(); ++i) graph->output(results[i], "o" + std::to_string(i));
  return graph;
}

std::optional<std::string> useless(const OpCase& op_case) {
  for (const auto& expected : op_case.expected) {
    if (expected.size() < 2 || op_case.allow_nonfinite) continue;
    const bool constant =
        std::all_of(expected.begin(), expected.end(), [&](double v) { return v == expected[0]; });
    if (constant) return "the reference is the same everywhere and would prove nothing";
    if (std::any_of(expected.begin(), expected.end(), [](double v) { return !std::isfinite(v); }))
      return "the reference holds NaN or Inf, which this case does not expect";
  }
  return std::nullopt;
}

std::optional<std::string> difference(const OpCase& op_case, DType dtype, std::span<const double> out,
                                      std::span<const double> expected) {
  if (out.size() != expected.size()) {
    return "there are " + std::to_string(out.size()) + " elements, the reference has " +
           std::to_string(expected.size());
  }
  const auto off = [&](size_t i) {
    return "element " + std::to_string(i) + " is " + number(out[i]) + ", the reference is " +
           number(expected[i]);
  };
  if (op_case.pixels && dtype == DType::u32) {
    for (size_t i = 0; i < out.size(); ++i) {
      const auto found = static_cast<uint32_t>(out[i]), wanted = static_cast<uint32_t>(expected[i]);
      for (uint32_t bit = 0; bit < 32; bit += 8) {
        const int off_by = static_cast<int>(found >> bit & 255) - static_cast<int>(wanted >> bit & 255);
        if (off_by < -1 || off_by > 1)
          return "byte " + std::to_string(bit / 8) + " of pixel " + std::to_string(i) + " is " +
                 std::to_string(found >> bit & 255) + ", the reference is " +
                 std::to_string(wanted >> bit & 255);
      }
    }
    return std::nullopt;
  }
  double norm = 0, error = 0;
  size_t finite = 0;
  for (size_t i = 0; i < out.size(); ++i) {
    if (op_case.exact || !std::isfinite(expected[i])) {
      const bool same = out[i] == expected[i] || (std::isnan(out[i]) && std::isnan(expected[i]));
      if (!same) return off(i);
      continue;
    }
    if (!std::isfinite(out[i])) return off(i);
    norm += expected[i] * expected[i];
    error += (out[i] - expected[i]) * (out[i] - expected[i]);
    ++finite;
  }
  if (op_case.exact || finite == 0) return std::nullopt;
  const double tolerance = op_case.tolerance > 0 ? op_case.tolerance : usual_tolerance(dtype);
  const double relative = std::sqrt(error / norm);
  if (!(relative <= tolerance))
    return "relative error " + number(relative) + " is more than " + number(tolerance);
  // One wrong element among a million hides in the norm: each may be off by its own rounding and by
  // that of terms as large as the tensor's typical value.
  const double typical = std::sqrt(norm / static_cast<double>(finite));
  for (size_t i = 0; i < out.size(); ++i) {
    if (!std::isfinite(expected[i])) continue;
    const double allowed = tolerance * (std::abs(expected[i]) + 16 * typical);
    if (!(std::abs(out[i] - expected[i]) <= allowed))
      return off(i) + ", allowed difference " + number(allowed);
  }
  return std::nullopt;
}

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

std::optional<std::string> fault_of(PipelineStore& pipelines, const OpCase& op_case,
                                    const std::shared_ptr<const Graph>& graph, const PlanOptions& options) {
  return fault_of(pipelines, op_case, graph, options, pipelines.device().capabilities());
}

std::optional<std::string> fault_of(PipelineStore& pipelines, const OpCase& op_case,
                                    const std::shared_ptr<const Graph>& graph, PlanOptions options,
                                    const Capabilities& planned) {
  CaseConstants constants(op_case);
  options.guard_bytes = 1024;
  WeightStore weights(pipelines, constants);
  Executable executable(weights, make_plan(graph, planned, options));
  for (size_t i = 0, at = 0; i < op_case.inputs.size(); ++i) {
    if (op_case.inputs[i].role == Role::input)
      std::ranges::copy(encode(op_case.inputs[i].tensor), executable.input(at++).begin());
  }
  const auto first = run(executable);
  if (auto fault = guard_fault(executable)) return fault;
  const auto second = run(executable);
  for (size_t i = 0; i < first.size(); ++i) {
    // Plan::outputs is in the order of values; names say which result is which.
    const Value& value = executable.plan().graph->value(executable.plan().outputs[i]);
    const size_t which = std::stoul(value.name.substr(1));
    const std::string label = first.size() > 1 ? "output " + std::to_string(which) + ": " : "";
    if (first[i] != second[i]) return label + "two runs gave different bytes";
    if (const auto fault =
            difference(op_case, value.dtype, decode(first[i], value.dtype), op_case.expected[which]))
      return label + *fault;
  }
  return std::nullopt;
}

}  // namespace vitrine::reference
