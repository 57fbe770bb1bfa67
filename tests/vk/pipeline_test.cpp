#include "runtime/vk/pipeline.h"

#include <volk.h>

#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <fstream>
#include <thread>

#include "runtime/util/error.h"
#include "runtime/vk/device.h"
#include "runtime/vk/pipeline_cache.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/test_device.h"

namespace vitrine {
namespace {

// Any shader of the build will do: constants that make a small workgroup, whatever else they mean.
struct AnyShader {
  const ShaderVariant* shader = nullptr;
  std::vector<uint32_t> constants;
  PipelineRequest request;
};

AnyShader any_shader(const Capabilities& device) {
  AnyShader out;
  for (const ShaderVariant& row : all_shaders()) {
    if (row.needs != Need::none || row.bind != BindMode::descriptors || !device.supports(row.needs)) continue;
    const Reflection module = reflect(row.words);
    out.shader = &row;
    out.constants.clear();
    for (const ReflectedConstant& constant : module.constants) {
      out.constants.push_back(
          constant.id == module.workgroup_size_ids[0] ? 64u : static_cast<uint32_t>(constant.default_value));
    }
    out.request = {.shader = &row,
                   .operands = static_cast<uint32_t>(module.bindings.size()),
                   .params_bytes = module.push_bytes};
    return out;
  }
  FAIL("this build has no shader without needs");
  return out;
}

}  // namespace

TEST_CASE("a pipeline has the layout that its shader asks for") {
  Device& device = *test::test_device().device;
  AnyShader any = any_shader(device.capabilities());
  any.request.constants = any.constants;
  const Pipeline pipeline(device, any.request);
  CHECK(pipeline.handle() != VK_NULL_HANDLE);
  CHECK(pipeline.layout() != VK_NULL_HANDLE);
  CHECK(pipeline.set_layout() != VK_NULL_HANDLE);
  CHECK(pipeline.push_bytes() == any.request.params_bytes);
  CHECK(pipeline.reflection().bindings.size() == any.request.operands);
  CHECK(pipeline.statistics().empty());
  test::require_no_validation_messages();
}

TEST_CASE("a pipeline that doesn't fit is refused before the driver sees it") {
  Device& device = *test::test_device().device;
  AnyShader any = any_shader(device.capabilities());
  any.request.constants = any.constants;
  any.request.operands += 1;
  CHECK_THROWS_AS(Pipeline(device, any.request), Error);
  test::require_no_validation_messages();
}

TEST_CASE("statistics come where the device has them") {
  Device& device = *test::test_device().device;
  AnyShader any = any_shader(device.capabilities());
  any.request.constants = any.constants;
  any.request.capture_statistics = true;
  const Pipeline pipeline(device, any.request);
  CHECK(pipeline.statistics().empty() == !device.capabilities().pipeline_statistics);
  test::require_no_validation_messages();
}

TEST_CASE("pipelines are created on several threads with one cache") {
  Device& device = *test::test_device().device;
  const test::TemporaryFolder folder;
  PipelineCache cache(device, folder.path());
  std::vector<std::thread> threads;
  std::atomic<int> made = 0;
  for (uint32_t i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      AnyShader any = any_shader(device.capabilities());
      any.constants[0] = 8u << i;
      any.request.constants = any.constants;
      any.request.cache = cache.handle();
      const Pipeline pipeline(device, any.request);
      made += pipeline.handle() != VK_NULL_HANDLE;
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(made == 4);
  test::require_no_validation_messages();
}

TEST_CASE("the pipeline cache's file is written once, reused, and replaced when damaged") {
  Device& device = *test::test_device().device;
  const test::TemporaryFolder folder;
  const std::filesystem::path path = folder / pipeline_cache_name(device.capabilities());
  AnyShader any = any_shader(device.capabilities());
  any.request.constants = any.constants;
  const auto compile = [&](PipelineCache& cache) {
    any.request.cache = cache.handle();
    const Pipeline pipeline(device, any.request);
    cache.save();
  };
  {
    PipelineCache cache(device, folder.path());
    compile(cache);
  }
  REQUIRE(folder.names() == std::vector<std::string>{path.filename().string()});
  const std::string whole = test::read_whole_file(path);

  // Nothing new was compiled: the file stays as it is.
  const auto written = std::filesystem::last_write_time(path);
  {
    PipelineCache cache(device, folder.path());
    compile(cache);
  }
  CHECK(std::filesystem::last_write_time(path) == written);

  for (const std::string& damaged : {whole.substr(0, whole.size() / 2), std::string("no cache at all"),
                                     whole.substr(0, whole.size() - 1) + "~", std::string()}) {
    std::ofstream(path, std::ios::binary) << damaged;
    PipelineCache cache(device, folder.path());
    compile(cache);
    CHECK(unwrap_pipeline_cache(device.capabilities(), test::to_bytes(test::read_whole_file(path))));
  }
  test::require_no_validation_messages();
}

TEST_CASE("a cache folder that can't be written to is no error") {
  Device& device = *test::test_device().device;
  const test::TemporaryFolder folder;
  const std::filesystem::path file = folder.file("in the way", "a file where a folder should be");
  AnyShader any = any_shader(device.capabilities());
  any.request.constants = any.constants;
  PipelineCache cache(device, file / "below");
  any.request.cache = cache.handle();
  const Pipeline pipeline(device, any.request);
  cache.save();
  cache.save();
  PipelineCache nowhere(device, std::nullopt);
  nowhere.save();
  CHECK(folder.names() == std::vector<std::string>{"in the way"});
}

}  // namespace vitrine
