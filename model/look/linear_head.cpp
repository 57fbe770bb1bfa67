#include "model/look/linear_head.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "model/families/families.h"
#include "model/files/file_dtype.h"
#include "model/files/tensor_files.h"
#include "runtime/ops/products/matmul.h"
#include "runtime/util/error.h"
#include "runtime/util/text.h"

namespace vitrine {
namespace {

[[noreturn]] void fail(const std::filesystem::path& path, const std::string& found) {
  throw Error(ErrorCode::bad_file,
              shown(path) + ": " + found +
                  ", expected a linear head as DINOv2 or DINOv3 saves it: "
                  "conv_seg.weight, conv_depth.weight or conv.weight and what belongs to it");
}

// A head's own tensors, by their names behind what stands in front of all of them.
class HeadFile {
 public:
  explicit HeadFile(const std::filesystem::path& path) : path_(path), files_(path) {
    for (const StoredTensor& tensor : files_.tensors()) {
      const std::string& name = tensor.info->name;
      for (const char* end : {"conv_seg.weight", "conv_depth.weight", "conv.weight"}) {
        if (name != end && !name.ends_with(std::string(".") + end)) continue;
        if (!layer_.empty()) fail(path_, "found '" + layer_ + "' and '" + name + "'");
        layer_ = name;
        prefix_ = name.substr(0, name.size() - std::strlen(end));
        kind_ = std::string(end).substr(0, std::strlen(end) - std::strlen(".weight"));
      }
    }
    if (layer_.empty()) fail(path_, "found none of its layers");
  }

  const std::string& kind() const { return kind_; }
  bool is_dinov2() const { return prefix_.ends_with("decode_head."); }
  const StoredTensor* find(const std::string& name) {
    const StoredTensor* found = files_.find(prefix_ + name);
    if (found) known_.push_back(found->info->name);
    return found;
  }
  // Of so many numbers, whatever the axes of length 1 behind them.
  std::vector<float> numbers(const std::string& name, std::span<const uint64_t> shape) {
    const StoredTensor* found = find(name);
    if (!found) fail(path_, "found no '" + prefix_ + name + "'");
    std::vector<uint64_t> stored = found->info->shape;
    while (stored.size() > shape.size() && stored.back() == 1) stored.pop_back();
    if (!std::ranges::equal(stored, shape)) {
      fail(path_, "'" + prefix_ + name + "' has shape " + shape_text(found->info->shape) + " where " +
                      shape_text(shape) + " belongs");
    }
    if (!is_float_weight(found->info->dtype))
      fail(path_, "'" + prefix_ + name + "' is of type " + std::string(name_of(found->info->dtype)));
    std::vector<float> values = found->floats();
    if (!std::ranges::all_of(values, [](float value) { return std::isfinite(value); }))
      fail(path_, "'" + prefix_ + name + "' isn't finite");
    return values;
  }
  // What else stands beside the layer says that it isn't all.
  void require_nothing_else() const {
    for (const StoredTensor& tensor : files_.tensors()) {
      const std::string& name = tensor.info->name;
      const bool counts = name.ends_with(".num_batches_tracked");
      if (!counts && name.starts_with(prefix_) && std::ranges::find(known_, name) == known_.end())
        fail(path_, "'" + name + "' is left over, so this is a head of more than one layer");
    }
  }

 private:
  std::filesystem::path path_;
  TensorFiles files_;
  std::string layer_, prefix_, kind_;
  std::vector<std::string> known_;
};

class HeadConstants final : public ConstantSource {
 public:
  explicit HeadConstants(const LinearHead& head) : head_(head) {}
  ConstantParts find(const std::string& name, const Shape&, DType) override {
    return {{DType::f32, std::as_bytes(std::span(name == "weight" ? head_.weight : head_.bias))}};
  }

