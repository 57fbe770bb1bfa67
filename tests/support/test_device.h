// The device that tests run on: the one that Vitrine would choose, with validation layers on, shared by
// the test cases of a process.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/graph/pipeline_store.h"
#include "runtime/graph/tensor.h"
#include "runtime/vk/device.h"

namespace vitrine::test {

struct TestDevice {
  std::shared_ptr<Instance> instance;
  std::unique_ptr<Device> device;
  std::unique_ptr<PipelineStore> pipelines;
};

// Skips the running test case when there is no device, or fails it when VITRINE_REQUIRE_DEVICE is 1 or all.
TestDevice& test_device();
// Whether compiling takes many times as long there (Capabilities::loops_gather). Then a test may leave cases
// that show little more than others to drivers that compile quickly.
bool compiles_slowly();

// Whether it is a CPU on which the kernels for CPUs run: those are written with buffer addresses and 64-bit
// words.
bool has_cpu_kernels();
// Whether it is a CPU that has to do with the kernels for GPUs, and takes minutes for what others do in
// seconds. Then a test may take less to compute, and says so with leave_out.
bool computes_slowly();
// Whether it is a CPU, also one that pretends to be a GPU, for which the kernels for GPUs are compiled. Then
// a test may leave candidates that aren't chosen to those who test them one by one.
bool compiles_for_gpus_on_a_cpu();

inline constexpr std::string_view no_storage16 = "the device has no 16-bit storage";

// Notes that the device can't do a part of the running test case, which goes on with the rest: CTest then
// names the test among those that were skipped, with the reason.
void leave_out(const std::string& why);
// Whether the device can store such elements; where it can't, what is of them is left out.
bool stores(DType dtype);
// Skips the running test case, or section, which is about f16 alone, where the device can't store it.
void skip_without_f16();
// Skips the running test case where the device's queue doesn't tell the time: phones' often don't.
void skip_without_timestamps();

// Fails the running test case if the validation layers said anything since the last call.
void require_no_validation_messages();

}  // namespace vitrine::test
