#include "apps/cli/bench/bench_op.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "apps/cli/bench/bench_output.h"
#include "apps/cli/bench/op_cases.h"
#include "apps/cli/model_options.h"
#include "apps/cli/open_device.h"
#include "runtime/graph/executable.h"
#include "runtime/ops/moves/gather.h"
#include "runtime/util/error.h"
#include "runtime/util/half.h"
#include "runtime/vk/device_facts.h"

namespace vitrine::cli {
namespace {

// A submission runs the operator this many times. Of each result a few rows come back: too little to cost
// time, enough to see that it was computed.
constexpr uint64_t repeats = 4, most_sampled_rows = 8;

struct OpMeasurement {
  std::vector<double> seconds;  // of each time that the operator ran
  Cost cost;
  std::string kernel;
  double error = 0;
};

// Evenly spread, the first and the last among them.
std::vector<uint32_t> sampled_rows(uint64_t rows) {
  const uint64_t count = std::min(rows, most_sampled_rows);
  std::vector<uint32_t> sampled;
  for (uint64_t i = 0; i < count; ++i) {
    sampled.push_back(to_u32(count == 1 ? 0 : i * (rows - 1) / (count - 1)));
  }
  return sampled;
}

std::vector<double> numbers(std::span<const std::byte> bytes, DType dtype) {
  std::vector<double> values(bytes.size() / size_of(dtype));
  for (size_t i = 0; i < values.size(); ++i) {
    if (dtype == DType::f16) {
      uint16_t bits;
      std::memcpy(&bits, &bytes[i * sizeof bits], sizeof bits);
      values[i] = f16_to_f32(bits);
    } else {
      float value;
      std::memcpy(&value, &bytes[i * sizeof value], sizeof value);
      values[i] = value;
    }
  }
  return values;
}

// The largest relative error of the repetitions' sampled rows, in the first and the last image.
double error_of(const Executable& executable, const OpCase& one, const RandomValues& values, DType dtype) {
  const std::vector<uint32_t> rows = sampled_rows(one.rows());
  std::vector<std::vector<double>> results;
  for (uint64_t i = 0; i < repeats; ++i) results.push_back(numbers(executable.output(i), dtype));
  const uint64_t width = results.front().size() / rows.size() / one.batch();
  std::vector<double> difference(repeats);
  double norm = 0;
  for (const uint64_t image : std::set<uint64_t>{0, one.batch() - 1}) {
    for (size_t row = 0; row < rows.size(); ++row) {
      const std::vector<double> expected = one.reference(values, dtype, image, rows[row]);
      for (size_t i = 0; i < expected.size(); ++i) {
        norm += expected[i] * expected[i];
        for (uint64_t r = 0; r < repeats; ++r) {
          const double d = results[r][(image * rows.size() + row) * width + i] - expected[i];
          difference[r] += d * d;
        }
      }
    }
  }
  double largest = 0;
  for (const double d : difference) {
    if (!std::isfinite(d)) return std::numeric_limits<double>::infinity();
    largest = std::max(largest, std::sqrt(d / norm));
  }
  return largest;
}

OpMeasurement measure(PipelineStore& pipelines, const OpCase& one, const std::string& label, DType dtype,
                      const OpBenchOptions& options, uint64_t seed) {
  auto graph = std::make_shared<Graph>();
  const std::vector<uint32_t> rows = sampled_rows(one.rows());
  const ValueId sampled = graph->input("sampled rows", {rows.size()}, DType::u32);
  for (uint64_t i = 0; i < repeats; ++i) {
    const std::string number = std::to_string(i);
    const ValueId result = one.build(*graph, "timed " + number, dtype);
    graph->output(gather(*graph, "sample " + number, result, sampled), "rows " + number);
  }
  RandomValues values(seed, one.range());
  WeightStore weights(pipelines, values);
  Executable executable(weights, make_plan(graph, pipelines.device().capabilities(), options.plan));
  std::memcpy(executable.input(0).data(), rows.data(), rows.size() * sizeof rows[0]);
  executable.run();

  OpMeasurement m;
  m.error = error_of(executable, one, values, dtype);
  const double allowed = dtype == DType::f16 ? 2e-3 : 5e-6;
  if (!(m.error <= allowed)) {
    char text[96];
    std::snprintf(text, sizeof text, "a relative error of %.2g against float64, expected at most %.0e",
                  m.error, allowed);
    throw Error(ErrorCode::failed, label + ": found " + text);
  }
  const Plan& plan = executable.plan();
  const Node& timed = graph->nodes()[0];
  m.cost = cost_of(LowerContext(*graph, timed, plan.device));
  constexpr size_t least_profiles = 3;
  double total = 0;
  for (size_t run = 0; options.runs ? run < options.runs : run < least_profiles || total < options.seconds;
       ++run) {
    const auto start = std::chrono::steady_clock::now();
    const Profile profile = executable.profile();
    total += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    std::map<uint32_t, double> by_node;
    for (size_t i = 0; i < plan.steps.size(); ++i) {
      const Step& step = plan.steps[i];
      if (plan.graph->nodes()[step.node].op != timed.op) continue;
      by_node[step.node] += profile.step_seconds[i];
      m.kernel = step.kernel + (step.dispatch.note.empty() ? "" : " " + step.dispatch.note);
    }
    for (const auto& [node, seconds] : by_node) m.seconds.push_back(seconds);
  }
  return m;
}

void print(const OpMeasurement& m, const std::string& op, const std::string& shape, DType dtype, bool json,
           const Capabilities& device) {
  const double median = median_of(m.seconds);
  const double least = *std::ranges::min_element(m.seconds), most = *std::ranges::max_element(m.seconds);
  if (json) {
    nlohmann::ordered_json line;
    line["op"] = op;
    line["shape"] = shape;
    line["dtype"] = name_of(dtype);
    line["device"] = device.name;
    line["driver"] = driver_text(device);
    line["kernel"] = m.kernel;
    line["runs"] = m.seconds.size();
    line["median_ms"] = median * 1e3;
    line["min_ms"] = least * 1e3;
    line["max_ms"] = most * 1e3;
    line["flops"] = m.cost.flops;
    line["bytes"] = m.cost.bytes;
    line["gflops"] = m.cost.flops / median / 1e9;
    line["gbytes_per_second"] = m.cost.bytes / median / 1e9;
    line["relative_error"] = m.error;
    std::printf("%s\n", line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace).c_str());
  } else {
    std::printf("%s %s, %s, on %s\n", op.c_str(), shape.c_str(), std::string(name_of(dtype)).c_str(),
                device_and_driver(device).c_str());
    std::printf(
        "  %.3f ms (median of %zu, %.3f to %.3f), %.1f GFLOP/s, %.1f GB/s, relative error %.1e, by %s\n",
        median * 1e3, m.seconds.size(), least * 1e3, most * 1e3, m.cost.flops / median / 1e9,
        m.cost.bytes / median / 1e9, m.error, m.kernel.c_str());
  }
  std::fflush(stdout);
}

}  // namespace

