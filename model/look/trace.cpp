#include "model/look/trace.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "model/vit/vision_transformer.h"
#include "runtime/ops/attention/plain_attention.h"
#include "runtime/ops/elementwise/convert.h"
#include "runtime/ops/moves/slice.h"

namespace vitrine {
namespace {

using Tensors = std::map<std::string, Tensor>;
using Indices = std::vector<uint64_t>;

constexpr uint64_t shown = 3;  // heads, tokens, images: the first three

// Which values of a step are shown: along each of its axes.
using Selection = std::vector<Indices>;

Indices first(uint64_t size) {
  Indices all(std::min(size, shown));
  std::iota(all.begin(), all.end(), uint64_t{0});
  return all;
}
Indices every(uint64_t size) {
  Indices all(size);
  std::iota(all.begin(), all.end(), uint64_t{0});
  return all;
}
// The second, where there are two.
Indices second(uint64_t size) { return {std::min<uint64_t>(size - 1, 1)}; }
// The first three and the last three, as PyTorch prints large tensors.
Indices edges(uint64_t size) {
  Indices all;
  for (uint64_t i = 0; i < size; ++i) {
    if (i < shown || i + shown >= size) all.push_back(i);
  }
  return all;
}

std::string count_of(const Indices& indices, const std::string& one) {
  return indices.size() == 1 ? "the first " + one
                             : "the first " + std::to_string(indices.size()) + " " + one + "s";
}

std::string list_of(const Indices& indices) {
  std::string text;
  for (const uint64_t i : indices) text += (text.empty() ? "" : ", ") + std::to_string(i);
  return text;
}

// The selected values in order; the last axis of a selection of one is left out of the shape, as PyTorch
// leaves out an axis that is indexed by a number.
template <typename At>
TraceSlice select(const Selection& selection, bool drop_last, At&& at) {
  TraceSlice slice;
  std::vector<uint64_t> dims, place(selection.size());
  uint64_t count = 1;
  for (const Indices& indices : selection) {
    dims.push_back(indices.size());
    count *= indices.size();
  }
  for (uint64_t flat = 0; flat < count; ++flat) {
    uint64_t rest = flat;
    for (size_t axis = selection.size(); axis-- > 0;) {
      place[axis] = selection[axis][rest % dims[axis]];
      rest /= dims[axis];
    }
    slice.values.push_back(at(place));
  }
  if (drop_last) dims.pop_back();
  slice.shape = Shape(std::span<const uint64_t>(dims));
  return slice;
}

// [..., :3, :3, 1] of a tensor [B, heads, N, width] whose head h lies in the columns from offset + h * width
// on of `rows`.
TraceSlice slice_of_heads(const Tensor& rows, uint64_t heads, uint64_t offset, uint64_t width) {
  const uint64_t batch = rows.shape[0], count = rows.shape[1], columns = rows.shape[2];
  const Selection selection{every(batch), first(heads), first(count), second(width)};
  TraceSlice slice = select(selection, true, [&](const std::vector<uint64_t>& p) {
    return rows.values[(p[0] * count + p[2]) * columns + offset + p[1] * width + p[3]];
  });
  const std::string channel = std::to_string(selection[3][0]);
  slice.index = "[..., :3, :3, " + channel + "]";
  slice.meaning =
      count_of(selection[1], "head") + " x " + count_of(selection[2], "token") + " at channel " + channel;
  return slice;
}

// [..., :3, :3, 1] of scores [B, heads, N, N], of which the first rows (queries) are given.
TraceSlice slice_of_scores(const Tensor& scores) {
  const uint64_t heads = scores.shape[1], rows = scores.shape[2], keys = scores.shape[3];
  const Selection selection{every(scores.shape[0]), first(heads), first(rows), second(keys)};
  TraceSlice slice = select(selection, true, [&](const std::vector<uint64_t>& p) {
    return scores.values[((p[0] * heads + p[1]) * rows + p[2]) * keys + p[3]];
  });
  const std::string key = std::to_string(selection[3][0]);
  slice.index = "[..., :3, :3, " + key + "]";
  slice.meaning =
      count_of(selection[1], "head") + " x " + count_of(selection[2], "query token") + " at key token " + key;
  return slice;
}

float at_row(const Tensor& rows, const std::vector<uint64_t>& p) {
  return rows.values[(p[0] * rows.shape[1] + p[1]) * rows.shape[2] + p[2]];
}

// [..., :3, :3, 1] of tokens [B, N, D]. There is no axis left of these three for the dots to stand for, so
// that the index means the first images, the first tokens and one channel.
TraceSlice slice_of_tokens(const Tensor& rows) {
  const Selection selection{first(rows.shape[0]), first(rows.shape[1]), second(rows.shape[2])};
  TraceSlice slice = select(selection, true, [&](const auto& p) { return at_row(rows, p); });
  const std::string channel = std::to_string(selection[2][0]);
  slice.index = "[..., :3, :3, " + channel + "]";
  slice.meaning =
      count_of(selection[0], "image") + " x " + count_of(selection[1], "token") + " at channel " + channel;
  return slice;
}

TraceSlice edges_of_tokens(const Tensor& rows) {
  const Selection selection{every(rows.shape[0]), edges(rows.shape[1]), edges(rows.shape[2])};
  TraceSlice slice = select(selection, false, [&](const auto& p) { return at_row(rows, p); });
  slice.index = "[:, [" + list_of(selection[1]) + "]][..., [" + list_of(selection[2]) + "]]";
  slice.meaning = "tokens " + list_of(selection[1]) + " x channels " + list_of(selection[2]);
  return slice;
}

// Makes a value an output, in f32.
class Exposer {
 public:
  Exposer(GraphBuilder& builder, const std::string& branch) : graph_(builder.graph()), branch_(branch) {}
  void operator()(ValueId value, const std::string& name) {
    value = convert(graph_, "trace." + branch_ + name + ".convert", value, DType::f32);
    graph_.output(value, branch_ + name);
  }

