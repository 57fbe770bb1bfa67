// Plans for made-up devices: what must hold of any plan, whatever its kernels.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>

#include "model/vit/presets.h"
#include "model/vit/vit_graph.h"
#include "runtime/graph/plan.h"
#include "runtime/ops/elementwise/binary.h"
#include "runtime/ops/elementwise/unary.h"
#include "runtime/ops/norms/layer_norm.h"
#include "tests/support/plan_text.h"

using namespace vitrine;

namespace {

Capabilities made_up_device() {
  Capabilities device;
  device.name = "made up";
  device.type = DeviceType::discrete;
  device.has_compute_queue = device.synchronization2 = device.timeline_semaphore = device.maintenance4 = true;
  device.has = Need::storage16 | Need::addresses | Need::subgroup_control;
  device.subgroup_size = device.min_subgroup_size = device.max_subgroup_size = 32;
  device.max_workgroup_count = {65535, 65535, 65535};
  device.max_workgroup_size = {1024, 1024, 64};
  device.max_workgroup_invocations = 1024;
  device.max_shared_bytes = 32768;
  device.max_push_bytes = 128;
  device.max_storage_buffers = 16;
  device.max_storage_range = device.max_allocation = device.max_buffer_bytes = 1ull << 31;
  device.storage_alignment = 64;
  return device;
}

bool overlap(const MemoryRange& a, const MemoryRange& b) {
  return a.index == b.index && a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
}

// Two tensors may share memory when one is no longer needed as the other comes to be; a tensor that takes
// over its input's place begins in the step in which the input ends.
void check_no_clash(const Plan& plan) {
  for (size_t i = 0; i < plan.tensors.size(); ++i) {
    for (size_t j = i + 1; j < plan.tensors.size(); ++j) {
      const Plan::Tensor &a = plan.tensors[i], &b = plan.tensors[j];
      if (!overlap(a.range, b.range)) continue;
      INFO(a.name << " lives " << a.first_step << " to " << a.last_step << ", " << b.name << " "
                  << b.first_step << " to " << b.last_step);
      CHECK((a.last_step <= b.first_step || b.last_step <= a.first_step));
    }
  }
}

}  // namespace

TEST_CASE("a sum takes over the memory of one of its terms, never of both") {
  auto graph = std::make_shared<Graph>();
  const ValueId x = graph->input("x", {4, 64});
  const ValueId gamma = graph->constant("gamma", {64}), beta = graph->constant("beta", {64});
  const ValueId a = layer_norm(*graph, "a", scale(*graph, "double", x, 2), gamma, beta);
  const ValueId b = layer_norm(*graph, "b", scale(*graph, "triple", x, 3), gamma, beta);
  graph->output(scale(*graph, "half", add(*graph, "sum", a, b), 0.5), "mean");
  const Plan plan = make_plan(graph, made_up_device());
  CHECK(plan.tensors.size() >= 5);
  check_no_clash(plan);
}

TEST_CASE("no two tensors of a model's plan need the same memory at once") {
  for (const char* name : {"deit_tiny_distilled_patch16_224", "myvit_mnist", "vit_base_patch16_reg4_gap_256",
                           "vit_giant_patch14_reg4_dinov2"}) {
    for (const Result result : {Result::features, Result::tokens}) {
      INFO(name << " " << name_of(result));
      ViTConfig config = preset(name);
      config.depth = 3;
      const auto graph = make_vit_graph(config, {.batch = 2, .dtype = DType::f16, .result = result});
      const Plan plan = make_plan(graph, made_up_device());
      CHECK(plan.largest_live_set > 0);
      check_no_clash(plan);
      CHECK(test::text_of(make_plan(graph, made_up_device())) == test::text_of(plan));
    }
  }
}
