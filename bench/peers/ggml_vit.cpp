// The peer that Vitrine is measured against: the same ViT forward pass on ggml, from the same
// checkpoint (timm's names, f32) and the same input.
//
//   ggml_vit --backend vulkan|cpu --model M.safetensors --input X.npy [--output logits.npy] ...
//
// It prints one JSON line. On Mesa's software driver set GGML_VK_DISABLE_COOPMAT=1: with cooperative
// matrices ggml 0.27's logits are wrong there, which compare.py finds out.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <iostream>

#include "files.h"
#include "ggml_backend.h"

namespace {

struct Options {
  std::string backend = "vulkan", device, model, input, output, arch = "vit", dtype = "f32",
              attention = "flash";
  int heads = 0, warmup = 1, iterations = 5, threads = 2;
  float eps = 1e-6F;
};

// A timm checkpoint on a ggml backend, and the forward pass over it. ggml names dimensions the other
// way round: ne[0] is the fastest.
class Vit {
 public:
  Vit(ggml_backend_t backend, const Options& options, const peer::Tensor& image)
      : backend_(backend),
        options_(options),
        checkpoint_(peer::read_safetensors(options.model)),
        image_(image) {
    batch_ = image.shape.at(0);
    const auto& patch = checkpoint_.at("patch_embed.proj.weight").shape;
    width_ = patch.at(0);
    patch_ = patch.at(2);
    heads_ = options.heads > 0 ? options.heads : width_ / 64;  // timm's rule for the standard sizes
    while (checkpoint_.count("blocks." + std::to_string(depth_) + ".norm1.weight")) ++depth_;

    weights_context_.reset(ggml_init({ggml_tensor_overhead() * (checkpoint_.size() + 2), nullptr, true}));
    for (const auto& [name, tensor] : checkpoint_) declare(name, tensor);
    input_ = ggml_new_tensor_4d(weights_context_.get(), GGML_TYPE_F32, image.shape.at(3), image.shape.at(2),
                                image.shape.at(1), batch_);
    weights_buffer_.reset(ggml_backend_alloc_ctx_tensors(weights_context_.get(), backend));
    if (!weights_buffer_) throw std::runtime_error("the weights don't fit into the device's memory");
    for (const auto& [name, tensor] : checkpoint_) upload(name, tensor);

    constexpr size_t max_nodes = 4096;
    graph_context_.reset(ggml_init(
        {ggml_tensor_overhead() * max_nodes + ggml_graph_overhead_custom(max_nodes, false), nullptr, true}));
    graph_ = ggml_new_graph_custom(graph_context_.get(), max_nodes, false);
    logits_ = forward();
    ggml_set_output(logits_);
    ggml_build_forward_expand(graph_, logits_);
    for (int i = 0; i < ggml_graph_n_nodes(graph_); ++i) {
      ggml_tensor* node = ggml_graph_node(graph_, i);
      if (!ggml_backend_supports_op(backend, node)) {
        throw std::runtime_error(std::string("this backend has no ") + ggml_op_desc(node));
      }
    }
    allocator_.reset(ggml_gallocr_new(ggml_backend_get_default_buffer_type(backend)));
    if (!ggml_gallocr_alloc_graph(allocator_.get(), graph_)) {
      throw std::runtime_error("the activations don't fit into the device's memory");
    }
  }

  // Upload, compute and download: what Vitrine's time covers, too.
  peer::Tensor run() {
    ggml_backend_tensor_set(input_, image_.values.data(), 0, image_.values.size() * 4);
    if (ggml_backend_graph_compute(backend_, graph_) != GGML_STATUS_SUCCESS) {
      throw std::runtime_error("ggml could not compute the graph");
    }
    peer::Tensor out{{batch_, logits_->ne[0]},
                     std::vector<float>(static_cast<size_t>(ggml_nelements(logits_)))};
    ggml_backend_tensor_get(logits_, out.values.data(), 0, out.values.size() * 4);
    return out;
  }

  int64_t batch() const { return batch_; }

 private:
  // Only what ggml multiplies may be f16; it wants vectors in f32.
  ggml_type type_of(const std::string& name, const peer::Tensor& tensor) const {
    const bool matrix = tensor.shape.size() >= 2 && name.ends_with("weight");
    return matrix && options_.dtype == "f16" ? GGML_TYPE_F16 : GGML_TYPE_F32;
  }

