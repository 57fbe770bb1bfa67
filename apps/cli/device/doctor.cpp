// vitrine doctor: what this device makes of Vitrine's kernels: which of them compute right (self_test.cpp),
// or with --compile-only, where nothing runs, what the driver's compiler thinks of the pipelines that models
// are planned with.
#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "apps/cli/commands.h"
#include "apps/cli/device/doctor_candidates.h"
#include "apps/cli/device/range_report.h"
#include "apps/cli/device/self_test.h"
#include "apps/cli/model_options.h"
#include "apps/cli/open_device.h"
#include "model/families/known_architectures.h"
#include "model/vit/vit_graph.h"
#include "runtime/graph/pipeline_store.h"
#include "runtime/graph/plan.h"
#include "runtime/util/error.h"
#include "runtime/util/text.h"
#include "runtime/vk/device_facts.h"
#include "runtime/vk/facts/compiler_figures.h"
#include "runtime/vk/shared_memory.h"
#include "train/training_graph.h"

namespace vitrine::cli {
namespace {

struct DoctorOptions {
  bool compile_only = false;
  bool json = false;
  // The usual one, one with rotary positions, and the small ones with odd widths: heads of 48 and of 4, two
  // kinds of tokens.
  std::vector<std::string> archs = {"vit_base_patch16_224", "vit_base_patch16_dinov3", "cifar_vit",
                                    "myvit_mnist", "deit_tiny_distilled_patch16_224"};
  std::vector<uint64_t> batches = {1, 8};
  std::vector<std::string> trainings;  // configurations, instead of these models
  bool candidates = false;
  std::vector<std::string> halved;  // names of specialization constants
  std::string input, only;
  std::optional<size_t> behind;
  ModelFlags flags;
};

struct PlannedModel {
  std::string arch;
  DType dtype = DType::f32;
  uint64_t batch = 1;
  Plan plan;

