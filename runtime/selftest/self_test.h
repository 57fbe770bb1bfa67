// Whether a device computes right what its kernels are given: every kernel in every configuration that it can
// run, over the operators' cases. `vitrine doctor` runs these and keeps the verdicts for planning.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/check/op_case.h"
#include "runtime/graph/kernel_choice.h"
#include "runtime/graph/pipeline_store.h"

namespace vitrine::selftest {

struct SelfTest {
  const OpDef* op = nullptr;
  Candidate candidate;
  std::vector<std::string> certificates;        // certificate_keys of what the cases run
  std::vector<const reference::OpCase*> cases;  // that this code runs
  std::string name() const { return std::string(op->name) + "=" + candidate.name(); }
};

struct UntestedKernel {
  std::string name;    // "matmul=coopmat"
  std::string reason;  // why no case runs it here
};

class SelfTests {
 public:
  // Those that the device can run: all, or of one operator, or "operator=kernel".
  explicit SelfTests(const Capabilities& device, std::string_view only = {});
  // Those of an operator, which needs not be one of all_ops().
  SelfTests(const Capabilities& device, const OpDef& op);

  const std::vector<SelfTest>& tests() const { return tests_; }
  const std::vector<UntestedKernel>& untested() const { return untested_; }

 private:
  // Of all its kernels, or of one; gives how many these are.
  size_t add(const OpDef& op, std::optional<std::string_view> only_kernel, const Capabilities& device);
  void add(const OpDef& op, const KernelDef& kernel, const std::vector<const reference::OpCase*>& cases,
           const Capabilities& device);

  std::vector<std::unique_ptr<const reference::OpCase>> cases_;
  std::vector<SelfTest> tests_;
  std::vector<UntestedKernel> untested_;
  std::set<std::string> certified_;  // the certificates of all tests
};

// What is wrong with the first case that isn't right; nothing where all are.
std::optional<std::string> fault_of(PipelineStore& pipelines, const SelfTest& test);

}  // namespace vitrine::selftest
