#include "runtime/vk/facts/quirks.h"

#include <vulkan/vulkan_core.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace vitrine {
namespace {

void drop_cooperative_matrices(Capabilities& device) {
  const auto dropped = static_cast<uint32_t>(Need::coopmat | Need::coopmat2 | Need::coopmat2_elements |
                                             Need::coopmat2_reductions | Need::coopmat2_conversions |
                                             Need::coopmat2_tensors | Need::coopmat2_workgroups);
  device.has = static_cast<Need>(static_cast<uint32_t>(device.has) & ~dropped);
  device.cooperative_shapes.clear();
  device.flexible_shapes.clear();
}

bool has_cooperative_matrices(const Capabilities& device) {
  return device.supports(Need::coopmat) || !device.cooperative_shapes.empty();
}

bool is_wide_software_driver(const Capabilities& device) {
  return device.subgroup_size != 8 && has_cooperative_matrices(device);
}

bool is_wide_with_64_bits(const Capabilities& device) {
  return device.subgroup_size > 8 && device.supports(Need::int64);
}

void drop_int64(Capabilities& device) {
  device.has = static_cast<Need>(static_cast<uint32_t>(device.has) & ~static_cast<uint32_t>(Need::int64));
}

bool lacks_matrix_units(const Capabilities& device) {
  return !device.mixed_dot_product && has_cooperative_matrices(device);
}

void gather_in_loops(Capabilities& device) { device.loops_gather = true; }

void ignore_specialization(Capabilities& device) { device.ignores_specialization = true; }

void end_long_loops(Capabilities& device) { device.max_loop_rounds = 65535; }

// 26.1.6 makes one load of it and 25.0.7 doesn't; of what lies between nothing is known, and the kernels for
// the older driver lose less on a newer one than the other way round.
constexpr uint32_t last_gathering_version = VK_MAKE_API_VERSION(0, 26, 1, 0) - 1;

constexpr std::string_view amd_emulates =
    "the driver lists cooperative matrices on GPUs without matrix units (before RDNA 3, whose mixed-sign "
    "dot products are not accelerated) and emulates them slowly: "
    "https://github.com/ggml-org/llama.cpp/pull/11074, https://github.com/Tencent/ncnn/pull/6504";

constexpr std::array<Quirk, 7> table{{
    {.name = "software-driver-wide-coopmat",
     .driver_id = VK_DRIVER_ID_MESA_LLVMPIPE,
     .applies = is_wide_software_driver,
     .effect = drop_cooperative_matrices,
     .why = "with vectors wider than 8 lanes (LP_NATIVE_VECTOR_WIDTH=512) Mesa 26.1.6 crashes while it "
            "compiles cooperative matrices"},
    {.name = "software-driver-wide-int64",
     .driver_id = VK_DRIVER_ID_MESA_LLVMPIPE,
     .first_version = last_gathering_version + 1,
     .applies = is_wide_with_64_bits,
     .effect = drop_int64,
     .why = "with vectors of 16 lanes Mesa 26.1.6 writes past an array of its own (\"stack smashing "
            "detected\") while "
            "it compiles loads of 64-bit words; 25.0.7 doesn't"},
    {.name = "software-driver-loops-gather",
     .driver_id = VK_DRIVER_ID_MESA_LLVMPIPE,
     .last_version = last_gathering_version,
     .effect = gather_in_loops,
     .why =
         "before Mesa 26.1 a load inside a loop is a load for each lane, also of an address that all lanes "
         "share; a newer driver is up to twice as fast",
     .advice = "a newer driver is known to be faster, up to twice as fast: Mesa 26.1 or later"},
    {.name = "software-driver-ends-long-loops",
     .driver_id = VK_DRIVER_ID_MESA_LLVMPIPE,
     .last_version = VK_MAKE_API_VERSION(0, 25, 0, 0) - 1,
     .effect = end_long_loops,
     .why = "Mesa 24.0.5 leaves all loops of an invocation after 65535 rounds together, as its sources say "
            "(LP_MAX_TGSI_LOOP_ITERATIONS), and results are wrong; 25.0.7 doesn't. Between them nothing is "
            "known"},
    {.name = "swiftshader-ignores-specialization",
     .driver_id = VK_DRIVER_ID_GOOGLE_SWIFTSHADER,
     .effect = ignore_specialization,
     .why = "SwiftShader of Chromium 156 neither leaves out what specialization constants make unreachable "
            "nor unrolls "
            "loops that end at them: a tiled product compiles several times as fast with ordinary constants, "
            "and runs so"},
    {.name = "amd-proprietary-emulated-coopmat",
     .driver_id = VK_DRIVER_ID_AMD_PROPRIETARY,
     .applies = lacks_matrix_units,
     .effect = drop_cooperative_matrices,
     .why = amd_emulates},
    {.name = "amdvlk-emulated-coopmat",
     .driver_id = VK_DRIVER_ID_AMD_OPEN_SOURCE,
     .applies = lacks_matrix_units,
     .effect = drop_cooperative_matrices,
     .why = amd_emulates},
}};

// Mesa's software driver has 1 for its version, whatever Mesa's is, but names that for people:
// "Mesa 25.0.7-2+deb13u1 (LLVM 19.1.7)". Newer ones have both.
uint32_t release_of(const Capabilities& device) {
  constexpr std::string_view before = "Mesa ";
  const std::string& info = device.driver_info;
  if (device.driver_id != VK_DRIVER_ID_MESA_LLVMPIPE || !info.starts_with(before))
    return device.driver_version;
  std::array<uint32_t, 3> numbers{};
  const char *at = info.data() + before.size(), *end = info.data() + info.size();
  for (uint32_t& number : numbers) {
    const auto [next, error] = std::from_chars(at, end, number);
    if (error != std::errc{}) return device.driver_version;
    at = next != end && *next == '.' ? next + 1 : end;
    if (at == end) break;
  }
  return VK_MAKE_API_VERSION(0, numbers[0], numbers[1], numbers[2]);
}

}  // namespace

std::span<const Quirk> all_quirks() { return table; }

Capabilities apply_quirks(Capabilities snapshot, std::span<const Quirk> quirks) {
  const uint32_t release = release_of(snapshot);
  for (const Quirk& quirk : quirks) {
    if (snapshot.driver_id != quirk.driver_id || release < quirk.first_version ||
        release > quirk.last_version) {
      continue;
    }
    if (quirk.applies != nullptr && !quirk.applies(snapshot)) continue;
    quirk.effect(snapshot);
    snapshot.quirks.emplace_back(quirk.name);
    if (!quirk.advice.empty()) snapshot.advice.emplace_back(quirk.advice);
  }
  return snapshot;
}

}  // namespace vitrine
