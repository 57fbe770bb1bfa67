// vitrine.Graph: operators that Python puts together, and the executable that is made of them.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <span>

#include "python/src/bindings.h"
#include "python/src/devices.h"
#include "runtime/graph/executable.h"
#include "runtime/ops/attention/attention.h"
#include "runtime/ops/elementwise/binary.h"
#include "runtime/ops/elementwise/unary.h"
#include "runtime/ops/moves/concat.h"
#include "runtime/ops/moves/reshape.h"
#include "runtime/ops/moves/slice.h"
#include "runtime/ops/moves/transpose.h"
#include "runtime/ops/norms/layer_norm.h"
#include "runtime/ops/norms/softmax.h"
#include "runtime/ops/products/matmul.h"
#include "runtime/tune/choice_store.h"
#include "runtime/util/text.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace vitrine::python {
namespace {

using Numbers = nb::ndarray<const float, nb::c_contig, nb::device::cpu>;
using Dims = std::vector<uint64_t>;
// A value of the graph by its number; in place of an optional one, nothing.
using Id = uint32_t;
using MaybeId = std::optional<Id>;

Dims dims_of(const Shape& shape) { return {shape.dims().begin(), shape.dims().end()}; }
Dims dims_of(const Numbers& array) {
  Dims dims;
  for (size_t i = 0; i < array.ndim(); ++i) dims.push_back(array.shape(i));
  return dims;
}

// Constants that Python gave, by name.
class GivenConstants : public ConstantSource {
 public:
  void add(const std::string& name, std::span<const float> values) {
    values_[name].assign(values.begin(), values.end());
  }
  ConstantParts find(const std::string& name, const Shape&, DType) override {
    return {{.dtype = DType::f32, .bytes = std::as_bytes(std::span(values_.at(name)))}};
  }

 private:
  std::map<std::string, std::vector<float>> values_;
};

struct Result {
  std::string name;
  Dims shape;
  std::vector<float> values;
};

// Any thread may call, and waits for a run of another's without the GIL.
class UserGraph {
 public:
  UserGraph() = default;
  ~UserGraph() {
    if (is_forked()) static_cast<void>(run_.release());  // as Session's
  }
  UserGraph(const UserGraph&) = delete;
  UserGraph& operator=(const UserGraph&) = delete;

  // Whatever appends values and nodes, and returns one.
  template <typename Append>
  Id append(const Append& append) {
    const nb::gil_scoped_release free;
    const auto lock = enter();
    const ValueId id = append(graph_);
    run_.reset();
    return id.index;
  }
  Id constant(const std::string& name, const Numbers& values) {
    const Dims dims = dims_of(values);
    return append([&](Graph& graph) {
      const ValueId id = graph.constant(name, Shape(std::span(dims)));
      constants_.add(name, {values.data(), values.size()});
      return id;
    });
  }
  void output(Id value, const std::string& name) {
    append([&](Graph& graph) {
      graph.output(at(value), name);
      return at(value);
    });
  }
  static ValueId at(Id value) { return ValueId{value}; }
  static ValueId maybe(const MaybeId& value) { return value ? at(*value) : ValueId{}; }
  Dims shape(Id value) {
    const nb::gil_scoped_release free;
    const auto lock = enter();
    return dims_of(graph_.value(at(value)).shape);
  }
  std::string text() {
    const nb::gil_scoped_release free;
    const auto lock = enter();
    return graph_.to_string();
  }

  // With an array for each input; all outputs, in the order in which they were computed.
  std::vector<Result> run(const std::vector<std::string>& names, const std::vector<Numbers>& arrays,
                          const std::string& device) {
    const nb::gil_scoped_release free;
    const auto lock = enter();
    require_inputs(names, arrays);
    Executable& executable = executable_on(device);
    for (size_t i = 0; i < names.size(); ++i) {
      const auto bytes = std::as_bytes(std::span(arrays[i].data(), arrays[i].size()));
      std::ranges::copy(bytes, executable.input(executable.input_index(names[i])).begin());
    }
    executable.run();
    std::vector<Result> results;
    for (const ValueId id : graph_.with_role(Role::output)) {
      const Value& value = graph_.value(id);
      const auto bytes = executable.output(executable.output_index(value.name));
      Result& result =
          results.emplace_back(value.name, dims_of(value.shape), std::vector<float>(value.shape.elements()));
      std::memcpy(result.values.data(), bytes.data(), result.values.size() * sizeof(float));
    }
    return results;
  }

