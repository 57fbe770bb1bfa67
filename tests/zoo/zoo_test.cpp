// The zoo: on make-believe GPUs of five vendors, with their true compilers, every plan fits the device,
// every pipeline compiles, nothing spills to memory, and cooperative matrices are used exactly where the
// device lists them. Nothing executes.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/support/command.h"
#include "tests/support/temporary_folder.h"

namespace vitrine {
namespace {

using Catch::Matchers::ContainsSubstring;

constexpr int not_installed = 77;

std::vector<nlohmann::json> lines_of(const std::string& text) {
  std::vector<nlohmann::json> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

test::CommandResult vitrine_on(const std::string& device, const std::vector<std::string>& arguments) {
  const test::TemporaryFolder cache;
  std::vector<std::string> command = {VITRINE_ZOO_SCRIPT, device, VITRINE_PROGRAM};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return test::run_command(
      command, {{"VITRINE_VALIDATE", "sync"}, {"VITRINE_CACHE_DIR", cache.path()}, {"VITRINE_DEVICE", ""}});
}

struct Expected {
  std::string device;
  std::string name;  // part of what the driver calls it
  bool half = true;  // 16-bit storage
  bool cooperative_matrices = false;
  bool shared_registers = false;  // by a subgroup's lanes, as Intel's are
  // AMD: how many lanes a wave has where RADV counts waves, 64 on GCN and 32 on RDNA.
  uint32_t lanes_of_wave = 0;
};

// Plans for devices that aren't here are tested with files of some of these (tests/zoo/profiles): what the
// driver says of each, but for its version and what is the machine's.
void check_profile(const std::string& device) {
  const std::string file = VITRINE_TEST_DATA "/zoo/profiles/" + device + ".json";
  if (!std::filesystem::exists(file)) return;
  const test::CommandResult profile = vitrine_on(device, {"devices", "--profile"});
  REQUIRE(profile.status == 0);
  const auto lasting = [](const std::string& text) {
    nlohmann::json json = nlohmann::json::parse(text);
    for (const char* member : {"driver_info", "driver_version", "vulkan", "heaps", "memory_types",
                               "memory_budget", "max_allocation", "max_buffer_bytes"}) {
      json.erase(member);
    }
    return json;
  };
  CHECK(lasting(profile.out) == lasting(test::read_whole_file(file)));
}

// A training's step that may round uses matrix units for attention, forwards and backwards, whatever its
// heads' width, but where a subgroup's lanes share too few registers; and nothing of its attention spills.
void check_trainings(const std::string& device, bool shared_registers) {
  const std::string configs = VITRINE_TEST_DATA "/../configs/";
  const test::CommandResult doctor = vitrine_on(
      device, {"doctor", "--compile-only", "--json", "--train",
               configs + "imagenet-vit-b16.json," + configs + "cifar10.json," + configs + "digits.json"});
  INFO(doctor.err);
  CHECK_THAT(doctor.err, !ContainsSubstring("vulkan error") && !ContainsSubstring("vulkan warning"));
  size_t steps = 0, gradients = 0;
  for (const nlohmann::json& line : lines_of(doctor.out)) {
    CAPTURE(line.dump());
    if (line.contains("model")) {
      const bool units = line["dtype"] == "f16" && !shared_registers;
      ++steps;
      CHECK(line["kernels"]["attention_gradient"] == nlohmann::json::array({units ? "coopmat" : "tiled"}));
      if (units) CHECK(line["kernels"]["attention"] == nlohmann::json::array({"coopmat"}));
    } else if (line.contains("shader") && line["shader"].get<std::string>().starts_with("attention")) {
      CHECK(line["spills_to_memory"] == false);
      gradients += line["shader"] == "attention_gradient_coopmat";
    }
  }
  CHECK(steps == 6);
  CHECK(gradients == (shared_registers ? 0 : 6));  // of queries and of keys, three widths of heads
}

void check_device(const Expected& expected) {
#ifdef __SANITIZE_ADDRESS__
  // Preloaded in front of the sanitizer, the make-believe kernel drivers don't see their variables and
  // play another GPU.
  SKIP(expected.device << ": the make-believe GPUs don't work under AddressSanitizer");
#endif
  const test::CommandResult list = vitrine_on(expected.device, {"devices", "--json"});
  if (list.status == not_installed) {
    const char* required = std::getenv("VITRINE_REQUIRE_DEVICE");
    if (required != nullptr && std::string(required) == "all")
      FAIL("VITRINE_REQUIRE_DEVICE=all and " << list.err);
    SKIP(expected.device << ": " << list.err);
  }
  INFO(list.err);
  REQUIRE(list.status == 0);
  const std::vector<nlohmann::json> devices = lines_of(list.out);
  REQUIRE(devices.size() == 1);
  CHECK_THAT(devices[0]["name"].get<std::string>() + devices[0]["driver"].get<std::string>(),
             ContainsSubstring(expected.name));
  CHECK(devices[0]["chosen"] == true);
  check_profile(expected.device);

  const test::CommandResult doctor = vitrine_on(expected.device, {"doctor", "--compile-only", "--json"});
  INFO(doctor.err);
  REQUIRE(doctor.status == 0);
  CHECK_THAT(doctor.err, !ContainsSubstring("vulkan error") && !ContainsSubstring("vulkan warning"));

  size_t models = 0, half_models = 0, pipelines = 0;
  nlohmann::json summary;
  for (const nlohmann::json& line : lines_of(doctor.out)) {
    if (line.contains("model")) {
      const bool half = line["dtype"] == "f16";
      ++models;
      half_models += half;
      CAPTURE(line.dump());
      CHECK(line["cooperative_matrices"] == (half && expected.cooperative_matrices));
    } else if (line.contains("shader")) {
      ++pipelines;
      CAPTURE(line.dump());
      // A driver whose words we don't know would never be seen to spill.
      CHECK(line["spills"].is_number());
      CHECK(line["registers"].is_number());
      CHECK(line["spills_to_memory"] == false);
      CHECK(line["shared_bytes"].is_number());
      CHECK(line["chosen"] == true);
      // Fewer waves on a SIMD don't hide memory's latency.
      if (expected.lanes_of_wave != 0 && line["shader"] == "attention_tiled") {
        const double waves =
            line["occupancy"].get<double>() * expected.lanes_of_wave / line["subgroup"].get<double>();
        CHECK(waves >= 4);
      }
    } else {
      summary = line;
    }
  }
  CHECK(models >= 8);
  CHECK((half_models > 0) == expected.half);
  CHECK(pipelines >= 20);
  CHECK(summary["pipelines"] == pipelines);
  CHECK(summary["figures"] == true);
  CHECK(summary["supports_cooperative_matrices"] == expected.cooperative_matrices);
  if (expected.cooperative_matrices) check_trainings(expected.device, expected.shared_registers);
}

}  // namespace

TEST_CASE("AMD Polaris 10") {
  check_device({.device = "polaris10", .name = "POLARIS10", .lanes_of_wave = 64});
}
TEST_CASE("AMD Vega 10") { check_device({.device = "vega10", .name = "VEGA10", .lanes_of_wave = 64}); }
TEST_CASE("AMD Vega 20") { check_device({.device = "vega20", .name = "VEGA20", .lanes_of_wave = 64}); }
TEST_CASE("AMD Raven") { check_device({.device = "raven", .name = "RAVEN", .lanes_of_wave = 64}); }
TEST_CASE("AMD Renoir") { check_device({.device = "renoir", .name = "RENOIR", .lanes_of_wave = 64}); }
TEST_CASE("AMD Navi 10 (RDNA 1)") {
  check_device({.device = "navi10", .name = "NAVI10", .lanes_of_wave = 32});
}
TEST_CASE("AMD Navi 21 (RDNA 2)") {
  check_device({.device = "navi21", .name = "NAVI21", .lanes_of_wave = 32});
}
TEST_CASE("AMD Rembrandt (RDNA 2)") {
  check_device({.device = "rembrandt", .name = "REMBRANDT", .lanes_of_wave = 32});
}
TEST_CASE("AMD Navi 31 (RDNA 3)") {
  check_device({.device = "navi31", .name = "NAVI31", .cooperative_matrices = true, .lanes_of_wave = 32});
}
TEST_CASE("AMD Navi 33 (RDNA 3)") {
  check_device({.device = "navi33", .name = "NAVI33", .cooperative_matrices = true, .lanes_of_wave = 32});
}
TEST_CASE("AMD Phoenix (RDNA 3)") {
  check_device({.device = "phoenix", .name = "PHOENIX", .cooperative_matrices = true, .lanes_of_wave = 32});
}
TEST_CASE("AMD Strix Point (RDNA 3.5)") {
  check_device({.device = "strix1", .name = "STRIX1", .cooperative_matrices = true, .lanes_of_wave = 32});
}
TEST_CASE("AMD Navi 48 (RDNA 4)") {
  check_device({.device = "gfx1201", .name = "GFX1201", .cooperative_matrices = true, .lanes_of_wave = 32});
}
TEST_CASE("NVIDIA Volta") { check_device({.device = "volta", .name = "NVK"}); }
TEST_CASE("NVIDIA Turing") {
  check_device({.device = "turing", .name = "NVK", .cooperative_matrices = true});
}
TEST_CASE("NVIDIA Ampere GA102") {
  check_device({.device = "ampere-172", .name = "NVK", .cooperative_matrices = true});
}
TEST_CASE("NVIDIA Ampere GA104") {
  check_device({.device = "ampere-174", .name = "NVK", .cooperative_matrices = true});
}
TEST_CASE("Qualcomm Adreno 630") { check_device({.device = "adreno630", .name = "630", .half = false}); }
TEST_CASE("Qualcomm Adreno 660") { check_device({.device = "adreno660", .name = "660"}); }
TEST_CASE("Qualcomm Adreno 730") { check_device({.device = "adreno730", .name = "730"}); }
TEST_CASE("Qualcomm Adreno 740") { check_device({.device = "adreno740", .name = "740"}); }
TEST_CASE("Qualcomm Adreno 750") { check_device({.device = "adreno750", .name = "750"}); }
TEST_CASE("Qualcomm Adreno 830") { check_device({.device = "adreno830", .name = "830"}); }
TEST_CASE("Apple M1") { check_device({.device = "m1", .name = "Apple M1"}); }
TEST_CASE("Intel Skylake (Gen9)") { check_device({.device = "skl", .name = "SKL"}); }
TEST_CASE("Intel Ice Lake (Gen11)") { check_device({.device = "icl", .name = "ICL"}); }
TEST_CASE("Intel Tiger Lake (Xe-LP)") { check_device({.device = "tgl", .name = "TGL"}); }
TEST_CASE("Intel Alder Lake (Xe-LP)") { check_device({.device = "adl", .name = "ADL"}); }
TEST_CASE("Intel Arc A (Xe-HPG)") {
  check_device({.device = "dg2", .name = "DG2", .cooperative_matrices = true, .shared_registers = true});
}
TEST_CASE("Intel Meteor Lake (Xe-LPG)") { check_device({.device = "mtl", .name = "MTL"}); }
TEST_CASE("Intel Lunar Lake (Xe2)") {
  check_device({.device = "lnl", .name = "LNL", .cooperative_matrices = true, .shared_registers = true});
}
TEST_CASE("Intel Arc B (Xe2)") {
  check_device({.device = "bmg", .name = "BMG", .cooperative_matrices = true, .shared_registers = true});
}
TEST_CASE("Intel Panther Lake (Xe3)") {
  check_device({.device = "ptl", .name = "PTL", .cooperative_matrices = true, .shared_registers = true});
}

TEST_CASE("what else a GPU could run are kernels for GPUs") {
#ifdef __SANITIZE_ADDRESS__
  SKIP("the make-believe GPUs don't work under AddressSanitizer");
#endif
  const test::CommandResult doctor = vitrine_on("m1", {"doctor", "--compile-only", "--json", "--candidates"});
  if (doctor.status == not_installed) SKIP(doctor.err);
  REQUIRE(doctor.status == 0);
  size_t others = 0;
  for (const nlohmann::json& line : lines_of(doctor.out)) {
    if (!line.contains("shader") || line["chosen"] == true) continue;
    ++others;
    CHECK_THAT(line["shader"].get<std::string>(), !ContainsSubstring("_cpu_"));
  }
  CHECK(others > 10);
}

TEST_CASE("the script knows every device of these tests and no other") {
  const test::CommandResult list = test::run_command({VITRINE_ZOO_SCRIPT, "--list"});
  CHECK(list.status == 0);
  CHECK(std::ranges::count(list.out, '\n') == 33);
  CHECK(test::run_command({VITRINE_ZOO_SCRIPT, "voodoo", "/bin/true"}).status == 2);
  // Whose programs are for arm64; their table is docs/zoo_arm64.md.
  const test::CommandResult arm64 = test::run_command({VITRINE_ZOO_SCRIPT, "--list-arm64"});
  CHECK(arm64.status == 0);
  CHECK(arm64.out == "mali-g310\nmali-g610\nmali-g720\nmali-g725\n");
}

}  // namespace vitrine
