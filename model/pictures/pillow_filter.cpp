#include "model/pictures/pillow_filter.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <utility>

#include "shaders/pictures/resample.h"

namespace vitrine {
namespace {

struct Named {
  Filter filter;
  std::string_view name;
  int64_t code;
  double support;
};
constexpr std::array<Named, 6> filters{{{Filter::nearest, "nearest", 0, 0},
                                        {Filter::box, "box", 4, 0.5},
                                        {Filter::bilinear, "bilinear", 2, 1},
                                        {Filter::hamming, "hamming", 5, 1},
                                        {Filter::bicubic, "bicubic", 3, 2},
                                        {Filter::lanczos, "lanczos", 1, 3}}};

double sinc(double x) {
  if (x == 0.0) return 1.0;
  x *= std::numbers::pi;
  return std::sin(x) / x;
}

// The formulas have Pillow's order of operations: another one rounds differently, and a weight on the
// border between two whole numbers would become its neighbour.
double value_at(Filter filter, double x) {
  switch (filter) {
    case Filter::nearest:
      return 1;
    case Filter::box:
      return x > -0.5 && x <= 0.5 ? 1.0 : 0.0;
    case Filter::bilinear:
      x = std::abs(x);
      return x < 1.0 ? 1.0 - x : 0.0;
    case Filter::hamming: {
      x = std::abs(x);
      if (x == 0.0) return 1.0;
      if (x >= 1.0) return 0.0;
      x *= std::numbers::pi;
      // Pillow's constants are floats here.
      return std::sin(x) / x * (static_cast<double>(0.54f) + static_cast<double>(0.46f) * std::cos(x));
    }
    case Filter::bicubic: {
      constexpr double a = -0.5;
      x = std::abs(x);
      if (x < 1.0) return ((a + 2.0) * x - (a + 3.0)) * x * x + 1;
      if (x < 2.0) return (((x - 5) * x + 8) * x - 4) * a;
      return 0.0;
    }
    case Filter::lanczos:
      return -3.0 <= x && x < 3.0 ? sinc(x) * sinc(x / 3) : 0.0;
  }
  return 0;
}

const Named& find(Filter filter) {
  return *std::ranges::find_if(filters, [&](const Named& named) { return named.filter == filter; });
}

// With `digits` behind the binary point, in units of the shaders' precision, which has more: the sums round
// alike.
int32_t fixed_point(double weight, int digits) {
  const double scaled = weight * (1 << digits);
  return static_cast<int32_t>(weight < 0 ? -0.5 + scaled : 0.5 + scaled) *
         (1 << (VITRINE_RESAMPLE_PRECISION - digits));
}

class Builder {
 public:
  explicit Builder(PillowTaps& out) : out_(out) {}

  void empty() { out_.taps.lines.push_back({}); }
  void copy(uint32_t source) {
    begin_line(source);
    add(1 << VITRINE_RESAMPLE_PRECISION);
  }
  void begin_line(uint32_t first) {
    out_.taps.lines.push_back({first, 0, static_cast<uint32_t>(out_.taps.weights.size())});
  }
  void add(int32_t weight) {
    out_.taps.weights.push_back(weight);
    ++out_.taps.lines.back().count;
  }