 private:
  const LinearHead& head_;
};

// Where a place of the larger extent lies between two of the smaller.
struct Between {
  uint64_t first, second;
  float share;  // of the second
};
std::vector<Between> places(uint64_t from, uint64_t to) {
  const double step = static_cast<double>(from) / static_cast<double>(to);
  std::vector<Between> all;
  for (uint64_t i = 0; i < to; ++i) {
    const double at = std::max(0.0, (static_cast<double>(i) + 0.5) * step - 0.5);
    const uint64_t first = std::min(static_cast<uint64_t>(at), from - 1);
    all.push_back(
        {first, std::min(first + 1, from - 1), static_cast<float>(at - static_cast<double>(first))});
  }
  return all;
}

// Calls `take` with the vector of every place, row by row; nothing larger than one vector is made.
template <typename Take>
void for_each_place(std::span<const float> rows, Extent from, Extent to, const Take& take) {
  const size_t width = rows.size() / (from.height * from.width);
  const std::vector<Between> down = places(from.height, to.height), across = places(from.width, to.width);
  std::vector<float> line(from.width * width), vector(width);
  for (const Between& y : down) {
    const float* above = rows.data() + y.first * from.width * width;
    const float* below = rows.data() + y.second * from.width * width;
    for (size_t i = 0; i < line.size(); ++i) line[i] = above[i] + (below[i] - above[i]) * y.share;
    for (const Between& x : across) {
      const float* left = line.data() + x.first * width;
      const float* right = line.data() + x.second * width;
      for (size_t i = 0; i < width; ++i) vector[i] = left[i] + (right[i] - left[i]) * x.share;
      take(vector);
    }
  }
}

}  // namespace

LinearHead read_linear_head(const std::filesystem::path& path) {
  HeadFile file(path);
  LinearHead head;
  head.task = file.kind() == "conv_depth" ? LinearHead::Task::depth : LinearHead::Task::classes;
  head.family = file.is_dinov2() ? LinearHead::Family::dinov2 : LinearHead::Family::dinov3;
  const std::vector<uint64_t> shape = file.find(file.kind() + ".weight")->info->shape;
  if (shape.size() < 2 || shape[0] == 0 || shape[1] == 0)
    fail(path, "'" + file.kind() + ".weight' has shape " + shape_text(shape));
  head.outputs = shape[0];
  head.inputs = shape[1];
  head.weight = file.numbers(file.kind() + ".weight", std::vector{head.outputs, head.inputs});
  head.bias = file.numbers(file.kind() + ".bias", std::vector{head.outputs});
  for (const std::string norm : {"bn.", "batchnorm_layer."}) {
    if (!file.find(norm + "running_mean")) continue;
    const std::vector<uint64_t> each{head.inputs};
    const std::vector<float> mean = file.numbers(norm + "running_mean", each),
                             variance = file.numbers(norm + "running_var", each),
                             scale = file.numbers(norm + "weight", each),
                             shift = file.numbers(norm + "bias", each);
    // (x - mean) / sqrt(variance + eps) * scale + shift, with PyTorch's own eps.
    std::vector<double> bias(head.bias.begin(), head.bias.end());
    for (uint64_t in = 0; in < head.inputs; ++in) {
      const double factor =
          static_cast<double>(scale[in]) / std::sqrt(static_cast<double>(variance[in]) + 1e-5);
      const double offset = static_cast<double>(shift[in]) - static_cast<double>(mean[in]) * factor;
      for (uint64_t out = 0; out < head.outputs; ++out) {
        float& weight = head.weight[out * head.inputs + in];
        bias[out] += static_cast<double>(weight) * offset;
        weight = static_cast<float>(static_cast<double>(weight) * factor);
      }
    }
    std::ranges::transform(bias, head.bias.begin(), [](double value) { return static_cast<float>(value); });
  }
  file.require_nothing_else();
  return head;
}

HeadInput head_input(const LinearHead& head, const ViTConfig& config, const HeadChoice& choice) {
  const auto refuse = [&](const std::string& what) { throw Error(ErrorCode::bad_file, "the head " + what); };
  const bool depth = head.task == LinearHead::Task::depth;
  HeadInput input{.layers = choice.layers, .norm = choice.norm.value_or(!depth)};
  const uint64_t width = input.norm ? config.result_width() : config.dim;
  // DINOv2's depth heads see the class token beside every patch; DINOv3's where they are twice as wide.
  const auto blocks = [&](uint64_t each) { return head.inputs % each == 0 ? head.inputs / each : 0; };
  const uint64_t plain = blocks(width), beside = blocks(2 * width);
  const auto fits = [&](uint64_t count) {
    return count != 0 && (input.layers.empty() ? count == 1 || count == 4 : count == input.layers.size());
  };
  if (head.family == LinearHead::Family::dinov2) {
    input.class_token = depth;
  } else {
    input.class_token = depth && !fits(plain) && fits(beside);
  }
  const uint64_t count = input.class_token ? beside : plain;
  if (input.class_token && (!config.class_token || config.neck))
    refuse("sees a class token, which this model hasn't");
  if (!fits(count)) {
    refuse("takes " + std::to_string(head.inputs) + " numbers a patch, expected " +
           std::to_string((input.class_token ? 2 : 1) * width) + " of each of " +
           (input.layers.empty() ? std::string("1 or 4 blocks; name its own with --layer")
                                 : counted(input.layers.size(), "block")));
  }
  if (input.layers.empty() && count == 1) input.layers = {config.depth - 1};
  if (input.layers.empty()) {
    if (!depth)
      refuse("sees four blocks and doesn't say which: --layer with the last four (-4,-3,-2,-1), say");
    if (config.depth < 4) refuse("sees four blocks, and the model has " + std::to_string(config.depth));
    for (uint64_t i = 1; i <= 4; ++i) input.layers.push_back(i * (config.depth / 4) - 1);
    if (config.depth == 24) input.layers[0] = 4;  // as both have it in print
  }
  if (!choice.norm && depth && head.family == LinearHead::Family::dinov3) {
    refuse(
        "doesn't say whether it sees features behind the model's last norm: --norm, as is DINOv3's habit, or "
        "--no-norm");
  }
  return input;
}

std::vector<float> head_logits(PipelineStore& pipelines, const LinearHead& head, const HeadInput& input,
                               const DenseFeatures& dense, const Executable& executable) {
  const uint64_t width = dense.width();
  std::vector<std::vector<float>> maps, tokens;
  for (const uint64_t layer : input.layers) {
    maps.push_back(dense.map(executable, layer));
    if (input.class_token) tokens.push_back(dense.prefix(executable, layer));
  }
  const uint64_t patches = maps.front().size() / width;
  std::vector<float> rows;
  rows.reserve(patches * head.inputs);
  for (uint64_t patch = 0; patch < patches; ++patch) {
    for (size_t i = 0; i < maps.size(); ++i) {
      const auto own = maps[i].begin() + static_cast<std::ptrdiff_t>(patch * width);
      rows.insert(rows.end(), own, own + static_cast<std::ptrdiff_t>(width));
      if (input.class_token)
        rows.insert(rows.end(), tokens[i].begin(), tokens[i].begin() + static_cast<std::ptrdiff_t>(width));
    }
  }
  const auto graph = std::make_shared<Graph>();
  const ValueId x = graph->input("x", {patches, head.inputs});
  const ValueId weight = graph->constant("weight", {head.outputs, head.inputs});
  const ValueId bias = graph->constant("bias", {head.outputs});
  graph->output(matmul(*graph, "head", x, weight, {.bias = bias}), "logits");
  HeadConstants constants(head);
  WeightStore weights(pipelines, constants);
  Executable run(weights, make_plan(graph, pipelines.device().capabilities(), {}));
  std::ranges::copy(std::as_bytes(std::span(rows)), run.input(0).begin());
  run.run();
  std::vector<float> logits(patches * head.outputs);
  std::memcpy(logits.data(), run.output(0).data(), logits.size() * sizeof(float));
  return logits;
}

std::vector<float> resized(std::span<const float> rows, Extent from, Extent to) {
  std::vector<float> all;
  all.reserve(rows.size() / (from.height * from.width) * to.height * to.width);
  for_each_place(rows, from, to, [&](const std::vector<float>& vector) {
    all.insert(all.end(), vector.begin(), vector.end());
  });
  return all;
}

std::vector<uint32_t> classes_of(std::span<const float> logits, Extent grid, Extent size) {
  std::vector<uint32_t> classes;
  classes.reserve(size.height * size.width);
  for_each_place(logits, grid, size, [&](const std::vector<float>& vector) {
    classes.push_back(static_cast<uint32_t>(std::ranges::max_element(vector) - vector.begin()));
  });
  return classes;
}

std::vector<float> depths_of(const LinearHead& head, std::span<const float> logits, Extent grid, Extent size,
                             DepthRange range) {
  // DINOv2 resizes the features first, which comes to the same as resizing what one layer makes of them.
  constexpr uint64_t enlarged = 4;
  const Extent places = head.family == LinearHead::Family::dinov2
                            ? Extent{enlarged * grid.height, enlarged * grid.width}
                            : grid;
  const double step =
      head.outputs > 1 ? (range.most - range.least) / static_cast<double>(head.outputs - 1) : 0;
  std::vector<float> depths;
  for_each_place(logits, grid, places, [&](const std::vector<float>& vector) {
    constexpr double floor = 0.1;  // so that no place is without a distance
    double sum = 0, weights = 0;
    for (size_t bin = 0; bin < vector.size(); ++bin) {
      const double weight = std::max(static_cast<double>(vector[bin]), 0.0) + floor;
      sum += weight * (range.least + step * static_cast<double>(bin));
      weights += weight;
    }
    const double regressed = std::max(static_cast<double>(vector[0]), 0.0) + range.least;
    depths.push_back(static_cast<float>(head.outputs > 1 ? sum / weights : std::min(regressed, range.most)));
  });
  return resized(depths, places, size);
}

}  // namespace vitrine
