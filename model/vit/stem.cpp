#include "model/vit/stem.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "runtime/ops/elementwise/binary.h"
#include "runtime/ops/elementwise/unary.h"
#include "runtime/ops/maps/group_norm.h"
#include "runtime/ops/maps/neighbourhoods.h"
#include "runtime/ops/maps/pool_windows.h"

namespace vitrine {
namespace {

// Of batch norms and group norms, and of the variance of a standardised weight.
constexpr double norm_eps = 1e-5, weight_eps = 1e-8;

bool standardises(const ViTConfig& c) { return c.stem == Stem::bit; }

std::string stage_path(const ViTConfig& c, uint64_t stage, uint64_t block) {
  return c.stem == Stem::bit ? "stages." + std::to_string(stage) + ".blocks." + std::to_string(block)
                             : "layer" + std::to_string(stage + 1) + "." + std::to_string(block);
}

// Where a block's shortcut is a convolution, which is where it changes the channels.
std::string shortcut_path(const ViTConfig& c, const std::string& block) {
  return block + (c.stem == Stem::bit ? ".downsample.conv" : ".downsample.1");
}

uint64_t halved(uint64_t size) { return (size + 1) / 2; }

class LayerList {
 public:
  explicit LayerList(const ViTConfig& c) : c_(c), height_(c.image_height), width_(c.image_width) {
    if (c.stem == Stem::none) return;
    if (c.stem == Stem::convolutions) {
      add("0.conv", "0.bn", c.channels, c.stem_width, 4, 4);
      add("1.conv", "1.bn", c.stem_width, c.stem_width, 2, 2);
      return;
    }
    if (c.stem == Stem::bit) {
      const std::string at = c.stem_stages() == 0 ? "" : "stem.";
      add(at + "conv", at + "norm", c.channels, c.stem_width, 7, 2);
    } else {
      add("conv1.0", "conv1.1", c.channels, c.stem_width / 2, 3, 2);
      add("conv1.3", "conv1.4", c.stem_width / 2, c.stem_width / 2, 3, 1);
      add("conv1.6", "bn1", c.stem_width / 2, c.stem_width, 3, 1);
    }
    height_ = halved(height_);  // the pool
    width_ = halved(width_);
    uint64_t in = c.stem_width;
    for (uint64_t stage = 0; stage < c.stem_stages(); ++stage) {
      for (uint64_t block = 0; block < c.stem_blocks[stage]; ++block) in = add_bottleneck(stage, block, in);
    }
  }
  std::vector<StemLayer> take() { return std::move(layers_); }

 private:
  void add(const std::string& at, const std::string& norm, uint64_t in, uint64_t out, uint64_t kernel,
           uint64_t stride) {
    layers_.push_back({at, norm, in, out, kernel, stride, height_, width_});
    height_ = (height_ + stride - 1) / stride;
    width_ = (width_ + stride - 1) / stride;
  }

  uint64_t add_bottleneck(uint64_t stage, uint64_t block, uint64_t in) {
    const bool bit = c_.stem == Stem::bit;
    const std::string at = stage_path(c_, stage, block);
    const uint64_t width = c_.stem_width << stage, stride = stage > 0 && block == 0 ? 2 : 1;
    const auto norm = [&](char number) { return at + (bit ? ".norm" : ".bn") + number; };
    if (block == 0) {
      const uint64_t height = height_, columns = width_;
      // ResNet-D's has a mean of 2 x 2 pixels in front, and no stride.
      if (!bit && stride == 2) height_ = halved(height_), width_ = halved(width_);
      add(shortcut_path(c_, at), at + (bit ? ".downsample.norm" : ".downsample.2"), in, 4 * width, 1,
          bit ? stride : 1);
      height_ = height;
      width_ = columns;
    }
    add(at + ".conv1", norm('1'), in, width, 1, 1);
    add(at + ".conv2", norm('2'), width, width, 3, stride);
    add(at + ".conv3", norm('3'), width, 4 * width, 1, 1);
    return 4 * width;
  }