 private:
  Graph& graph_;
  const std::string& branch_;
};

// What stands in front of the names of a branch's steps.
std::string branch_name(const ViTConfig& c, uint64_t branch) {
  return c.branches == 1 ? "" : "attns." + std::to_string(branch) + ".";
}

// `result` is an output already, as it is.
void expose_attention(GraphBuilder& builder, const Attention& attention, const AttentionValues& values,
                      ValueId result, const std::string& branch = {}) {
  Graph& graph = builder.graph();
  Exposer expose(builder, branch);
  const uint64_t tokens = graph.value(values.q).shape[1];
  // A bias by relative positions goes by the places of all tokens, so that all rows are computed.
  const bool all = values.options.bias || values.options.bias_rows;
  const auto first_rows = [&](const char* node, ValueId x, int axis) {
    return slice(graph, "trace." + branch + node, x, axis, 0, std::min(tokens, shown));
  };
  const ValueId rows = all ? values.q : first_rows("rows", values.q, 1);
  const PlainAttentionResult plain =
      plain_attention(graph, "trace." + branch + "scores", rows, values.k, values.v, values.options);
  expose(all ? first_rows("score_rows", plain.scores, 2) : plain.scores, "scores");
  expose(all ? first_rows("weight_rows", plain.weights, 2) : plain.weights, "weights");
  if (attention.config().projection && values.out != result)
    expose(attention.project(builder, "trace." + branch + "proj", values.projected), "proj");
  if (values.heads != result) expose(values.heads, "concat");
  if (values.difference) expose(values.difference, "difference");
  expose(values.q, "q");
  if (values.k != values.q) expose(values.k, "k");
  if (values.v != values.q) expose(values.v, "v");
}

const Tensor& found(const Tensors& tensors, const std::string& branch, const char* name,
                    const char* otherwise) {
  const auto at = tensors.find(branch + name);
  return at != tensors.end() ? at->second : tensors.at(branch + otherwise);
}

// The steps from the attention's input (its shape is given) to its projection.
void add_attention_steps(std::vector<TraceStep>& steps, const ViTConfig& c, const Tensors& tensors,
                         const std::string& branch = {}) {
  const size_t before = steps.size();
  const Tensor& q = tensors.at(branch + "q");
  const Tensor &k = found(tensors, branch, "k", "q"), &v = found(tensors, branch, "v", "q");
  const uint64_t batch = q.shape[0], n = q.shape[1], h = c.softmaxes();
  const uint64_t dk = c.head_key_width(), dv = c.head_value_width();
  const bool fused = !c.per_head_maps;
  if (fused) {
    steps.push_back({"qkv(x)",
                     "queries, keys and values of all heads side by side",
                     {batch, n, 2 * c.key_columns() + c.value_columns()}});
    if (dk == dv) {
      steps.push_back(
          {"qkv.reshape", "the columns as [q k v, heads, width of a head]", {batch, n, 3, h, dk}});
      steps.push_back({"qkv.permute", "three tensors of heads", {3, batch, h, n, dk}});
    }
  }
  const std::string source = fused ? "" : ", each head's map of its own slice of the token";
  std::string made = source;
  if (c.head_norm) made += ", normalised head by head";
  if (c.rotary != Rotary::none) made += ", turned by the patch's place";
  const std::string bias =
      c.relative_bias == RelativeBias::none ? "" : " + the bias of where patches lie to each other";
  const uint64_t k_at = tensors.contains(branch + "k") ? 0 : c.key_columns();
  const bool differential = c.attention == AttentionKind::differential;
  // Of differential attention, a head's values are there for each of its softmaxes.
  const uint64_t v_at = differential || v.shape[2] == c.value_columns() ? 0 : 2 * c.key_columns();
  if (c.window != 0 && n != c.tokens()) {
    steps.push_back({"windows", "the grid cut into windows, zeros beyond it", {batch, n, c.dim}});
  }
  steps.push_back({"q", "the queries" + made, {batch, h, n, dk}, slice_of_heads(q, h, 0, dk)});
  steps.push_back({"k", "the keys" + made, {batch, h, n, dk}, slice_of_heads(k, h, k_at, dk)});
  steps.push_back({"v",
                   "the values" + source + (differential ? ", for both of a head's softmaxes" : ""),
                   {batch, h, n, dv},
                   slice_of_heads(v, h, v_at, dv)});
  steps.push_back({"k.transpose(-2, -1)", "the keys as columns", {batch, h, dk, n}});
  steps.push_back({"scores",
                   "q @ k.transpose(-2, -1) * " + std::to_string(c.attention_scale()) + bias,
                   {batch, h, n, n},
                   slice_of_scores(tensors.at(branch + "scores"))});
  steps.push_back({"weights",
                   "softmax of each row of the scores",
                   {batch, h, n, n},
                   slice_of_scores(tensors.at(branch + "weights"))});
  const Tensor& concat = found(tensors, branch, "concat", "out");
  if (differential) {
    const Tensor& difference = tensors.at(branch + "difference");
    steps.push_back({"(weights[:, ::2] - share * weights[:, 1::2]) @ v",
                     "what each head gathers",
                     {batch, c.heads, n, dv},
                     slice_of_heads(difference, c.heads, 0, dv)});
    steps.push_back({"concat", "the heads side by side, each normalised and scaled", concat.shape,
                     edges_of_tokens(concat)});
  } else {
    steps.push_back(
        {"weights @ v", "what each head gathers", {batch, h, n, dv}, slice_of_heads(concat, h, 0, dv)});
    steps.push_back({"concat", "the heads side by side", concat.shape, edges_of_tokens(concat)});
  }
  if (c.attention_norm) steps.push_back({"norm(concat)", "each row of these normalised", concat.shape});
  if (c.projection) {
    const Tensor& out = found(tensors, branch, "proj", "out");
    steps.push_back({c.attention_norm ? "proj(norm(concat))" : "proj(concat)", "the heads mixed by W_o",
                     out.shape, slice_of_tokens(out)});
  }
  for (size_t i = before; i < steps.size(); ++i) steps[i].name = branch + steps[i].name;
}

// "class token, 4 registers, patches; positions added"
std::string tokens_text(const ViTConfig& c) {
  std::string text;
  if (c.class_token && c.prefix_in_blocks()) text += "class token, ";
  if (c.distillation_token) text += "distillation token, ";
  if (c.registers) text += std::to_string(c.registers) + " registers, ";
  text += "patches";
  return c.positions == Positions::none ? text : text + "; positions added";
}

Shape shape_of(const Graph& graph, ValueId id) { return graph.value(id).shape; }

// From the attentions' projections to the end of the block.
std::vector<TraceStep> steps_behind(const ViTConfig& c, const std::string& at, const Graph& graph,
                                    const BlockValues& values) {
  const bool parallel = c.block == BlockKind::parallel, several = c.branches > 1;
  const auto added = [&](const std::string& branch, const char* scale, const char* norm) {
    return "the residual, with " +
           (c.post_norm              ? norm + ("(" + branch + ")")
            : scale && c.layer_scale ? scale + (" * " + branch)
                                     : "the " + branch) +
           " added";
  };
  std::vector<TraceStep> steps;
  const Shape tokens = shape_of(graph, values.in);
  if (!parallel) {
    steps.push_back({at + (several ? " + attentions" : " + attention"),
                     added(several ? "attentions" : "attention", "ls1", "norm1"), tokens});
  }
  for (uint64_t i = 0; i < c.branches; ++i) {
    const BlockValues& branch = i == 0 ? values : values.beside[i - 1];
    const std::string mlp = at + (several ? ".ffns." + std::to_string(i) : "");
    if (!c.post_norm && !parallel) {
      steps.push_back(
          {mlp + (several ? ".norm" : ".norm2"), "what the MLP is given", shape_of(graph, branch.normed2)});
    }
    steps.push_back({mlp + ".mlp.fc1", c.mlp == MlpKind::swiglu ? "behind the gate" : "behind the activation",
                     shape_of(graph, branch.mlp.hidden)});
    if (c.mlp_norm)
      steps.push_back(
          {mlp + ".mlp.norm", "each row of these normalised", shape_of(graph, branch.mlp.hidden)});
    steps.push_back({mlp + ".mlp.fc2", "back at the tokens' width", tokens});
  }
  const std::string last = parallel  ? added("(attention + MLP)", "ls1", nullptr)
                           : several ? added("MLPs", c.mlp_scale ? "ls2" : nullptr, nullptr)
                                     : added("MLP", c.mlp_scale ? "ls2" : nullptr, "norm2");
  steps.push_back({at, last + ": what the block returns", tokens});
  return steps;
}

}  // namespace

std::vector<TraceStep> trace_attention(PipelineStore& pipelines, const Attention& attention,
                                       ConstantSource& weights, const Tensor& tokens,
                                       const TraceOptions& options) {
  const auto append = [&](GraphBuilder& builder, ValueId x) {
    const AttentionValues values = attention.values(builder, x);
    expose_attention(builder, attention, values, values.out);
    return values.out;
  };
  ModuleRunner runner(pipelines, append, weights, {.dtype = options.dtype, .plan = options.plan});
  const Tensors tensors = runner.outputs(tokens);
  std::vector<TraceStep> steps{{"x", "the tokens", tokens.shape}};
  add_attention_steps(steps, attention.config(), tensors);
  return steps;
}

std::vector<TraceStep> trace_model(PipelineStore& pipelines, const Model& model, const Tensor& images,
                                   uint64_t layer, const TraceOptions& options) {
  const ViTConfig& c = model.config;
  if (c.attention == AttentionKind::talking_heads) {
    throw Error(ErrorCode::usage,
                "the walk through attention with talking heads is not there yet, expected another model");
  }
  const VisionTransformer transformer(c);
  const std::string at = "blocks." + std::to_string(layer);
  std::vector<TraceStep> before, behind;
  const auto append = [&](GraphBuilder& builder, ValueId image) {
    const Graph& graph = builder.graph();
    const ValueId patches = transformer.patch_embed()(builder, image);
    ValueId x = transformer.assemble(builder, patches);
    const Shape tokens = shape_of(graph, x);
    before = {{"image", "normalised pixels", images.shape},
              {"patch_embed.proj",
               "each patch mapped to a token, laid out as the patches are",
               {images.shape[0], c.dim, c.grid_height(), c.grid_width()}},
              {"flatten(2).transpose(1, 2)", "the patches row by row", shape_of(graph, patches)}};
    if (c.patch_norm)
      before.push_back({"patch_embed.norm", "each token normalised", shape_of(graph, patches)});
    if (c.prefix_in_blocks() || c.positions != Positions::none) {
      before.push_back({"tokens", tokens_text(c), tokens});
    }
    if (c.pre_norm) before.push_back({"norm_pre", "each token normalised", tokens});
    for (uint64_t i = 0; i < layer; ++i) x = transformer.blocks()[i](builder, x);
    if (layer > 0) {
      before.push_back({layer == 1 ? "blocks.0" : "blocks.0 to blocks." + std::to_string(layer - 1),
                        "the blocks before this one", tokens});
    }
    const Block& block = transformer.blocks()[layer];
    const BlockValues values = block.values(builder, x);
    for (uint64_t i = 0; i < c.branches; ++i) {
      const BlockValues& branch = i == 0 ? values : values.beside[i - 1];
      expose_attention(builder, block.attention(i), branch.attention, values.out, branch_name(c, i));
    }
    const bool both = c.block == BlockKind::parallel;
    before.push_back({c.post_norm      ? at
                      : c.branches > 1 ? at + ".attns.*.norm"
                                       : at + ".norm1",
                      both ? "x, what the attention and the MLP are given" : "x, what the attention is given",
                      shape_of(graph, values.normed1)});
    behind = steps_behind(c, at, graph, values);
    return values.out;
  };
  ModuleRunner runner(pipelines, append, *model.constants, {.dtype = options.dtype, .plan = options.plan});
  const Tensors tensors = runner.outputs(images);
  std::vector<TraceStep> steps = std::move(before);
  for (uint64_t i = 0; i < c.branches; ++i) add_attention_steps(steps, c, tensors, branch_name(c, i));
  std::ranges::move(behind, std::back_inserter(steps));
  return steps;
}

}  // namespace vitrine
