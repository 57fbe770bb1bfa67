#include "runtime/ops/explain/principal_colors.h"

#include <algorithm>
#include <utility>

#include "runtime/ops/explain/centered_rows.h"
#include "runtime/ops/lowering.h"
#include "runtime/ops/products/matmul.h"
#include "shaders/explain/principal_colors.h"

namespace vitrine {
namespace {

constexpr uint32_t input_matrix = 0, input_means = 1, input_columns = 2;
// Rounds of all dispatches, which go on with each other's vectors, and of one that takes about as long as a
// submission should.
constexpr uint32_t all_rounds = 16, usual_rounds = 4;

uint64_t rows_of(const Attributes& attributes) { return static_cast<uint64_t>(attributes.integer("rows")); }

void infer(InferContext& c) {
  const Value &matrix = c.input(input_matrix), &means = c.input(input_means);
  const uint64_t rows = rows_of(c.attributes());
  c.require(means.dtype == DType::f32 && means.shape.rank() == 1,
            "the means are " + std::string(name_of(means.dtype)) + " " + means.shape.to_string() +
                ", expected f32 [width]");
  const uint64_t width = means.shape[0];
  const uint64_t order = c.has_input(input_columns) ? width : rows;
  c.require(rows > 0 && matrix.dtype == DType::f32 && matrix.shape == Shape{order, order},
            "the matrix is " + std::string(name_of(matrix.dtype)) + " " + matrix.shape.to_string() +
                ", expected f32 " + Shape{order, order}.to_string());
  if (c.has_input(input_columns)) {
    const Value& columns = c.input(input_columns);
    const Shape expected{width, rows};
    c.require(columns.dtype == DType::f32 && columns.shape == expected,
              "the columns are " + std::string(name_of(columns.dtype)) + " " + columns.shape.to_string() +
                  ", expected f32 " + expected.to_string());
  }
  c.output({rows}, DType::u32);
}

// As many products as usually suffice, and the scores.
double flops(const LowerContext& c) {
  const double order = static_cast<double>(c.input(input_matrix).shape[0]);
  const double scores =
      c.has_input(input_columns) ? 6.0 * static_cast<double>(c.input(input_columns).shape.elements()) : 0;
  return 27 * 2.0 * VITRINE_PRINCIPAL_VECTORS * order * order + scores;
}

// A CPU has no use for more invocations than it has lanes, but where loops end early they share the rounds.
uint32_t local_size_of(const Capabilities& device) {
  if (device.max_loop_rounds != 0) return workgroup_size(device, 1024);
  return workgroup_size(device, device.type == DeviceType::cpu ? std::max(device.subgroup_size, 1u) : 512);
}

// How often the loops of an invocation of principal_vectors go round: those of the products, and at most
// those of the small matrices, whatever the order.
uint64_t loop_rounds(const LowerContext& c, uint32_t rounds) {
  const uint64_t order = c.input(input_matrix).shape[0];
  constexpr uint64_t products = VITRINE_PRINCIPAL_POWERS + 1, small_matrices = 11250;
  return rounds * (products * ceil_div(order, local_size_of(c.device())) * order + small_matrices);
}

bool takes_rounds(const LowerContext& c, uint32_t rounds) {
  const uint32_t most = c.device().max_loop_rounds;
  return most == 0 || loop_rounds(c, rounds) <= most;
}

std::optional<std::string> refuses(const LowerContext& c) {
  if (!takes_rounds(c, 1)) {
    return "its loops go round " + std::to_string(loop_rounds(c, 1)) +
           " times, and this driver ends them after " + std::to_string(c.device().max_loop_rounds);
  }
  if (auto reason = refuse(c, "principal_vectors", "f32")) return reason;
  return refuse(c, "principal_colors", "f32");
}

Lowered lower(const LowerContext& c) {
  const uint64_t order = c.input(input_matrix).shape[0], rows = rows_of(c.attributes());
  const bool of_width = c.has_input(input_columns);
  const uint32_t local_size = local_size_of(c.device());
  shader::PrincipalColorsParams params{.order = to_u32(order),
                                       .rows = to_u32(rows),
                                       .width = to_u32(c.input(input_means).shape[0]),
                                       .starts = 1,
                                       .rounds = takes_rounds(c, usual_rounds) ? usual_rounds : 1};
  enum Scratch : uint32_t { vectors, products, state, scores };
  Lowered lowered;
  const uint64_t vector_bytes = order * VITRINE_PRINCIPAL_VECTORS * sizeof(float);
  lowered.scratch = {vector_bytes, vector_bytes, VITRINE_PRINCIPAL_STATE_WORDS * sizeof(float),
                     rows * 4 * sizeof(float)};
  for (uint32_t done = 0; done < all_rounds; done += params.rounds) {
    Dispatch iterate;
    iterate.shader = &find_shader("principal_vectors", "f32");
    iterate.constants = {{"local_size", local_size}};
    iterate.operands = {Operand::input(input_matrix), Operand::input(input_means), Operand::scratch(vectors),
                        Operand::scratch(products), Operand::scratch(state)};
    iterate.set_params(params);
    iterate.note = "vectors";
    lowered.dispatches.push_back(std::move(iterate));
    params.starts = 0;
  }
  Dispatch color;
  color.shader = &find_shader("principal_colors", "f32");
  color.constants = {{"local_size", local_size}, {"of_width", of_width}};
  color.operands = {of_width ? Operand::input(input_columns) : Operand::nothing(), Operand::scratch(vectors),
                    Operand::scratch(state), Operand::scratch(scores), Operand::output(0)};
  color.set_params(params);
  color.note = "colors";
  lowered.dispatches.push_back(std::move(color));
  return lowered;
}

constexpr KernelDef kernels[] = {{"simple", Target::any, refuses, no_preference, lower}};

}  // namespace

const OpDef op_principal_colors{"principal_colors", infer, flops, kernels, principal_colors_cases};

ValueId principal_colors(Graph& graph, const std::string& name, ValueId tokens, uint64_t first,
                         uint64_t count) {
  const bool of_width = graph.value(tokens).shape[-1] <= count;
  const CenteredRows centered = centered_rows(graph, name + ".centered", tokens, first, count, of_width);
  const ValueId matrix = matmul(graph, name + ".products", centered.rows, centered.rows);
  return graph.add(op_principal_colors, name, {matrix, centered.means, of_width ? centered.rows : ValueId{}},
                   {{"rows", static_cast<int64_t>(count)}})[0];
}

}  // namespace vitrine
