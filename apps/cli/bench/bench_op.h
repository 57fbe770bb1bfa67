// vitrine bench --op: one operator alone, on data that lies on the device.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "apps/cli/common_options.h"
#include "runtime/graph/plan.h"

namespace vitrine::cli {

struct OpFlags {
  std::string name;
  std::vector<std::string> shapes;
};

// Declares --op and --shape. They exclude the options that are about a model, which have to be declared
// before.
void add_op_flags(CLI::App& command, OpFlags& flags);

struct OpBenchOptions {
  std::vector<std::string> dtypes;
  PlanOptions plan;
  uint64_t runs = 0;  // 0: as many as `seconds` hold
  double seconds = 0;
  bool json = false;
};

// Times the operator's dispatches by the device's own clock. Sampled rows of every result are first compared
// with float64; a result that is wrong throws Error(failed).
void bench_op(const OpFlags& flags, const OpBenchOptions& options, const CommonOptions& common);

}  // namespace vitrine::cli
