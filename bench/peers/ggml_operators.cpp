// ViT-B/16's products and attention on ggml, each once and alone, for bench/zoo_peers.py: what matters is
// which pipelines ggml makes for them. On a make-believe device nothing is computed, so nothing is checked.
//
//   ggml_operators --dtype f16 --sums f32 --batch 8
//
// It prints one JSON line.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <vector>

#include "ggml_backend.h"

namespace {

struct Options {
  std::string device, dtype = "f32", sums = "default";
  int batch = 1;
};

void run(const Options& options) {
  constexpr int64_t tokens = 197, width = 768, heads = 12, head = width / heads;
  const ggml_backend_ptr backend = peer::open_backend("vulkan", options.device, 1);
  const ggml_type type = options.dtype == "f16" ? GGML_TYPE_F16 : GGML_TYPE_F32;
  const ggml_context_ptr context(
      ggml_init({ggml_tensor_overhead() * 64 + ggml_graph_overhead(), nullptr, true}));
  ggml_context* c = context.get();

  std::vector<ggml_tensor*> results;
  const std::vector<std::pair<int64_t, int64_t>> shapes{
      {width, 3 * width}, {width, width}, {width, 4 * width}, {4 * width, width}};  // qkv, proj, fc1, fc2
  for (const auto& [k, n] : shapes) {
    ggml_tensor* weight = ggml_new_tensor_2d(c, type, k, n);
    ggml_tensor* x = ggml_new_tensor_2d(c, GGML_TYPE_F32, k, tokens * options.batch);
    results.push_back(ggml_mul_mat(c, weight, x));
  }
  ggml_tensor* q = ggml_new_tensor_4d(c, GGML_TYPE_F32, head, tokens, heads, options.batch);
  ggml_tensor* k = ggml_new_tensor_4d(c, type, head, tokens, heads, options.batch);
  ggml_tensor* v = ggml_new_tensor_4d(c, type, head, tokens, heads, options.batch);
  results.push_back(ggml_flash_attn_ext(c, q, k, v, nullptr, 0.125F, 0, 0));

  ggml_cgraph* graph = ggml_new_graph(c);
  for (ggml_tensor* result : results) {
    if (options.sums == "f32" && !ggml_prec_set_acc(result, GGML_PREC_F32)) {
      throw std::runtime_error(std::string("ggml has no sums in f32 of ") + ggml_op_desc(result));
    }
    if (!ggml_backend_supports_op(backend.get(), result)) {
      throw std::runtime_error(std::string("this backend has no ") + ggml_op_desc(result));
    }
    ggml_build_forward_expand(graph, result);
  }
  const ggml_backend_buffer_ptr buffer(ggml_backend_alloc_ctx_tensors(c, backend.get()));
  if (!buffer) throw std::runtime_error("the tensors don't fit into the device's memory");
  if (ggml_backend_graph_compute(backend.get(), graph) != GGML_STATUS_SUCCESS) {
    throw std::runtime_error("ggml could not compute the graph");
  }
  const nlohmann::ordered_json line{
      {"peer", "ggml-vulkan"},
      {"version", std::string("ggml ") + ggml_version()},
      {"device", ggml_backend_dev_description(ggml_backend_get_device(backend.get()))}};
  std::cout << line.dump() << "\n";
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("makes ggml compile its products and its attention");
  app.add_option("--device", options.device, "number of the Vulkan device");
  app.add_option("--dtype", options.dtype, "of the weight matrices, keys and values")
      ->check(CLI::IsMember({"f32", "f16"}));
  app.add_option("--sums", options.sums, "default: as ggml likes")->check(CLI::IsMember({"default", "f32"}));
  app.add_option("--batch", options.batch, "images")->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  peer::log_errors_only();
  try {
    run(options);
  } catch (const std::exception& error) {
    std::cerr << "ggml_operators: " << error.what() << "\n";
    return 1;
  }
  return 0;
}