  void declare(const std::string& name, const peer::Tensor& tensor) {
    std::vector<int64_t> ne(tensor.shape.rbegin(), tensor.shape.rend());
    ggml_tensor* made = ggml_new_tensor(weights_context_.get(), type_of(name, tensor),
                                        static_cast<int>(ne.size()), ne.data());
    ggml_set_name(made, name.c_str());
    weights_[name] = made;
  }

  void upload(const std::string& name, const peer::Tensor& tensor) {
    ggml_tensor* made = weights_.at(name);
    if (made->type == GGML_TYPE_F32) {
      ggml_backend_tensor_set(made, tensor.values.data(), 0, ggml_nbytes(made));
      return;
    }
    std::vector<ggml_fp16_t> half(tensor.values.size());
    ggml_fp32_to_fp16_row(tensor.values.data(), half.data(), static_cast<int64_t>(half.size()));
    ggml_backend_tensor_set(made, half.data(), 0, ggml_nbytes(made));
  }

  ggml_tensor* weight(const std::string& name) const {
    const auto found = weights_.find(name);
    if (found == weights_.end()) throw std::runtime_error(options_.model + ": has no tensor " + name);
    return found->second;
  }

  ggml_tensor* linear(ggml_tensor* x, const std::string& name) {
    ggml_context* c = graph_context_.get();
    return ggml_add(c, ggml_mul_mat(c, weight(name + ".weight"), x), weight(name + ".bias"));
  }

  ggml_tensor* norm(ggml_tensor* x, const std::string& name) {
    ggml_context* c = graph_context_.get();
    return ggml_add(c, ggml_mul(c, ggml_norm(c, x, options_.eps), weight(name + ".weight")),
                    weight(name + ".bias"));
  }

  ggml_tensor* attention(ggml_tensor* qkv, int64_t tokens) {
    ggml_context* c = graph_context_.get();
    const int64_t head = width_ / heads_;
    const auto part = [&](int64_t index) {  // [head, heads, tokens, batch], in place
      return ggml_view_4d(c, qkv, head, heads_, tokens, batch_, static_cast<size_t>(head) * 4, qkv->nb[1],
                          qkv->nb[1] * static_cast<size_t>(tokens), static_cast<size_t>(index * width_) * 4);
    };
    ggml_tensor* q = ggml_permute(c, part(0), 0, 2, 1, 3);
    ggml_tensor* k = ggml_permute(c, part(1), 0, 2, 1, 3);
    const float scale = 1.0F / std::sqrt(static_cast<float>(head));
    if (options_.attention == "flash") {
      ggml_tensor* v = ggml_permute(c, part(2), 0, 2, 1, 3);
      return ggml_reshape_2d(c, ggml_flash_attn_ext(c, q, k, v, nullptr, scale, 0, 0), width_,
                             tokens * batch_);
    }
    ggml_tensor* v = ggml_cont(c, ggml_permute(c, part(2), 1, 2, 0, 3));
    ggml_tensor* weights = ggml_soft_max_ext(c, ggml_mul_mat(c, k, q), nullptr, scale, 0);
    ggml_tensor* mixed = ggml_permute(c, ggml_mul_mat(c, v, weights), 0, 2, 1, 3);
    return ggml_cont_2d(c, mixed, width_, tokens * batch_);
  }

  ggml_tensor* forward() {
    ggml_context* c = graph_context_.get();
    const int stride = static_cast<int>(patch_);
    ggml_tensor* kernel = weight("patch_embed.proj.weight");
    ggml_tensor* columns = ggml_im2col(c, kernel, input_, stride, stride, 0, 0, 1, 1, true, kernel->type);
    const int64_t patches = columns->ne[1] * columns->ne[2], tokens = patches + 1;
    ggml_tensor* flat = ggml_reshape_2d(c, columns, columns->ne[0], patches * batch_);
    ggml_tensor* embedded =
        ggml_add(c, ggml_mul_mat(c, ggml_reshape_2d(c, kernel, columns->ne[0], width_), flat),
                 weight("patch_embed.proj.bias"));
    ggml_tensor* class_token = ggml_repeat_4d(c, weight("cls_token"), width_, 1, batch_, 1);
    ggml_tensor* x = ggml_concat(c, class_token, ggml_reshape_3d(c, embedded, width_, patches, batch_), 1);
    x = ggml_reshape_2d(c, ggml_add(c, x, weight("pos_embed")), width_, tokens * batch_);
    for (int i = 0; i < depth_; ++i) {
      const std::string block = "blocks." + std::to_string(i) + ".";
      ggml_tensor* mixed = attention(linear(norm(x, block + "norm1"), block + "attn.qkv"), tokens);
      x = ggml_add(c, x, linear(mixed, block + "attn.proj"));
      ggml_tensor* hidden = ggml_gelu_erf(c, linear(norm(x, block + "norm2"), block + "mlp.fc1"));
      x = ggml_add(c, x, linear(hidden, block + "mlp.fc2"));
    }
    ggml_tensor* pooled =
        ggml_cont(c, ggml_view_2d(c, x, width_, batch_, x->nb[1] * static_cast<size_t>(tokens), 0));
    return linear(norm(pooled, "norm"), "head");
  }