 private:
  // In that order, as Session's: in a forked process the mutex may be held by a thread that isn't there.
  std::unique_lock<std::mutex> enter() {
    require_unforked();
    return std::unique_lock(mutex_);
  }

  struct Run {
    std::string wanted;
    std::shared_ptr<OpenDevice> device;
    std::unique_ptr<WeightStore> weights;
    std::unique_ptr<Executable> executable;
  };

  void require_inputs(const std::vector<std::string>& names, const std::vector<Numbers>& arrays) const {
    if (graph_.with_role(Role::output).empty())
      throw Error(ErrorCode::usage, "found a graph without outputs, expected graph.output(value)");
    std::vector<std::string> inputs;
    for (const ValueId id : graph_.with_role(Role::input)) {
      const Value& value = graph_.value(id);
      inputs.push_back(value.name);
      const auto found = std::ranges::find(names, value.name);
      if (found == names.end())
        throw Error(ErrorCode::usage, "found no array for the input " + in_quotes(value.name));
      const Dims given = dims_of(arrays[static_cast<size_t>(found - names.begin())]);
      if (given == dims_of(value.shape)) continue;
      throw Error(ErrorCode::usage, value.name + ": found an array of " +
                                        Shape(std::span(given)).to_string() + ", expected " +
                                        value.shape.to_string());
    }
    for (const std::string& name : names) {
      if (std::ranges::find(inputs, name) == inputs.end())
        throw Error(ErrorCode::usage, "found an array for " + in_quotes(name) + ", which is no input");
    }
  }
  Executable& executable_on(const std::string& wanted) {
    if (run_ && run_->wanted == wanted) return *run_->executable;
    auto run = std::make_unique<Run>();
    run->wanted = wanted;
    run->device = device_named(wanted);
    const Capabilities& device = run->device->device->capabilities();
    run->weights = std::make_unique<WeightStore>(run->device->pipelines, constants_);
    run->executable = std::make_unique<Executable>(
        *run->weights,
        make_plan(std::make_shared<const Graph>(graph_), device, with_stored_choices({}, device)));
    run_ = std::move(run);
    return *run_->executable;
  }

  Graph graph_;
  GivenConstants constants_;
  std::mutex mutex_;
  std::unique_ptr<Run> run_;  // of the graph as it is
};

constexpr std::array activations{Activation::gelu, Activation::gelu_tanh, Activation::gelu_quick,
                                 Activation::silu, Activation::tanh,      Activation::relu};

Activation activation_named(const std::string& name) {
  const auto found =
      std::ranges::find_if(activations, [&](Activation activation) { return name_of(activation) == name; });
  if (found != activations.end()) return *found;
  std::string names;
  for (const Activation activation : activations)
    names += (names.empty() ? "" : ", ") + std::string(name_of(activation));
  throw Error(ErrorCode::usage, "activation: found " + in_quotes(name) + ", expected " + names);
}

std::vector<std::pair<std::string, Floats>> run(UserGraph& graph, const std::vector<std::string>& names,
                                                const std::vector<Numbers>& arrays,
                                                const std::string& device) {
  std::vector<Result> results = graph.run(names, arrays, device);
  std::vector<std::pair<std::string, Floats>> named;
  for (Result& result : results)
    named.emplace_back(result.name,
                       array_of(std::move(result.values), {result.shape.begin(), result.shape.end()}));
  return named;
}

Id linear(UserGraph& g, const std::string& name, Id x, Id weight, MaybeId bias,
          const std::optional<std::string>& activation, MaybeId residual) {
  return g.append([&](Graph& graph) {
    return matmul(graph, name, g.at(x), g.at(weight),
                  {.bias = g.maybe(bias),
                   .activation = activation ? activation_named(*activation) : Activation::none,
                   .residual = g.maybe(residual)});
  });
}

Id attend(UserGraph& g, const std::string& name, Id q, Id k, Id v, uint64_t heads, double scale,
          bool causal) {
  const uint64_t keys = g.shape(q).back(), values = g.shape(v).back();
  if (heads == 0 || keys % heads != 0 || values % heads != 0) {
    throw Error(ErrorCode::usage, name + ": found " + std::to_string(heads) + " heads for queries of " +
                                      std::to_string(keys) + " and values of " + std::to_string(values) +
                                      ", expected a number that divides both");
  }
  return g.append([&](Graph& graph) {
    return attention(graph, name, g.at(q), g.at(k), g.at(v),
                     {.heads = heads,
                      .key_width = keys / heads,
                      .value_width = values / heads,
                      .scale = scale,
                      .causal = causal})
        .out;
  });
}

}  // namespace

