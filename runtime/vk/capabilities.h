// An immutable snapshot of what a Vulkan device is and can do: plain data, no handles. Device choice
// and planning are pure functions of it, so that tests can make devices up.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace vitrine {

enum class DeviceType { other, integrated, discrete, virtual_gpu, cpu };
std::string_view name_of(DeviceType type);

// Things a shader variant may need beyond Vulkan 1.3 and compute; a bit each.
enum class Need : uint32_t {
  none = 0,
  storage16 = 1 << 0,         // 16-bit values in storage buffers (loads, stores, conversions)
  fp16 = 1 << 1,              // arithmetic on 16-bit floats
  int8 = 1 << 2,              // 8-bit integers in storage and arithmetic
  int64 = 1 << 3,             // 64-bit integers
  addresses = 1 << 4,         // buffer device addresses
  coopmat = 1 << 5,           // VK_KHR_cooperative_matrix with some f16 shape
  coopmat2 = 1 << 6,          // VK_NV_cooperative_matrix2, flexible dimensions
  subgroup_control = 1 << 7,  // full subgroups of a size that is asked for
  // Further parts of VK_NV_cooperative_matrix2; a device with one has coopmat2 as well.
  coopmat2_elements = 1 << 8,      // a function applied to each element
  coopmat2_reductions = 1 << 9,    // of rows and columns
  coopmat2_conversions = 1 << 10,  // a result becomes an operand
  coopmat2_tensors = 1 << 11,      // loads and stores of a tensor's slice, clamped at its edges
  coopmat2_workgroups = 1 << 12,   // matrices that a workgroup holds together
  subgroup_arithmetic = 1 << 13,   // sums and maxima over a subgroup
};
constexpr Need operator|(Need a, Need b) {
  return static_cast<Need>(static_cast<uint32_t>(a) | static_cast<uint32_t>(b));
}
constexpr bool contains(Need all, Need some) {
  return (static_cast<uint32_t>(all) & static_cast<uint32_t>(some)) == static_cast<uint32_t>(some);
}
std::string to_string(Need needs);  // "storage16, coopmat"

// One matrix shape that the device multiplies at subgroup scope: C[m,n] = A[m,k]·B[k,n] + C.
struct CooperativeShape {
  uint32_t m = 0, n = 0, k = 0;
  std::string a, b, c, result;  // component types: "f16", "f32", "bf16", "s8", "u8", "s32", "u32"
  bool operator==(const CooperativeShape&) const = default;
};

// Matrices of any size of these granularities that the device multiplies (VK_NV_cooperative_matrix2).
struct FlexibleShape {
  uint32_t m = 0, n = 0, k = 0;
  std::string a, b, c, result;  // as in CooperativeShape
  uint32_t workgroup = 0;       // invocations of the workgroup that holds them together; 0: a subgroup does
  bool operator==(const FlexibleShape&) const = default;
};

// Where the matrix_subgroup_size lanes of a subgroup hold its matrices, which Vulkan leaves to the driver. In
// all that are known lane l has elements of column l % n of a sum, and the lanes of a column share its rows.
enum class MatrixSums {
  unknown,
  operands,    // one after the other; and a right operand of as many rows lies likewise
  alternate,   // two lanes, in turns; and both hold the whole column of a right operand
  transposed,  // one lane; and of a right operand lane l holds row l
};
std::string_view name_of(MatrixSums sums);

struct MemoryHeap {
  uint64_t bytes = 0;
  bool device_local = false;
  bool operator==(const MemoryHeap&) const = default;
};
struct MemoryType {
  uint32_t heap = 0;
  bool device_local = false, host_visible = false, host_coherent = false, host_cached = false;
  bool operator==(const MemoryType&) const = default;
};

// How fast it is, as its vendor publishes it and Vulkan doesn't tell; 0: not known. A multiply-add counts
// one.
struct PublishedRates {
  double clock_ghz = 0;
  double memory_gb_per_second = 0;
  double cache_mib = 0;  // the last one before memory
  // Of a compute unit, in a cycle:
  double multiply_adds = 0;         // of f32
  double matrix_multiply_adds = 0;  // of f16 with f32 sums, on matrix units
  double shared_bytes = 0;          // that it reads from shared memory
  double cache_bytes = 0;           // that it reads from the cache that all share, while all do: measured
  // Of a compute unit:
  double schedulers = 0;  // or SIMDs, or engines: a subgroup runs on one of them
  double shared_kib = 0;  // shared memory of all its workgroups together
  double registers = 0;   // of 32 bits, of all its subgroups together
  bool operator==(const PublishedRates&) const = default;
};

