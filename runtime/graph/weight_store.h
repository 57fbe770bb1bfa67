// A model's constants on the device, in the layouts that its plans ask for: loaded once, converted and
// packed by shaders, shared by every Executable of the model whatever its batch.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/graph/bound_dispatch.h"
#include "runtime/graph/constants.h"
#include "runtime/graph/go_on.h"
#include "runtime/graph/pipeline_store.h"
#include "runtime/graph/plan.h"

namespace vitrine {

class WeightStore {
 public:
  // The source is asked during load() only; it has to outlive the last call of it.
  WeightStore(PipelineStore& pipelines, ConstantSource& source);
  ~WeightStore();

  PipelineStore& pipelines() { return pipelines_; }
  // Brings in every constant of the plan that is not there yet: all of them or, when it throws, none. One
  // that lies too near to the end of its memory for the plan (Plan::tail_bytes) is brought in again; who has
  // found it before keeps what he has. `go_on` is asked before each; after a "no" that is Interrupted.
  void load(const Plan& plan, const GoOn& go_on = {});
  BufferSlice find(const Graph& graph, const PlannedConstant& constant) const;
  uint64_t bytes() const;
  // What load() would bring in.
  uint64_t missing_bytes(const Plan& plan) const;

 private:
  struct Key {
    std::string name;
    DType dtype;
    std::string layout;
    auto operator<=>(const Key&) const = default;
  };
  static Key key_of(const Graph& graph, const PlannedConstant& constant);
  bool has(const Plan& plan, const PlannedConstant& constant) const;
  ConstantParts parts_of(const Value& value);

  PipelineStore& pipelines_;
  ConstantSource& source_;
  std::vector<std::unique_ptr<Buffer>> slabs_;
  std::map<Key, BufferSlice> loaded_;
};

}  // namespace vitrine
