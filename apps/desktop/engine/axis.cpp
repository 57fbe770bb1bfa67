#include "apps/desktop/engine/axis.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>

namespace vitrine::desktop {
namespace {

constexpr double most_steps = 5;

double round_step(double at_least) {
  const double power = std::pow(10.0, std::floor(std::log10(at_least)));
  for (const double round : {1.0, 2.0, 2.5, 5.0}) {
    if (round * power >= at_least * (1 - 1e-9)) return round * power;
  }
  return 10 * power;
}

}  // namespace

AxisScale axis_scale(double low, double high) {
  if (!std::isfinite(low) || !std::isfinite(high)) return {};
  // Far enough from what doubles end with for the lines to be told apart.
  low = std::clamp(low, -1e300, 1e300);
  high = std::clamp(high, low, 1e300);
  // What is smaller than any number that counts is one number, too: its step would be none.
  if (const double room = std::max(std::abs(low), std::abs(high));
      high - low <= std::max(1e-9 * room, 1e-300)) {
    const double around = room > 1e-300 ? room / 2 : 0.5;
    low = low >= 0 ? std::max(0.0, low - around) : low - around;
    high += around;
  }
  AxisScale scale;
  // Rounding the ends outwards may take a line more.
  for (double wanted = (high - low) / most_steps;; wanted = scale.step * 1.01) {
    scale.step = round_step(wanted);
    scale.low = std::floor(low / scale.step * (1 + 1e-12)) * scale.step;
    scale.high = std::ceil(high / scale.step * (1 - 1e-12)) * scale.step;
    if (scale.high < high) scale.high += scale.step;
    if (scale.low > low) scale.low -= scale.step;
    if ((scale.high - scale.low) / scale.step <= most_steps + 0.5) return scale;
  }
}

std::string axis_label(double value, double step) {
  if (std::abs(value) < 1e-6 * step) return "0";
  std::array<char, 64> text{};
  int decimals = 0;
  for (double part = step; decimals < 4 && std::abs(part - std::round(part)) > 1e-6 * part; part *= 10)
    ++decimals;
  if (step >= 1e-3 && std::abs(value) < 1e6) {
    std::snprintf(text.data(), text.size(), "%.*f", decimals, value);
  } else {
    const double exponent = std::floor(std::log10(std::abs(value)) + 1e-9);
    std::snprintf(text.data(), text.size(), "%.3ge%d", value / std::pow(10.0, exponent),
                  static_cast<int>(exponent));
  }
  return text.data();
}

std::vector<double> smoothed(std::span<const CurvePoint> points) {
  const double keep = 1 - 1 / std::max(1.0, static_cast<double>(points.size()) / 50);
  std::vector<double> sums(points.size()), weights(points.size());
  // From both ends, so that nothing is moved; the point itself counts twice.
  const auto go_over = [&](auto first, auto last, auto numbers) {
    double sum = 0, weight = 0;
    for (; first != last; ++first) {
      const size_t i = numbers(first);
      sum *= keep;
      weight *= keep;
      if (std::isfinite(points[i].mean)) {
        sum += points[i].mean;
        weight += 1;
      }
      sums[i] += sum;
      weights[i] += weight;
    }
  };
  const size_t count = points.size();
  go_over(size_t{0}, count, [](size_t i) { return i; });
  go_over(size_t{0}, count, [&](size_t i) { return count - 1 - i; });
  std::vector<double> result;
  result.reserve(count);
  for (size_t i = 0; i < count; ++i)
    result.push_back(weights[i] > 0 ? sums[i] / weights[i] : std::numeric_limits<double>::quiet_NaN());
  return result;
}

std::vector<CurvePoint> thinned(std::span<const CurvePoint> points, size_t most) {
  const size_t each = (points.size() + std::max<size_t>(most, 1) - 1) / std::max<size_t>(most, 1);
  if (each <= 1) return {points.begin(), points.end()};
  std::vector<CurvePoint> fewer;
  for (size_t first = 0; first < points.size(); first += each) {
    const std::span<const CurvePoint> part = points.subspan(first, std::min(each, points.size() - first));
    CurvePoint joined = part.front();
    double sum = 0;
    for (const CurvePoint& point : part) {
      sum += point.mean;
      joined.last = point.last;
      joined.low = std::fmin(joined.low, point.low);
      joined.high = std::fmax(joined.high, point.high);
    }
    joined.mean = sum / static_cast<double>(part.size());
    fewer.push_back(joined);
  }
  return fewer;
}

}  // namespace vitrine::desktop
