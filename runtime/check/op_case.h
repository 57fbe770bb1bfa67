// One operator on given numbers, and what a float64 reference says comes out: what the tests and
// `vitrine doctor` run kernels on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/graph/graph.h"
#include "runtime/graph/pipeline_store.h"
#include "runtime/graph/plan.h"
#include "runtime/graph/tensor.h"

namespace vitrine::reference {

// What the memory holds where nothing was written: a NaN in f32, and in both halves in f16 and bf16.
constexpr uint32_t unwritten_word = 0x7fcd7fcd;

// What nearly every operator can be given.
inline constexpr DType dtypes[] = {DType::f32, DType::f16};

// A tensor on the host: every value is exactly representable in its dtype.
struct HostTensor {
  Shape shape;
  DType dtype = DType::f32;
  std::vector<double> values;
};

double round_to(DType dtype, double value);
HostTensor random_tensor(Shape shape, DType dtype, uint64_t seed, double low = -1, double high = 1);
HostTensor filled(Shape shape, DType dtype, double value);
std::vector<std::byte> encode(const HostTensor& tensor);
std::vector<double> decode(std::span<const std::byte> bytes, DType dtype);

// ‖out − reference‖ / ‖reference‖
double relative_error(std::span<const double> out, std::span<const double> reference);

struct OpInput {
  HostTensor tensor;
  Role role = Role::input;  // or Role::constant, for weights
};

struct OpCase {
  std::string label;
  std::vector<OpInput> inputs;
  // Builds the nodes and returns the values to compare.
  std::function<std::vector<ValueId>(Graph&, std::span<const ValueId>)> build;
  std::vector<std::vector<double>> expected;  // the float64 reference of each
  // Largest relative error; 0: the usual one of the output's dtype.
  double tolerance = 0;
  bool exact = false;            // every value must be equal
  bool pixels = false;           // u32 results are four bytes each, which may be off by one
  bool allow_nonfinite = false;  // the reference holds NaN or Inf: they must come out in the same places
  bool for_its_path = false;     // the self-test runs only code on it that no case before it has run
};

// A case whose node has one result.
OpCase one_result(std::string label, std::vector<OpInput> inputs, std::vector<double> expected,
                  std::function<ValueId(Graph&, std::span<const ValueId>)> build);
// The same case, of which every value must be equal.
OpCase exactly(OpCase op_case);

// The largest relative error of a result that is stored so, where a case says nothing else.
double usual_tolerance(DType dtype);

std::shared_ptr<const Graph> graph_of(const OpCase& op_case);

// Why the case would prove nothing: its reference is constant, or not finite where that isn't expected.
std::optional<std::string> useless(const OpCase& op_case);

// How `out` differs from `expected` by more than the case allows for a result of this dtype; else nothing.
std::optional<std::string> difference(const OpCase& op_case, DType dtype, std::span<const double> out,
                                      std::span<const double> expected);

// Runs the case's graph as the options plan it, twice, in memory that is filled with NaN and has guard bands
// around every tensor. Says what is wrong: a byte written outside every tensor, two runs that differ, or a
// result that differs from the reference.
std::optional<std::string> fault_of(PipelineStore& pipelines, const OpCase& op_case,
                                    const std::shared_ptr<const Graph>& graph, const PlanOptions& options);
// The same of a plan that was made with `planned`, which may say less of the device than it is.
std::optional<std::string> fault_of(PipelineStore& pipelines, const OpCase& op_case,
                                    const std::shared_ptr<const Graph>& graph, PlanOptions options,
                                    const Capabilities& planned);

}  // namespace vitrine::reference