  bool uses_cooperative_matrices() const {
    return std::ranges::any_of(
        plan.steps, [](const Step& step) { return contains(step.dispatch.shader->needs, Need::coopmat); });
  }
  // Which kernels run each operator.
  std::map<std::string, std::set<std::string>> kernels() const {
    std::map<std::string, std::set<std::string>> out;
    for (const Step& step : plan.steps) {
      out[std::string(plan.graph->nodes()[step.node].op->name)].insert(step.kernel);
    }
    return out;
  }
};

struct CompiledKernel {
  const Dispatch* dispatch = nullptr;  // the first one that uses it
  std::string op, kernel;
  bool chosen = false;  // some plan uses it
  std::shared_ptr<const Pipeline> pipeline;
  std::vector<ExecutableStatistics> statistics;
  CompilerFigures figures;
  // The same with one specialization constant halved: what differs is what that half costs.
  std::string halved;  // the constant's name; empty: there is no such pipeline
  std::vector<ExecutableStatistics> halved_statistics;
};

void require_memory(const PlannedModel& model, const Capabilities& device) {
  uint64_t largest = 0;
  for (const MemoryHeap& heap : device.heaps) largest = std::max(largest, heap.bytes);
  const uint64_t needed = model.plan.constant_bytes() + model.plan.arena_bytes();
  if (needed > largest) {
    throw Error(ErrorCode::failed, model.arch + " needs " + std::to_string(needed) +
                                       " bytes of memory, the largest heap of this device has " +
                                       std::to_string(largest));
  }
}

// The steps of trainings, of f32 and of what f16 keeps of it.
std::vector<PlannedModel> plan_trainings(const DoctorOptions& options, const std::vector<DType>& dtypes,
                                         const Capabilities& device) {
  const PlanOptions plan_options = cli::plan_options(options.flags);
  std::vector<PlannedModel> steps;
  for (const std::string& path : options.trainings) {
    TrainConfig config = read_train_config(path);
    if (config.recipe.distillation.on()) {
      throw Error(ErrorCode::usage, "--train: " + shown(path) +
                                        " has a teacher, whose kernels are its model's (--model), expected a "
                                        "configuration without distillation");
    }
    for (const DType type : dtypes) {
      config.precision = type == DType::f16 ? Precision::f16 : Precision::f32;
      steps.push_back({path, type, config.batch_size,
                       make_plan(make_step_graph(config, layout_of(config), {.images = StepImages::bytes}),
                                 device, plan_options)});
    }
  }
  return steps;
}

std::vector<PlannedModel> plan_models(const DoctorOptions& options, const std::string& dtype,
                                      const Capabilities& device) {
  std::vector<DType> dtypes;
  if (dtype != "auto") {
    dtypes.push_back(storage_type(dtype, device));
  } else {
    dtypes.push_back(DType::f32);
    if (device.supports(Need::storage16)) dtypes.push_back(DType::f16);
  }
  if (!options.trainings.empty()) return plan_trainings(options, dtypes, device);
  const PlanOptions plan_options = cli::plan_options(options.flags);
  std::vector<PlannedModel> models;
  for (const std::string& arch : options.archs) {
    const ViTConfig config = architecture(arch);
    for (const DType type : dtypes) {
      for (const uint64_t batch : options.batches) {
        models.push_back(
            {arch, type, batch,
             make_plan(make_vit_graph(config, {.batch = batch, .dtype = type}), device, plan_options)});
        require_memory(models.back(), device);
      }
    }
  }
  return models;
}

// The constant of `names` that the dispatch has, when it can be halved; else null.
NamedConstant* constant_to_halve(Dispatch& dispatch, const std::vector<std::string>& names) {
  for (NamedConstant& constant : dispatch.constants) {
    if (std::ranges::find(names, constant.name) != names.end() && constant.value >= 2 &&
        constant.value % 2 == 0)
      return &constant;
  }
  return nullptr;
}

void compile_halves(const std::vector<std::string>& names, PipelineStore& store,
                    std::vector<CompiledKernel>& kernels) {
  for (CompiledKernel& kernel : kernels) {
    Dispatch half = *kernel.dispatch;
    NamedConstant* const halved = constant_to_halve(half, names);
    if (!halved) continue;
    // What K is a multiple of is told by the same number where that is the whole step.
    const uint32_t whole = halved->value;
    halved->value /= 2;
    for (NamedConstant& constant : half.constants) {
      if (constant.name == "k_multiple" && constant.value == whole) constant.value /= 2;
    }
    const Dispatch* const one = &half;
    kernel.halved = halved->name;
    kernel.halved_statistics = store.get({&one, 1})[0]->statistics();
  }
}

// One entry a pipeline, in the order in which the models use them; behind them what could be used.
std::vector<CompiledKernel> compile(const std::vector<PlannedModel>& models,
                                    const std::vector<CandidateDispatches>& candidates,
                                    PipelineStore& store) {
  std::vector<CompiledKernel> kernels;
  std::set<const Pipeline*> seen;
  const auto add = [&](CompiledKernel kernel, std::shared_ptr<const Pipeline> pipeline) {
    if (!seen.insert(pipeline.get()).second) return;
    kernel.pipeline = std::move(pipeline);
    kernel.statistics = kernel.pipeline->statistics();
    kernel.figures = figures_of(kernel.statistics);
    kernels.push_back(std::move(kernel));
  };
  for (const PlannedModel& model : models) {
    const std::vector<const Dispatch*> dispatches = model.plan.dispatches();
    const auto pipelines = store.get(dispatches);
    for (size_t i = 0; i < dispatches.size(); ++i) {
      CompiledKernel kernel{.dispatch = dispatches[i], .chosen = true};
      if (i < model.plan.steps.size()) {  // behind the steps come what packs constants
        kernel.op = model.plan.graph->nodes()[model.plan.steps[i].node].op->name;
        kernel.kernel = model.plan.steps[i].kernel;
      }
      add(std::move(kernel), pipelines[i]);
    }
  }
  for (const CandidateDispatches& candidate : candidates) {
    for (const Dispatch& dispatch : candidate.dispatches) {
      const Dispatch* const one = &dispatch;
      add({.dispatch = one, .op = candidate.op, .kernel = candidate.kernel}, store.get({&one, 1})[0]);
    }
  }
  return kernels;
}

// ---- printing ----------------------------------------------------------------------------------

std::string number(const std::optional<double>& value) {
  if (!value) return "-";
  char text[32];
  std::snprintf(text, sizeof text, "%.0f", *value);
  return text;
}

// The shaders that this device lacks something for, and what: they are in this build, but never run here.
std::vector<std::pair<std::string, std::string>> not_run_on(const Capabilities& device) {
  std::vector<std::pair<std::string, std::string>> out;
  for (const ShaderVariant& shader : all_shaders()) {
    const auto missing = static_cast<uint32_t>(shader.needs) & ~static_cast<uint32_t>(device.has);
    if (missing == 0) continue;
    out.emplace_back(std::string(shader.shader) + "/" + std::string(shader.variant),
                     to_string(static_cast<Need>(missing)));
  }
  return out;
}

std::string workgroup_text(const CompiledKernel& kernel) {
  const auto size = kernel.pipeline->reflection().workgroup_size_with(constants_by_id(*kernel.dispatch));
  std::string text = std::to_string(size[0]);
  if (size[1] * size[2] > 1) text += "x" + std::to_string(size[1]);
  if (size[2] > 1) text += "x" + std::to_string(size[2]);
  return text;
}

uint32_t subgroup_size_of(const CompiledKernel& kernel) {
  return kernel.statistics.empty() ? kernel.dispatch->subgroup_size : kernel.statistics.front().subgroup_size;
}

std::optional<double> shared_bytes(const CompiledKernel& kernel) {
  const auto bytes = shared_bytes_of(kernel.dispatch->shader->words, constants_by_id(*kernel.dispatch));
  if (!bytes) return std::nullopt;
  return static_cast<double>(*bytes);
}

void print_table(const std::vector<CompiledKernel>& kernels) {
  std::vector<std::array<std::string, 11>> rows = {{"shader", "workgroup", "subgroup", "registers", "spills",
                                                    "scratch", "shared", "occupancy", "cycles",
                                                    "instructions", "code"}};
  for (const CompiledKernel& kernel : kernels) {
    const CompilerFigures& f = kernel.figures;
    std::string name =
        std::string(kernel.dispatch->shader->shader) + "/" + std::string(kernel.dispatch->shader->variant);
    if (!kernel.dispatch->note.empty()) name += " " + kernel.dispatch->note;
    if (!kernel.chosen) name += " (not chosen)";
    const uint32_t subgroup = subgroup_size_of(kernel);
    rows.push_back({name, workgroup_text(kernel), subgroup == 0 ? "-" : std::to_string(subgroup),
                    number(f.registers), number(f.spills), number(f.scratch_bytes),
                    number(shared_bytes(kernel)), number(f.occupancy), number(f.cycles),
                    number(f.instructions), number(f.code_bytes)});
  }
  std::array<size_t, 11> widths{};
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  for (const auto& row : rows) {
    std::printf("%-*s", static_cast<int>(widths[0]), row[0].c_str());
    for (size_t i = 1; i < row.size(); ++i) std::printf("  %*s", static_cast<int>(widths[i]), row[i].c_str());
    std::printf("\n");
  }
}

void print_text(const Capabilities& device, const std::vector<PlannedModel>& models,
                const std::vector<CompiledKernel>& kernels) {
  std::printf("%s\n", device_heading(device).c_str());
  for (const PlannedModel& model : models) {
    std::printf("%s %s batch %llu: %zu dispatches, weights %.1f MiB, activations %.1f MiB\n",
                model.arch.c_str(), std::string(name_of(model.dtype)).c_str(),
                static_cast<unsigned long long>(model.batch), model.plan.steps.size(),
                static_cast<double>(model.plan.constant_bytes()) / (1 << 20),
                static_cast<double>(model.plan.arena_bytes()) / (1 << 20));
    std::string line;
    for (const auto& [op, names] : model.kernels()) {
      for (const std::string& name : names) line += (line.empty() ? "" : ", ") + op + " " + name;
    }
    std::printf("  %s\n", line.c_str());
  }
  std::printf("\n");
  print_table(kernels);
  if (!device.pipeline_statistics) std::printf("(this driver gives no figures of its compiler)\n");
  for (const auto& [shader, missing] : not_run_on(device)) {
    std::printf("not run: %s needs %s\n", shader.c_str(), missing.c_str());
  }
}

void print_line(const nlohmann::ordered_json& line) {
  std::printf("%s\n", line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
}

void put_statistics(nlohmann::ordered_json& out, const std::vector<ExecutableStatistics>& executables) {
  for (const ExecutableStatistics& executable : executables) {
    for (const auto& [name, value] : executable.values) out[executable.executable][name] = value;
  }
}

void print_json(const Capabilities& device, const std::vector<PlannedModel>& models,
                const std::vector<CompiledKernel>& kernels, size_t spilling) {
  for (const PlannedModel& model : models) {
    nlohmann::ordered_json line;
    line["model"] = model.arch;
    line["dtype"] = name_of(model.dtype);
    line["batch"] = model.batch;
    line["dispatches"] = model.plan.steps.size();
    line["weight_bytes"] = model.plan.constant_bytes();
    line["activation_bytes"] = model.plan.arena_bytes();
    line["cooperative_matrices"] = model.uses_cooperative_matrices();
    line["kernels"] = model.kernels();
    print_line(line);
  }
  for (const CompiledKernel& kernel : kernels) {
    const CompilerFigures& f = kernel.figures;
    nlohmann::ordered_json line;
    line["op"] = kernel.op;
    line["kernel"] = kernel.kernel;
    line["chosen"] = kernel.chosen;
    line["shader"] = kernel.dispatch->shader->shader;
    line["variant"] = kernel.dispatch->shader->variant;
    line["note"] = kernel.dispatch->note;
    for (const std::string& name : constant_names_of(*kernel.dispatch->shader))
      line["constants"][name] = kernel.dispatch->constant(name);
    line["workgroup"] = kernel.pipeline->reflection().workgroup_size_with(constants_by_id(*kernel.dispatch));
    line["subgroup"] = subgroup_size_of(kernel);
    const auto put = [&](const char* name, const std::optional<double>& value) {
      line[name] = value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
    };
    put("registers", f.registers);
    put("spills", f.spills);
    put("scratch_bytes", f.scratch_bytes);
    put("occupancy", f.occupancy);
    put("cycles", f.cycles);
    put("instructions", f.instructions);
    put("code_bytes", f.code_bytes);
    put("shared_bytes", shared_bytes(kernel));
    line["spills_to_memory"] = f.spills_to_memory();
    put_statistics(line["statistics"], kernel.statistics);
    if (!kernel.halved.empty()) {
      line["halved"]["constant"] = kernel.halved;
      put_statistics(line["halved"]["statistics"], kernel.halved_statistics);
    }
    print_line(line);
  }
  auto not_run = nlohmann::ordered_json::array();
  for (const auto& [shader, missing] : not_run_on(device)) {
    not_run.push_back({{"shader", shader}, {"needs", missing}});
  }
  print_line({{"device", device.name},
              {"driver", device.driver_name},
              {"driver_info", device.driver_info},
              {"advice", device.advice},
              {"supports_cooperative_matrices", device.supports(Need::coopmat)},
              {"figures", device.pipeline_statistics},
              {"pipelines", kernels.size()},
              {"spilling", spilling},
              {"not_run", not_run}});
}

void run_doctor(const CommonOptions& common, const DoctorOptions& options) {
  if (!options.flags.model.empty()) return report_ranges(options.flags, options.input, common, options.json);
  if (options.behind) return run_self_tests_behind(*options.behind, common, options.only);
  if (!options.compile_only) return run_self_tests(common, options.only, options.json);
  const std::unique_ptr<Device> device = open_device(common);
  const Capabilities& capabilities = device->capabilities();
  const std::vector<PlannedModel> models = plan_models(options, common.dtype, capabilities);
  PipelineStore store(*device, true);
  std::vector<CandidateDispatches> candidates;
  if (options.candidates) {
    std::vector<const Plan*> plans;
    for (const PlannedModel& model : models) plans.push_back(&model.plan);
    candidates = largest_candidates(plans);
  }
  std::vector<CompiledKernel> kernels = compile(models, candidates, store);
  compile_halves(options.halved, store, kernels);

  std::vector<std::string> spilling;
  for (const CompiledKernel& kernel : kernels) {
    if (!kernel.chosen || !kernel.figures.spills_to_memory()) continue;
    spilling.push_back(std::string(kernel.dispatch->shader->shader) + "/" +
                       std::string(kernel.dispatch->shader->variant));
  }
  if (options.json) {
    print_json(capabilities, models, kernels, spilling.size());
  } else {
    print_text(capabilities, models, kernels);
  }
  if (spilling.empty()) return;
  std::string names;
  for (const std::string& name : std::set<std::string>(spilling.begin(), spilling.end())) {
    names += (names.empty() ? "" : ", ") + name;
  }
  throw Error(ErrorCode::failed, std::to_string(spilling.size()) + " of " + std::to_string(kernels.size()) +
                                     " pipelines spill registers to memory on '" + capabilities.name +
                                     "': " + names);
}

}  // namespace

void add_doctor(CLI::App& app, const CommonOptions& common) {
  CLI::App* command =
      app.add_subcommand("doctor", "Test Vitrine's kernels on the device, and keep which it may use");
  auto options = std::make_shared<DoctorOptions>();
  CLI::Option* compile_only =
      command->add_flag("--compile-only", options->compile_only,
                        "Plan models, compile their pipelines and show the compiler's figures; run nothing");
  CLI::Option* model =
      command
          ->add_option("--model", options->flags.model,
                       "Show how large this model's numbers get, layer by layer, beside what f16 holds")
          ->excludes(compile_only);
  command->add_option("--only", options->only, "Test one operator's kernels, or one: OPERATOR[=KERNEL]")
      ->excludes(compile_only)
      ->excludes(model);
  command->add_option("--input", options->input,
                      "Images for --model: float32 [B,C,H,W], normalised; random pixels when left out");
  add_config_flags(*command, options->flags);
  command->add_option("--arch", options->archs, "Architectures to plan")
      ->delimiter(',')
      ->capture_default_str();
  command->add_option("--batch", options->batches, "Batch sizes to plan for")
      ->delimiter(',')
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command
      ->add_option("--train", options->trainings,
                   "Configurations of trainings: with --compile-only, plan their steps instead of --arch")
      ->needs(compile_only)
      ->delimiter(',');
  command->add_option("--variant", options->flags.variants,
                      "Forces kernels: op=kernel[,op=kernel:configuration] (else VITRINE_VARIANT)");
  command->add_flag("--candidates", options->candidates,
                    "Compile every kernel for such a device, and every tile, that could run the largest "
                    "matmul and attention, too");
  command
      ->add_option("--halve", options->halved,
                   "Specialization constants: pipelines that have one are compiled once more with half of "
                   "it, for the JSON; the difference is what a known amount of work costs")
      ->delimiter(',');
  command->add_flag("--json", options->json,
                    "One JSON object a line: models, kernels or pipelines, then the device");
  // For the processes that it starts, and not for users.
  command->add_option("--behind", options->behind, "Run the self-tests behind the first so many")->group("");
  command->callback([&common, options] { run_doctor(common, *options); });
}

}  // namespace vitrine::cli
