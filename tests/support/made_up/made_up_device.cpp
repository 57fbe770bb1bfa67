#include "tests/support/made_up/made_up_device.h"

#include <vulkan/vulkan_core.h>

#include <utility>

#include "runtime/vk/facts/hardware.h"

namespace vitrine::test {
namespace {

Capabilities named(std::string name, Capabilities device) {
  device.name = std::move(name);
  return device;
}

Capabilities without_matrices() {
  Capabilities device = rich_gpu();
  device.has = Need::storage16 | Need::fp16 | Need::subgroup_control | Need::subgroup_arithmetic;
  device.cooperative_shapes.clear();
  return device;
}

}  // namespace

Capabilities plain_gpu() {
  Capabilities device;
  device.name = "Plain GPU";
  device.type = DeviceType::discrete;
  device.driver_name = "made up";
  device.api_version = VK_API_VERSION_1_3;
  device.has_compute_queue = true;
  device.synchronization2 = device.timeline_semaphore = device.maintenance4 = true;
  device.subgroup_size = device.min_subgroup_size = device.max_subgroup_size = 32;
  device.subgroup_operations = VK_SUBGROUP_FEATURE_BASIC_BIT | VK_SUBGROUP_FEATURE_ARITHMETIC_BIT;
  device.max_workgroup_count = {65535, 65535, 65535};
  device.max_workgroup_size = {1024, 1024, 64};
  device.max_workgroup_invocations = 1024;
  device.max_shared_bytes = 32 << 10;
  device.max_push_bytes = 128;
  device.max_storage_buffers = 16;
  device.max_storage_range = uint64_t{1} << 27;
  device.max_allocation = uint64_t{1} << 32;
  device.max_buffer_bytes = uint64_t{1} << 32;
  device.storage_alignment = 64;
  device.timestamp_period_ns = 1;
  device.timestamp_valid_bits = 64;
  device.heaps = {{uint64_t{8} << 30, true}, {uint64_t{16} << 30, false}};
  device.memory_types = {{.heap = 0, .device_local = true},
                         {.heap = 1, .host_visible = true, .host_coherent = true},
                         {.heap = 1, .host_visible = true, .host_coherent = true, .host_cached = true}};
  return device;
}

Capabilities rich_gpu() {
  Capabilities device = plain_gpu();
  device.name = "Rich GPU";
  device.has = Need::storage16 | Need::fp16 | Need::int8 | Need::int64 | Need::addresses | Need::coopmat |
               Need::coopmat2 | Need::subgroup_control | Need::subgroup_arithmetic;
  device.memory_model = device.scalar_layout = device.mixed_dot_product = true;
  device.max_subgroup_size = 64;
  device.max_workgroup_subgroups = 32;
  device.subgroup_operations = 0xff;
  device.max_push_bytes = 256;
  device.cooperative_shapes = {{16, 16, 16, "f16", "f16", "f16", "f16"},
                               {16, 16, 16, "f16", "f16", "f32", "f32"},
                               {16, 16, 32, "s8", "s8", "s32", "s32"}};
  return device;
}

Capabilities arc_gpu() {
  Capabilities device = rich_gpu();
  device.name = "Arc GPU";
  device.vendor_id = 0x8086;
  device.driver_id = VK_DRIVER_ID_INTEL_OPEN_SOURCE_MESA;
  device.has = Need::storage16 | Need::fp16 | Need::int8 | Need::int64 | Need::addresses | Need::coopmat |
               Need::subgroup_control | Need::subgroup_arithmetic;
  device.min_subgroup_size = 8;
  device.max_subgroup_size = 32;
  device.max_workgroup_subgroups = 64;
  device.max_shared_bytes = 64 << 10;
  device.cooperative_shapes = {{8, 8, 16, "f16", "f16", "f32", "f32"}, {8, 8, 32, "s8", "s8", "s32", "s32"}};
  add_hardware_facts(device);
  return device;
}

Capabilities xe2_gpu() {
  Capabilities device = arc_gpu();
  device.name = "Xe2 GPU";
  device.min_subgroup_size = 16;
  device.cooperative_shapes = {{8, 16, 16, "f16", "f16", "f16", "f16"},
                               {8, 16, 16, "f16", "f16", "f32", "f32"}};
  add_hardware_facts(device);
  return device;
}

Capabilities software_driver() {
  Capabilities device = rich_gpu();
  device.name = "llvmpipe (LLVM 19.1.7, 256 bits)";
  device.type = DeviceType::cpu;
  device.driver_id = VK_DRIVER_ID_MESA_LLVMPIPE;
  device.driver_version = VK_MAKE_API_VERSION(0, 26, 1, 6);
  device.subgroup_size = device.min_subgroup_size = device.max_subgroup_size = 8;
  device.heaps = {{uint64_t{8} << 30, true}};
  device.memory_types = {
      {.heap = 0, .device_local = true, .host_visible = true, .host_coherent = true, .host_cached = true}};
  device.cooperative_shapes = {{8, 8, 8, "f16", "f16", "f16", "f16"}, {8, 8, 8, "f16", "f16", "f32", "f32"}};
  device.matrix_sums = MatrixSums::transposed;
  return device;
}

std::vector<Capabilities> devices_of_all_kinds() {
  std::vector<Capabilities> all{named("f32 only", plain_gpu()), named("16x16x16 matrices", rich_gpu()),
                                named("f16 without matrices", without_matrices()),
                                named("llvmpipe", software_driver())};
  Capabilities& older = all.emplace_back(named("older llvmpipe", software_driver()));
  older.loops_gather = true;
  Capabilities& integrated = all.emplace_back(named("integrated", without_matrices()));
  integrated.type = DeviceType::integrated;
  integrated.max_workgroup_size = {128, 128, 64};
  integrated.max_workgroup_invocations = 128;
  integrated.max_shared_bytes = 16 << 10;
  Capabilities& rdna = all.emplace_back(named("RDNA", without_matrices()));
  rdna.vendor_id = 0x1002;
  rdna.max_shared_bytes = 64 << 10;
  Capabilities& gcn = all.emplace_back(named("GCN", rdna));
  gcn.subgroup_size = gcn.min_subgroup_size = 64;
  Capabilities& turing = all.emplace_back(named("16x8x16 matrices", rich_gpu()));
  turing.cooperative_shapes = {{16, 8, 8, "f16", "f16", "f32", "f32"},
                               {16, 8, 16, "f16", "f16", "f32", "f32"}};
  turing.max_shared_bytes = 48 << 10;
  turing.multiprocessors = 40;
  // With all of VK_NV_cooperative_matrix2; the granularities are made up.
  Capabilities& flexible = all.emplace_back(named("flexible matrices", turing));
  flexible.max_subgroup_size = 32;
  flexible.has = flexible.has | Need::coopmat2_elements | Need::coopmat2_reductions |
                 Need::coopmat2_conversions | Need::coopmat2_tensors | Need::coopmat2_workgroups;
  flexible.flexible_max_dimension = 1024;
  flexible.flexible_shapes = {{16, 16, 16, "f16", "f16", "f32", "f32", 128},
                              {32, 32, 16, "f16", "f16", "f32", "f32", 256},
                              {16, 16, 16, "f16", "f16", "f32", "f32", 0}};
  all.push_back(arc_gpu());
  all.push_back(xe2_gpu());
  all.emplace_back(named("matrices whose sums are operands", rich_gpu())).matrix_sums = MatrixSums::operands;
  return all;
}

}  // namespace vitrine::test