 private:
  PillowTaps& out_;
};

// Where Pillow's affine transform takes each output pixel from. It adds up the scale, rounding included.
std::vector<uint32_t> nearest_sources(uint32_t from, uint32_t to) {
  const double scale = static_cast<double>(from) / to;
  std::vector<uint32_t> sources(to);
  double at = scale * 0.5;
  for (uint32_t& source : sources) {
    source = std::min(static_cast<uint32_t>(at), from - 1);
    at += scale;
  }
  return sources;
}

// What source pixels from `begin` on have of one line.
struct LineWeights {
  uint32_t begin = 0;
  std::vector<double> weights;
};

void weigh(const Named& named, uint32_t from, uint32_t to, uint32_t line, LineWeights& out) {
  const double scale = static_cast<double>(from) / to;
  const double filter_scale = std::max(scale, 1.0);
  const double support = named.support * filter_scale;
  const double inverse = 1.0 / filter_scale;
  const double center = (line + 0.5) * scale;
  const int begin = std::max(static_cast<int>(center - support + 0.5), 0);
  const int end = std::min(static_cast<int>(center + support + 0.5), static_cast<int>(from));
  out.begin = static_cast<uint32_t>(begin);
  out.weights.clear();
  double sum = 0;
  for (int x = 0; x < end - begin; ++x) {
    out.weights.push_back(value_at(named.filter, (x + begin - center + 0.5) * inverse));
    sum += out.weights.back();
  }
  if (sum == 0.0) return;
  for (double& weight : out.weights) weight /= sum;
}

// How many binary digits weights keep.
int digits_of(Resampler resampler, const Named& named, uint32_t from, uint32_t to) {
  if (resampler == Resampler::pillow) return VITRINE_RESAMPLE_PRECISION;
  double largest = 0;
  LineWeights line;
  for (uint32_t i = 0; i < to; ++i) {
    weigh(named, from, to, i, line);
    for (const double weight : line.weights) largest = std::max(largest, weight);
  }
  int digits = 0;
  while (digits < VITRINE_RESAMPLE_PRECISION && 0.5 + largest * (2 << digits) < 1 << 15) ++digits;
  return digits;
}

}  // namespace

std::string_view name_of(Filter filter) { return find(filter).name; }

std::optional<Filter> filter_named(std::string_view name) {
  for (const Named& named : filters) {
    if (named.name == name) return named.filter;
  }
  return std::nullopt;
}

std::optional<Filter> filter_numbered(int64_t code) {
  for (const Named& named : filters) {
    if (named.code == code) return named.filter;
  }
  return std::nullopt;
}

int64_t number_of(Filter filter) { return find(filter).code; }

std::string_view name_of(Resampler resampler) { return resampler == Resampler::pillow ? "pillow" : "torch"; }

PillowTaps pillow_taps(Filter filter, uint32_t from, uint32_t to, int64_t origin, uint32_t window,
                       Resampler resampler) {
  PillowTaps out;
  Builder builder(out);
  const std::vector<uint32_t> nearest =
      filter == Filter::nearest && from != to ? nearest_sources(from, to) : std::vector<uint32_t>{};
  const bool weighted = filter != Filter::nearest && from != to;
  const int digits = weighted ? digits_of(resampler, find(filter), from, to) : 0;
  LineWeights weights;
  out.taps.begin = static_cast<uint32_t>(std::clamp<int64_t>(-origin, 0, window));
  out.taps.end = static_cast<uint32_t>(std::clamp<int64_t>(int64_t{to} - origin, out.taps.begin, window));
  for (uint32_t i = 0; i < window; ++i) {
    if (i < out.taps.begin || i >= out.taps.end) {
      builder.empty();
      continue;
    }
    const auto line = static_cast<uint32_t>(origin + i);
    if (from == to) {
      builder.copy(line);  // Pillow leaves the pass out
    } else if (filter == Filter::nearest) {
      builder.copy(nearest[line]);
    } else {
      weigh(find(filter), from, to, line, weights);
      builder.begin_line(weights.begin);
      for (const double weight : weights.weights) builder.add(fixed_point(weight, digits));
    }
  }
  out.source_begin = from;
  for (uint32_t i = out.taps.begin; i < out.taps.end; ++i) {
    const ResampleTaps::Line& line = out.taps.lines[i];
    out.source_begin = std::min(out.source_begin, line.first);
    out.source_end = std::max(out.source_end, line.first + line.count);
  }
  for (uint32_t i = out.taps.begin; i < out.taps.end; ++i) out.taps.lines[i].first -= out.source_begin;
  return out;
}

}  // namespace vitrine
