// vitrine inspect: what a model is and what a device will do for it: configuration, parameters, FLOPs,
// the shapes at every step, the walk through multi-head attention (with --trace its numbers, too), the
// memory plan, the dispatches.
#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>

#include "apps/cli/attention_table.h"
#include "apps/cli/commands.h"
#include "apps/cli/inspect_estimate.h"
#include "apps/cli/inspect_trace.h"
#include "apps/cli/model_options.h"
#include "apps/cli/open_device.h"
#include "model/families/known_architectures.h"
#include "model/files/hub_cache.h"
#include "model/vit/parameters.h"
#include "runtime/tune/choice_store.h"
#include "runtime/tune/device_profile.h"
#include "runtime/util/error.h"
#include "runtime/util/paths.h"
#include "runtime/util/text.h"

namespace vitrine::cli {
namespace {

using Json = nlohmann::ordered_json;

struct InspectFlags {
  ModelFlags model;
  std::string subject;
  TraceFlags trace;
  std::string device_profile;
  uint64_t batch = 1;
  bool json = false;
};

std::string grouped(uint64_t number) {
  std::string text = std::to_string(number);
  for (size_t at = text.size(); at > 3;) text.insert(at -= 3, ",");
  return text;
}

std::string mib(uint64_t bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f MiB", static_cast<double>(bytes) / (1 << 20));
  return text;
}

// "blocks.7.norm1" -> 7, or nothing.
std::optional<uint64_t> block_of(const std::string& name) {
  if (!name.starts_with("blocks.")) return std::nullopt;
  return std::strtoull(name.c_str() + 7, nullptr, 10);
}

// "37x37, resampled to 16x16 (bicubic)", or nothing where the table is used as it is.
std::string resampled_positions(const Model& model) {
  const ViTConfig& c = model.config;
  const Grid now = grid_of(c);
  if (!model.stored_grid || *model.stored_grid == now) return {};
  const auto text = [](Grid g) { return std::to_string(g.height) + "x" + std::to_string(g.width); };
  return text(*model.stored_grid) + ", resampled to " + text(now) + " (" +
         std::string(name_of(c.position_resize)) + ")";
}

void print_model(const Model& model, const InspectFlags& flags, const Graph& graph) {
  const ViTConfig& c = model.config;
  std::printf("%s (%s)\n\nconfiguration\n", shown(model.name).c_str(), model.family.c_str());
  for (const auto& [key, value] : fields_of(c.resolved()))
    std::printf("  %-20s %s\n", key.c_str(), value.c_str());
  if (const std::string line = resampled_positions(model); !line.empty())
    std::printf("  %-20s %s\n", "stored positions", line.c_str());
  const uint64_t count = parameter_count(c);
  std::printf("\nparameters %s (%s in f32, %s in f16)\n", grouped(count).c_str(), mib(4 * count).c_str(),
              mib(2 * count).c_str());
  std::printf("arithmetic %.4g GFLOP an image (a multiply-add counts two)\n\n", flops(c, 1) / 1e9);

  std::printf("shapes, batch %" PRIu64 "\n", flags.batch);
  for (const ValueId id : graph.with_role(Role::input)) {
    std::printf("  %-28s %-12s %s\n", graph.value(id).name.c_str(), "input",
                graph.value(id).shape.to_string().c_str());
  }
  for (const Node& node : graph.nodes()) {
    if (block_of(node.name).value_or(0) > 0) continue;  // the others repeat the first
    const Value& out = graph.value(node.outputs.front());
    std::printf("  %-28s %-12s %s %s\n", node.name.c_str(), std::string(node.op->name).c_str(),
                out.shape.to_string().c_str(), std::string(name_of(out.dtype)).c_str());
    const bool last_of_first = block_of(node.name) == 0 && node.name.ends_with(".mlp.fc2");
    if (last_of_first && c.depth > 1)
      std::printf("  blocks.1 to blocks.%" PRIu64 ": the same\n", c.depth - 1);
  }

  print_attention_table(c, {flags.batch, c.tokens()});
}

void print_plan(const Plan& plan, DType dtype) {
  std::printf("\nmemory on %s, %s\n", plan.device.name.c_str(), std::string(name_of(dtype)).c_str());
  const std::string memory = memory_summary(plan);
  for (size_t at = 0; at < memory.size();) {
    const size_t end = memory.find('\n', at);
    std::printf("  %s\n", memory.substr(at, end - at).c_str());
    at = end == std::string::npos ? memory.size() : end + 1;
  }
  std::printf("\nfused: %s\n", fusion_summary(plan).c_str());
  for (const std::string& change : plan.fusion_changes) std::printf("  %s\n", change.c_str());
  std::map<std::pair<std::string_view, std::string>, size_t> choices;
  for (size_t i = 0; i < plan.choices.size(); ++i)
    ++choices[{plan.graph->nodes()[i].op->name, plan.choices[i]}];
  std::printf("\nkernels\n");
  for (const auto& [choice, count] : choices) {
    std::printf("%4zu %s: %s\n", count, std::string(choice.first).c_str(), choice.second.c_str());
  }
}

void print_dispatches(const Plan& plan) {
  std::printf("\ndispatches (| waits for what is before it)\n");
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const Step& step = plan.steps[i];
    const Dispatch& d = step.dispatch;
    std::printf("%s%4zu %-26s %-9s %s.%s %ux%ux%u%s%s%s\n", step.barrier_before ? "|" : " ", i,
                plan.graph->nodes()[step.node].name.c_str(), step.kernel.c_str(),
                std::string(d.shader->shader).c_str(), std::string(d.shader->variant).c_str(), d.groups[0],
                d.groups[1], d.groups[2], d.note.empty() ? "" : " (", d.note.c_str(),
                d.note.empty() ? "" : ")");
  }
}

Json json_of_model(const Model& model, const InspectFlags& flags, const Graph& graph) {
  const ViTConfig& c = model.config;
  Json line;
  line["model"] = model.name;
  line["family"] = model.family;
  for (const auto& [key, value] : fields_of(c.resolved())) {
    const Json parsed = Json::parse(value, nullptr, false);
    line["config"][key] = parsed.is_discarded() ? Json(value) : parsed;
  }
  if (model.stored_grid) line["stored_grid"] = {model.stored_grid->height, model.stored_grid->width};
  line["parameters"] = parameter_count(c);
  line["flops"] = flops(c, flags.batch);
  line["shapes"] = Json::array();
  for (const Node& node : graph.nodes()) {
    const Value& out = graph.value(node.outputs.front());
    line["shapes"].push_back(
        {{"name", node.name},
         {"operator", node.op->name},
         {"shape", std::vector<uint64_t>(out.shape.dims().begin(), out.shape.dims().end())},
         {"dtype", name_of(out.dtype)}});
  }
  line["attention"] = json_of_attention(c, {flags.batch, c.tokens()});
  return line;
}

void add_plan(Json& line, const Plan& plan, DType dtype) {
  line["device"] = plan.device.name;
  line["dtype"] = name_of(dtype);
  line["memory"] = {{"activation_bytes", plan.arena_bytes()},
                    {"largest_live_set_bytes", plan.largest_live_set},
                    {"constant_bytes", plan.constant_bytes()},
                    {"submissions", plan.slice_count}};
  line["fusion"] = {{"rules", plan.options.fusions}, {"changes", plan.fusion_changes}};
  line["dispatches"] = Json::array();
  for (const Step& step : plan.steps) {
    const Node& node = plan.graph->nodes()[step.node];
    line["dispatches"].push_back({{"node", node.name},
                                  {"fused", fused_parts(node)},
                                  {"kernel", step.kernel},
                                  {"choice", plan.choices[step.node]},
                                  {"shader", std::string(step.dispatch.shader->shader) + "." +
                                                 std::string(step.dispatch.shader->variant)},
                                  {"groups", step.dispatch.groups},
                                  {"barrier", step.barrier_before}});
  }
}

void inspect(InspectFlags flags, const CommonOptions& common) {
  const std::optional<Result> what = result_of(flags.model);
  const PlanOptions options = plan_options(flags.model);
  std::optional<Capabilities> profile;
  if (!flags.device_profile.empty()) {
    if (!common.device.empty())
      throw Error(ErrorCode::usage, "--device: found a device and --device-profile, expected one of them");
    profile = read_device_profile(flags.device_profile);
  }
  if (path_exists(flags.subject) || is_hub_name(flags.subject)) {
    const auto attention =
        is_file(flags.subject) ? open_bare_attention(flags.subject, flags.model.set, warn) : std::nullopt;
    if (attention) {
      return inspect_attention(flags.subject, *attention, flags.model, flags.trace, flags.json, common);
    }
    flags.model.model = flags.subject;
  } else if (find_architecture(flags.subject)) {
    flags.model.arch = flags.subject;
  } else {
    throw Error(ErrorCode::bad_file,
                shown(flags.subject) +
                    ": found no such file or folder and no architecture of this name, expected "
                    "one of them");
  }
  std::optional<Preprocess> preprocess;
  Model model;
  if (!flags.trace.input.empty() && !is_npy(flags.trace.input)) {
    model = open_picture_model(flags.model, flags.trace.picture, common);
    preprocess = model.preprocess;
  } else {
    if (!flags.trace.picture.profile.empty() || flags.trace.picture.exif) {
      throw Error(
          ErrorCode::usage,
          shown(flags.trace.input) +
              ": found numbers, expected a picture where --profile or --exif says what to do with it");
    }
    model = open_model(flags.model, common);
  }
  const auto graph = make_vit_graph(model.config, {.batch = flags.batch, .result = what});
  if (!flags.trace.input.empty()) {
    return trace_model(model, preprocess, flags.model, flags.trace, flags.json,
                       flags.json ? json_of_model(model, flags, *graph) : Json(), common);
  }
  Json line;
  if (flags.json) {
    line = json_of_model(model, flags, *graph);
  } else {
    print_model(model, flags, *graph);
    std::fflush(stdout);
  }
  // What is above needs no device: it has been said when none is found.
  const bool elsewhere = !flags.device_profile.empty();
  const Capabilities device = elsewhere ? *profile : open_device(common)->capabilities();
  const DType dtype = storage_type(common.dtype, device);
  const auto typed = make_vit_graph(model.config, {.batch = flags.batch, .dtype = dtype, .result = what});
  const Plan plan =
      make_plan(typed, device, elsewhere ? options : with_stored_choices(options, device, warn));
  if (flags.json) {
    add_plan(line, plan, dtype);
    if (elsewhere) add_estimate(line, plan);
    std::printf("%s\n", line.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
  } else {
    print_plan(plan, dtype);
    elsewhere ? print_estimate(plan) : print_dispatches(plan);
  }
}

}  // namespace

void add_inspect(CLI::App& app, const CommonOptions& common) {
  CLI::App* command = app.add_subcommand("inspect", "Show what a model is and what a device will do for it");
  auto flags = std::make_shared<InspectFlags>();
  command->add_option("model", flags->subject, "A model's folder or file, or the name of an architecture")
      ->required();
  add_plan_flags(*command, flags->model);
  add_what_flag(*command, flags->model);
  CLI::Option* trace = command->add_option(
      "--trace", flags->trace.input,
      "Computes the walk through one block: of a picture, or of an .npy file, float32 [B,C,H,W] and "
      "normalised ([B,N,D] for an attention alone)");
  command->add_option("--layer", flags->trace.layer, "The block that --trace looks into, from 0")
      ->needs(trace)
      ->capture_default_str();
  add_picture_flags(*command, flags->trace.picture);
  for (const char* option : {"--profile", "--exif"}) command->get_option(option)->needs(trace);
  command
      ->add_option(
          "--device-profile", flags->device_profile,
          "A device that isn't here, as a file of `vitrine devices --profile`: what would be chosen on it, "
          "and an estimate of its time")
      ->excludes(trace);
  command->add_option("--batch", flags->batch, "Images that are computed together")
      ->check(CLI::Range(uint64_t{1}, uint64_t{4096}))
      ->capture_default_str();
  command->add_flag("--json", flags->json, "One JSON object");
  command->callback([&common, flags] { inspect(*flags, common); });
}

}  // namespace vitrine::cli
