// A module alone on a device: tensors in, tensors out.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "model/vit/graph_builder.h"
#include "runtime/graph/executable.h"
#include "runtime/graph/pipeline_store.h"

namespace vitrine {

// Numbers on the host, row by row.
struct Tensor {
  Shape shape;
  std::vector<float> values;
};

struct ModuleRunnerOptions {
  DType dtype = DType::f32;
  LayerTypes layers = {};  // that differ from dtype
  PlanOptions plan = {};
};

class ModuleRunner {
 public:
  // Any module, or whatever else appends nodes behind a value and returns what came of it.
  using Appender = std::function<ValueId(GraphBuilder&, ValueId)>;

  // The store and the weights must outlive the runner. The weights are asked for the module's parameters.
  ModuleRunner(PipelineStore& pipelines, Appender module, ConstantSource& weights,
               ModuleRunnerOptions options = {});

  // What comes out behind `x`. The first call with a shape plans and records, the others only run.
  Tensor operator()(const Tensor& x);
  // That ("out") and every value that the module marked as an output, by name.
  std::map<std::string, Tensor> outputs(const Tensor& x);

 private:
  Executable& executable(const Shape& shape);

  PipelineStore& pipelines_;
  Appender module_;
  ModuleRunnerOptions options_;
  WeightStore weights_;
  std::map<std::vector<uint64_t>, std::unique_ptr<Executable>> executables_;  // by the input's shape
};

}  // namespace vitrine
