#include "model/run/module_runner.h"

#include <algorithm>
#include <cstring>

#include "runtime/ops/elementwise/convert.h"
#include "runtime/tune/choice_store.h"
#include "runtime/util/error.h"

namespace vitrine {

ModuleRunner::ModuleRunner(PipelineStore& pipelines, Appender module, ConstantSource& weights,
                           ModuleRunnerOptions options)
    : pipelines_(pipelines),
      module_(std::move(module)),
      options_(std::move(options)),
      weights_(pipelines, weights) {
  options_.plan = with_stored_choices(std::move(options_.plan), pipelines.device().capabilities());
}

Executable& ModuleRunner::executable(const Shape& shape) {
  std::unique_ptr<Executable>& made = executables_[{shape.dims().begin(), shape.dims().end()}];
  if (!made) {
    GraphBuilder builder(options_.dtype, options_.layers);
    Graph& graph = builder.graph();
    const ValueId result = module_(builder, graph.input("x", shape));
    graph.output(convert(graph, "out.convert", result, DType::f32), "out");
    made = std::make_unique<Executable>(
        weights_, make_plan(builder.finish(), pipelines_.device().capabilities(), options_.plan));
  }
  return *made;
}

std::map<std::string, Tensor> ModuleRunner::outputs(const Tensor& x) {
  if (x.values.size() != x.shape.elements()) {
    throw Error(ErrorCode::usage, "the module was given " + std::to_string(x.values.size()) +
                                      " numbers for the shape " + x.shape.to_string() + ", expected " +
                                      std::to_string(x.shape.elements()));
  }
  Executable& run = executable(x.shape);
  std::ranges::copy(std::as_bytes(std::span(x.values)), run.input(run.input_index("x")).begin());
  run.run();
  std::map<std::string, Tensor> outputs;
  for (size_t i = 0; i < run.plan().outputs.size(); ++i) {
    const Value& value = run.plan().graph->value(run.plan().outputs[i]);
    if (value.dtype != DType::f32) {
      throw Error(ErrorCode::usage, "the output '" + value.name + "' is " +
                                        std::string(name_of(value.dtype)) +
                                        ", expected f32: convert() it first");
    }
    Tensor tensor{value.shape, std::vector<float>(value.shape.elements())};
    const auto bytes = run.output(i);
    std::memcpy(tensor.values.data(), bytes.data(), tensor.values.size() * sizeof(float));
    outputs.emplace(value.name, std::move(tensor));
  }
  return outputs;
}

Tensor ModuleRunner::operator()(const Tensor& x) { return std::move(outputs(x).at("out")); }

}  // namespace vitrine