void add_op_flags(CLI::App& command, OpFlags& flags) {
  CLI::Option* op =
      command
          .add_option("--op", flags.name, "Times one operator instead of a model: matmul, attention or add")
          ->check(CLI::IsMember(op_case_names()));
  for (const char* of_a_model : {"--model", "--arch", "--set", "--image-size", "--what", "--batch", "--maps",
                                 "--startup", "--host-time", "--trace"}) {
    op->excludes(of_a_model);
  }
  CLI::Option* shape =
      command
          .add_option(
              "--shape", flags.shapes,
              "Its sizes: matmul MxNxK, attention IMAGESxTOKENSxHEADSxWIDTH, add ROWSxCOLUMNS; several "
              "with commas")
          ->delimiter(',')
          ->needs(op);
  op->needs(shape);
}

void bench_op(const OpFlags& flags, const OpBenchOptions& options, const CommonOptions& common) {
  std::vector<std::unique_ptr<OpCase>> cases;
  for (const std::string& shape : flags.shapes) cases.push_back(make_op_case(flags.name, shape));
  const std::unique_ptr<Device> device = open_device(common);
  PipelineStore pipelines(*device);
  for (const std::string& dtype_name : options.dtypes) {
    const DType dtype = storage_type(dtype_name, device->capabilities());
    for (size_t i = 0; i < cases.size(); ++i) {
      const std::string label = flags.name + " " + flags.shapes[i] + " in " + std::string(name_of(dtype));
      print(measure(pipelines, *cases[i], label, dtype, options, common.seed), flags.name, flags.shapes[i],
            dtype, options.json, device->capabilities());
    }
  }
}

}  // namespace vitrine::cli