  const ViTConfig& c_;
  uint64_t height_, width_;
  std::vector<StemLayer> layers_;
};

Windows windows_of(const ViTConfig& c, const StemLayer& layer) {
  if (c.stem == Stem::bit) return same_windows(layer.height, layer.width, layer.kernel, layer.stride);
  // Those without an overlap have no padding either.
  const uint64_t padding = layer.kernel > layer.stride ? layer.kernel / 2 : 0;
  return padded_windows(layer.height, layer.width, layer.kernel, layer.stride, padding);
}

// [out, in, kernel, kernel] as a product's weight; each output's times its factor, less its shift first.
std::vector<float> as_rows(const std::vector<float>& weight, const Shape& shape,
                           const std::vector<double>& shift, const std::vector<double>& factor) {
  const uint64_t in = shape[1], taps = shape[2] * shape[3];
  std::vector<float> rows(weight.size());
  for (uint64_t o = 0; o < shape[0]; ++o) {
    for (uint64_t tap = 0; tap < taps; ++tap) {
      for (uint64_t i = 0; i < in; ++i) {
        const double value = static_cast<double>(weight[(o * in + i) * taps + tap]);
        rows[(o * taps + tap) * in + i] = static_cast<float>((value - shift[o]) * factor[o]);
      }
    }
  }
  return rows;
}

Parameter stem_parameter(const std::string& name, Leaf leaf, Shape shape) {
  return {.name = name, .module = Module::stem, .leaf = leaf, .shape = shape};
}

// The mean, and one over the deviation, of each output's weights.
std::pair<std::vector<double>, std::vector<double>> moments_of(const std::vector<float>& weight,
                                                               uint64_t outputs) {
  const uint64_t each = weight.size() / outputs;
  std::vector<double> means(outputs), factors(outputs);
  for (uint64_t o = 0; o < outputs; ++o) {
    const auto row = std::span(weight).subspan(o * each, each);
    double variance = 0;
    for (const float value : row) means[o] += static_cast<double>(value) / static_cast<double>(each);
    for (const float value : row) variance += std::pow(static_cast<double>(value) - means[o], 2);
    factors[o] = 1 / std::sqrt(variance / static_cast<double>(each) + weight_eps);
  }
  return {means, factors};
}

// By how much a batch norm multiplies each channel.
std::vector<double> batch_factors(const std::string& norm, uint64_t channels, const ValuesOf& values_of) {
  const auto gamma = ask(values_of, stem_parameter(norm + ".weight", Leaf::weight, {channels}));
  const auto variance = ask(values_of, stem_parameter(norm + ".running_var", Leaf::whole, {channels}));
  std::vector<double> factors(channels);
  for (uint64_t i = 0; i < channels; ++i)
    factors[i] = static_cast<double>(gamma[i]) / std::sqrt(static_cast<double>(variance[i]) + norm_eps);
  return factors;
}

}  // namespace

std::vector<StemLayer> stem_layers(const ViTConfig& config) { return LayerList(config).take(); }

double stem_multiply_adds(const ViTConfig& config) {
  double total = 0;
  for (const StemLayer& layer : stem_layers(config)) {
    const Windows windows = windows_of(config, layer);
    total += static_cast<double>(windows.rows * windows.columns) *
             static_cast<double>(layer.kernel * layer.kernel * layer.in * layer.out);
  }
  return total;
}

ConvolutionalStem::ConvolutionalStem(const ViTConfig& config, std::string name)
    : ModuleBase(config, std::move(name)), layers_(stem_layers(config)) {
  const bool batch_norms = config.stem != Stem::bit;
  for (const StemLayer& layer : layers_) {
    const uint64_t depth = layer.kernel * layer.kernel * layer.in;
    declare(Module::stem_kernel, Leaf::whole, layer.at, {layer.out, depth});
    parameters_.back().fixed = true;
    if (batch_norms) {
      declare(Module::stem_shift, Leaf::whole, layer.norm, {layer.out});
      parameters_.back().fixed = true;
    }
    const size_t first = parameters_.size();
    declare(Module::stem, Leaf::weight, layer.at, {layer.out, layer.in, layer.kernel, layer.kernel});
    declare(Module::stem, Leaf::weight, layer.norm, {layer.out});
    declare(Module::stem, Leaf::bias, layer.norm, {layer.out});
    if (batch_norms) {
      declare(Module::stem, Leaf::whole, layer.norm + ".running_mean", {layer.out});
      declare(Module::stem, Leaf::whole, layer.norm + ".running_var", {layer.out});
    }
    for (size_t i = first; i < parameters_.size(); ++i) parameters_[i].aside = true;
  }
}

ConvolutionalStem::Map ConvolutionalStem::layer(GraphBuilder& builder, const std::string& at, const Map& x,
                                                DType dtype, const Behind& behind) const {
  Graph& graph = builder.graph();
  const StemLayer& layer = *std::ranges::find(layers_, at, &StemLayer::at);
  const Windows windows = windows_of(config_, layer);
  const ValueId kernel = constant(builder, layer.at, dtype);
  Map out{.height = windows.rows, .width = windows.columns};
  if (config_.stem == Stem::bit) {
    const ValueId y = convolution(graph, path(layer.at), x.x, kernel, windows, x.planar);
    out.x = group_norm(
        graph, path(layer.norm), y, constant(builder, layer.norm + ".weight", DType::f32),
        constant(builder, layer.norm + ".bias", DType::f32),
        {.groups = stem_groups, .eps = norm_eps, .activation = behind.activation, .out = behind.out});
  } else {
    out.x = convolution(graph, path(layer.at), x.x, kernel, windows, x.planar,
                        {.bias = constant(builder, layer.norm, DType::f32),
                         .activation = behind.activation,
                         .out = behind.out});
  }
  return out;
}

ConvolutionalStem::Map ConvolutionalStem::pooled(GraphBuilder& builder, const Map& x) const {
  const Windows windows = config_.stem == Stem::bit ? same_windows(x.height, x.width, 3, 2)
                                                    : padded_windows(x.height, x.width, 3, 2, 1);
  return {.x = largest_of_windows(builder.graph(), path("pool"), x.x, windows),
          .height = windows.rows,
          .width = windows.columns};
}

// What goes around the block stays in f32, as around the model's other blocks.
ConvolutionalStem::Map ConvolutionalStem::bottleneck(GraphBuilder& builder, uint64_t stage, uint64_t block,
                                                     const Map& x, DType dtype) const {
  Graph& graph = builder.graph();
  const std::string at = stage_path(config_, stage, block);
  const Behind inside{.activation = Activation::relu, .out = dtype};
  Map shortcut = x;
  if (block == 0) {
    if (config_.stem == Stem::resnet && stage > 0) {
      const Windows windows = covering_windows(x.height, x.width, 2, 2);
      shortcut = {.x = mean_of_windows(graph, path(at + ".downsample.0"), x.x, windows),
                  .height = windows.rows,
                  .width = windows.columns};
    }
    shortcut = layer(builder, shortcut_path(config_, at), shortcut, dtype, {});
  }
  Map y = layer(builder, at + ".conv1", x, dtype, inside);
  y = layer(builder, at + ".conv2", y, dtype, inside);
  y = layer(builder, at + ".conv3", y, dtype, {});
  y.x = add(graph, path(at + ".add"), shortcut.x, y.x);
  y.x = activate(graph, path(at + ".activation"), y.x, Activation::relu);
  return y;
}

ValueId ConvolutionalStem::operator()(GraphBuilder& builder, ValueId image, DType dtype) const {
  Map x{image, config_.image_height, config_.image_width, true};
  if (config_.stem == Stem::convolutions) {
    for (const StemLayer& each : layers_)
      x = layer(builder, each.at, x, dtype, {.activation = Activation::gelu, .out = dtype});
    return x.x;
  }
  const size_t in_front = config_.stem == Stem::resnet ? 3 : 1;  // of the pool
  for (size_t i = 0; i < in_front; ++i) {
    const DType out = i + 1 < in_front ? dtype : DType::f32;
    x = layer(builder, layers_[i].at, x, dtype, {.activation = Activation::relu, .out = out});
  }
  x = pooled(builder, x);
  for (uint64_t stage = 0; stage < config_.stem_stages(); ++stage) {
    for (uint64_t block = 0; block < config_.stem_blocks[stage]; ++block)
      x = bottleneck(builder, stage, block, x, dtype);
  }
  return x.x;
}

std::vector<float> kernel_rows(const std::vector<float>& weight, const Shape& shape) {
  return as_rows(weight, shape, std::vector<double>(shape[0]), std::vector<double>(shape[0], 1.0));
}

std::vector<float> stem_values(const Parameter& parameter, const ViTConfig& c, const ValuesOf& values_of) {
  const std::string& name = parameter.name;
  const auto is = [&](const std::string& at) {
    return name.ends_with(at) && (name.size() == at.size() || name[name.size() - at.size() - 1] == '.');
  };
  const uint64_t outputs = parameter.shape[0];
  for (const StemLayer& layer : stem_layers(c)) {
    const auto beside = [&](const std::string& from, const std::string& to) {
      return name.substr(0, name.size() - from.size()) + to;
    };
    if (parameter.module == Module::stem_shift && is(layer.norm)) {
      const std::vector<double> factors = batch_factors(name, outputs, values_of);
      std::vector<float> shift = ask(values_of, stem_parameter(name + ".bias", Leaf::bias, {outputs}));
      const auto means = ask(values_of, stem_parameter(name + ".running_mean", Leaf::whole, {outputs}));
      for (uint64_t i = 0; i < outputs; ++i)
        shift[i] =
            static_cast<float>(static_cast<double>(shift[i]) - static_cast<double>(means[i]) * factors[i]);
      return shift;
    }
    if (parameter.module != Module::stem_kernel || !is(layer.at)) continue;
    const Shape shape{layer.out, layer.in, layer.kernel, layer.kernel};
    const auto weight = ask(values_of, stem_parameter(name + ".weight", Leaf::weight, shape));
    if (!standardises(c))
      return as_rows(weight, shape, std::vector<double>(outputs),
                     batch_factors(beside(layer.at, layer.norm), outputs, values_of));
    const auto [means, factors] = moments_of(weight, outputs);
    return as_rows(weight, shape, means, factors);
  }
  // The patches'.
  const uint64_t stride = c.stem_stride();
  const Shape shape{c.dim, c.stem_channels(), c.patch_height / stride, c.patch_width / stride};
  return kernel_rows(
      ask(values_of,
          {.name = name + ".weight", .module = Module::patch, .leaf = Leaf::weight, .shape = shape}),
      shape);
}

}  // namespace vitrine