void add_graphs(nb::module_& m) {
  nb::class_<UserGraph>(m, "Graph")
      .def(nb::init<>())
      .def(
          "input",
          [](UserGraph& g, const std::string& name, const Dims& shape) {
            return g.append([&](Graph& graph) { return graph.input(name, Shape(std::span(shape))); });
          },
          "name"_a, "shape"_a)
      .def("constant", &UserGraph::constant, "name"_a, "values"_a)
      .def("output", &UserGraph::output, "value"_a, "name"_a)
      .def("shape", &UserGraph::shape, "value"_a)
      .def("__str__", &UserGraph::text)
      .def("run", &run, "names"_a, "arrays"_a, "device"_a,
           nb::sig("def run(self, names: list[str], arrays: list[NDArray[numpy.float32]], device: str) -> "
                   "list[tuple[str, NDArray[numpy.float32]]]"))
      .def("linear", &linear, "name"_a, "x"_a, "weight"_a, "bias"_a.none(), "activation"_a.none(),
           "residual"_a.none())
      .def("attention", &attend, "name"_a, "q"_a, "k"_a, "v"_a, "heads"_a, "scale"_a, "causal"_a)
      .def(
          "layer_norm",
          [](UserGraph& g, const std::string& name, Id x, Id gamma, MaybeId beta, double eps, bool rms) {
            return g.append([&](Graph& graph) {
              return layer_norm(graph, name, g.at(x), g.at(gamma), g.maybe(beta), {.eps = eps, .rms = rms});
            });
          },
          "name"_a, "x"_a, "gamma"_a, "beta"_a.none(), "eps"_a, "rms"_a)
      .def(
          "softmax",
          [](UserGraph& g, const std::string& name, Id x) {
            return g.append([&](Graph& graph) { return softmax(graph, name, g.at(x)); });
          },
          "name"_a, "x"_a)
      .def(
          "activate",
          [](UserGraph& g, const std::string& name, Id x, const std::string& activation) {
            return g.append(
                [&](Graph& graph) { return activate(graph, name, g.at(x), activation_named(activation)); });
          },
          "name"_a, "x"_a, "activation"_a)
      .def(
          "scale",
          [](UserGraph& g, const std::string& name, Id x, double factor) {
            return g.append([&](Graph& graph) { return scale(graph, name, g.at(x), factor); });
          },
          "name"_a, "x"_a, "factor"_a)
      .def(
          "add",
          [](UserGraph& g, const std::string& name, Id a, Id b) {
            return g.append([&](Graph& graph) { return add(graph, name, g.at(a), g.at(b)); });
          },
          "name"_a, "a"_a, "b"_a)
      .def(
          "multiply",
          [](UserGraph& g, const std::string& name, Id a, Id b) {
            return g.append([&](Graph& graph) { return multiply(graph, name, g.at(a), g.at(b)); });
          },
          "name"_a, "a"_a, "b"_a)
      .def(
          "reshape",
          [](UserGraph& g, const std::string& name, Id x, const Dims& shape) {
            return g.append(
                [&](Graph& graph) { return reshape(graph, name, g.at(x), Shape(std::span(shape))); });
          },
          "name"_a, "x"_a, "shape"_a)
      .def(
          "transpose",
          [](UserGraph& g, const std::string& name, Id x) {
            return g.append([&](Graph& graph) { return transpose(graph, name, g.at(x)); });
          },
          "name"_a, "x"_a)
      .def(
          "slice",
          [](UserGraph& g, const std::string& name, Id x, int axis, uint64_t begin, uint64_t end) {
            return g.append([&](Graph& graph) { return slice(graph, name, g.at(x), axis, begin, end); });
          },
          "name"_a, "x"_a, "axis"_a, "begin"_a, "end"_a)
      .def(
          "concat",
          [](UserGraph& g, const std::string& name, const std::vector<Id>& parts, int axis) {
            return g.append([&](Graph& graph) {
              std::vector<ValueId> ids;
              for (const Id part : parts) ids.push_back(g.at(part));
              return concat(graph, name, ids, axis);
            });
          },
          "name"_a, "parts"_a, "axis"_a);
}

}  // namespace vitrine::python