  ggml_backend_t backend_;
  const Options& options_;
  std::map<std::string, peer::Tensor> checkpoint_;
  const peer::Tensor& image_;
  int64_t batch_ = 0, width_ = 0, patch_ = 0, heads_ = 0;
  int depth_ = 0;
  std::map<std::string, ggml_tensor*> weights_;
  ggml_context_ptr weights_context_, graph_context_;
  ggml_backend_buffer_ptr weights_buffer_;
  ggml_gallocr_ptr allocator_;
  ggml_tensor *input_ = nullptr, *logits_ = nullptr;
  ggml_cgraph* graph_ = nullptr;
};

uint64_t fnv1a(const std::vector<float>& values) {
  uint64_t hash = 0xcbf29ce484222325;
  const auto* bytes = reinterpret_cast<const unsigned char*>(values.data());
  for (size_t i = 0; i < values.size() * 4; ++i) hash = (hash ^ bytes[i]) * 0x100000001b3;
  return hash;
}

void run(const Options& options) {
  const peer::Tensor image = peer::read_npy(options.input);
  if (image.shape.size() != 4)
    throw std::runtime_error(options.input + ": is not [batch, channels, height, width]");
  const ggml_backend_ptr backend = peer::open_backend(options.backend, options.device, options.threads);
  Vit vit(backend.get(), options, image);

  peer::Tensor logits;
  for (int i = 0; i < std::max(options.warmup, 1); ++i) logits = vit.run();
  if (!options.output.empty()) peer::write_npy(options.output, logits);
  std::vector<double> ms;
  for (int i = 0; i < options.iterations; ++i) {
    const auto start = std::chrono::steady_clock::now();
    logits = vit.run();
    ms.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
  }
  std::sort(ms.begin(), ms.end());
  char checksum[17];
  std::snprintf(checksum, sizeof checksum, "%016llx", static_cast<unsigned long long>(fnv1a(logits.values)));
  nlohmann::ordered_json line{
      {"peer", "ggml-" + options.backend},
      {"arch", options.arch},
      {"batch", vit.batch()},
      {"dtype", options.dtype},
      {"device", ggml_backend_dev_description(ggml_backend_get_device(backend.get()))}};
  if (!ms.empty()) {
    const size_t middle = ms.size() / 2;
    line["median_ms"] = ms.size() % 2 ? ms[middle] : (ms[middle - 1] + ms[middle]) / 2;
    line["min_ms"] = ms.front();
    line["max_ms"] = ms.back();
  }
  line["checksum"] = checksum;
  line["version"] = std::string("ggml ") + ggml_version() + ", " + options.attention + " attention";
  std::cout << line.dump() << "\n";
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("times a ViT forward pass on ggml");
  app.add_option("--backend", options.backend)->check(CLI::IsMember({"vulkan", "cpu"}));
  app.add_option("--device", options.device, "number of the Vulkan device");
  app.add_option("--model", options.model, "timm-named .safetensors, F32")->required();
  app.add_option("--input", options.input, "float32 [B,C,H,W] .npy")->required();
  app.add_option("--output", options.output, "writes the logits here");
  app.add_option("--arch", options.arch, "a name for the JSON line");
  app.add_option("--dtype", options.dtype, "of the weight matrices")->check(CLI::IsMember({"f32", "f16"}));
  app.add_option("--attention", options.attention)->check(CLI::IsMember({"flash", "plain"}));
  app.add_option("--heads", options.heads, "0: width / 64");
  app.add_option("--eps", options.eps, "LayerNorm's");
  app.add_option("--warmup", options.warmup);
  app.add_option("--iterations", options.iterations, "0: logits only");
  app.add_option("--threads", options.threads, "of the cpu backend");
  CLI11_PARSE(app, argc, argv);
  peer::log_errors_only();
  try {
    run(options);
  } catch (const std::exception& error) {
    std::cerr << "ggml_vit: " << error.what() << "\n";
    return 1;
  }
  return 0;
}