struct Capabilities {
  // Who it is.
  std::string name;
  DeviceType type = DeviceType::other;
  uint32_t vendor_id = 0, device_id = 0;
  std::string driver_name, driver_info;
  uint32_t driver_id = 0;       // VkDriverId
  uint32_t driver_version = 0;  // the driver's own encoding
  uint32_t api_version = 0;     // VK_MAKE_API_VERSION encoding
  std::array<uint8_t, 16> device_uuid{}, driver_uuid{}, pipeline_cache_uuid{};

  // What it can do.
  bool has_compute_queue = false;
  bool synchronization2 = false, timeline_semaphore = false, maintenance4 = false;
  Need has = Need::none;
  uint32_t subgroup_size = 0, min_subgroup_size = 0, max_subgroup_size = 0;
  uint32_t subgroup_operations = 0;      // VkSubgroupFeatureFlags that compute shaders may use
  uint32_t max_workgroup_subgroups = 0;  // with full subgroups; 0: no bound is known
  uint32_t multiprocessors = 0;          // or compute units; 0: the driver doesn't tell
  uint32_t unit_subgroups = 0;           // that one of them holds at once; 0: the driver doesn't tell
  // As vendors publish them (runtime/vk/facts/hardware.h), in words of 32 bits; 0: not known.
  uint32_t lane_registers = 0;        // that an invocation may have, whatever the size of its subgroup
  uint32_t subgroup_registers = 0;    // that the invocations of a subgroup share, whatever their number
  uint32_t matrix_subgroup_size = 0;  // the lanes that matrix units are made for; 0: the device's own size
  uint32_t matrix_operand_lanes =
      0;  // among which a subgroup shares A or B out, the others repeat them; 0: all
  MatrixSums matrix_sums = MatrixSums::unknown;
  PublishedRates published;
  std::vector<CooperativeShape> cooperative_shapes;
  std::vector<FlexibleShape> flexible_shapes;
  uint32_t flexible_max_dimension = 0;    // of a flexible matrix, in any direction
  uint32_t flexible_reserved_shared = 0;  // bytes that the driver takes of a workgroup with its own matrices
  bool pipeline_statistics = false;       // VK_KHR_pipeline_executable_properties
  bool memory_budget = false;
  bool scalar_layout = false;
  bool mixed_dot_product = false;  // 4x8-bit dot products of mixed signs are accelerated
  bool memory_model = false;       // vulkanMemoryModel, which cooperative matrices build on
  bool robust_buffer_access = false;
  bool portability_subset = false;
  // A CPU-type device's compiler makes every load inside a loop or a branch one load a lane, also of an
  // address that all lanes share (docs/software_drivers.md). Then other kernels are fast.
  bool loops_gather = false;
  // The driver compiles what specialization constants have made unreachable, and loops whose ends they are as
  // if it didn't know them.
  bool ignores_specialization = false;
  // How often all loops of an invocation may go round together before the driver ends them without a word; 0:
  // as often as they ask for.
  uint32_t max_loop_rounds = 0;

  // Its limits.
  std::array<uint32_t, 3> max_workgroup_count{}, max_workgroup_size{};
  uint32_t max_workgroup_invocations = 0;
  uint32_t max_shared_bytes = 0;
  uint32_t max_push_bytes = 0;
  uint32_t max_storage_buffers = 0;  // in one descriptor set of one compute shader
  uint64_t max_storage_range = 0;
  uint64_t max_allocation = 0;
  uint64_t max_buffer_bytes = 0;
  uint64_t storage_alignment = 0;
  double timestamp_period_ns = 0;     // kept a double: it is below 1 on real devices
  uint32_t timestamp_valid_bits = 0;  // 0: no timestamps on this queue
  std::vector<MemoryHeap> heaps;
  std::vector<MemoryType> memory_types;

  // Names of the quirks (runtime/vk/facts/quirks.h) that changed a line above.
  std::vector<std::string> quirks;
  // What its user could do to get more of it: a sentence each, from the same quirks.
  std::vector<std::string> advice;

  bool supports(Need needs) const { return contains(has, needs); }
  // True when some memory is both fast for the device and written by the host: no staging copies.
  bool unified_memory() const;
  // True when some memory is both fast for the device and cached by the host, coherent or not: what the host
  // reads needs no staging copies either.
  bool unified_cached_memory() const;
  // True when what the host writes or reads is copied: some of it lies elsewhere for the device.
  bool stages() const { return !unified_memory() || !unified_cached_memory(); }
  // The first cooperative shape with these component types, in the driver's order.
  std::optional<CooperativeShape> coopmat(std::string_view a, std::string_view b, std::string_view c) const;
};

}  // namespace vitrine
