#include "runtime/check/reference_recipes.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "runtime/util/philox.h"
#include "shaders/training/erase_boxes.h"
#include "shaders/training/mix_samples.h"

namespace vitrine::reference {

namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

struct Place {
  uint64_t sample, element, row, column;
};
Place place_of(size_t i, const Shape& shape) {
  const uint64_t elements = shape[1] * shape[2] * shape[3];
  return {i / elements, i % elements, i / shape[3] % shape[2], i % shape[3]};
}

// What class c of row r should be.
double target_of(const Targets& targets, size_t r, size_t c, size_t classes) {
  const bool two = !targets.others.empty();
  const double share = two ? targets.shares[r] : 1;
  double one_hot = static_cast<size_t>(targets.labels[r]) == c ? share : 0;
  if (two && static_cast<size_t>(targets.others[r]) == c) one_hot += 1 - share;
  const double target = targets.smoothing / static_cast<double>(classes) + (1 - targets.smoothing) * one_hot;
  return targets.threshold ? (target > *targets.threshold ? 1 : 0) : target;
}

bool has_target(const Targets& targets, size_t r, size_t classes) {
  const auto known = [&](double label) { return static_cast<size_t>(label) < classes; };
  return known(targets.labels[r]) && (targets.others.empty() || known(targets.others[r]));
}

double factor_of(bool sum, size_t classes) { return sum ? 1 : 1 / static_cast<double>(classes); }

// log(softmax(x / temperature)) of a row.
Values log_softmax(const double* x, uint64_t classes, double temperature) {
  const double highest = *std::max_element(x, x + classes);
  double sum = 0;
  for (uint64_t c = 0; c < classes; ++c) sum += std::exp((x[c] - highest) / temperature);
  Values y(classes);
  for (uint64_t c = 0; c < classes; ++c) y[c] = (x[c] - highest) / temperature - std::log(sum);
  return y;
}

}  // namespace

Values mix_samples(const Values& samples, const Shape& shape, const Values& mixing) {
  Values y(samples.size());
  for (size_t i = 0; i < y.size(); ++i) {
    const Place at = place_of(i, shape);
    const double* words = mixing.data() + at.sample * VITRINE_MIX_WORDS;
    const auto weight = [&](int word) {
      return static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(words[word])));
    };
    const auto row = static_cast<double>(at.row), column = static_cast<double>(at.column);
    const bool inside = row >= words[VITRINE_MIX_TOP] && row < words[VITRINE_MIX_BOTTOM] &&
                        column >= words[VITRINE_MIX_LEFT] && column < words[VITRINE_MIX_RIGHT];
    const auto partner = static_cast<uint64_t>(words[VITRINE_MIX_PARTNER]);
    const double other =
        partner < shape[0] ? samples[partner * shape.elements() / shape[0] + at.element] : nan;
    if (inside) {
      y[i] = other;
    } else if (weight(VITRINE_MIX_OTHER) == 0) {
      y[i] = samples[i];
    } else {
      y[i] = weight(VITRINE_MIX_OWN) * samples[i] + weight(VITRINE_MIX_OTHER) * other;
    }
  }
  return y;
}

Values erase_boxes(const Values& samples, const Shape& shape, const Values& boxes, const Erasing& erasing) {
  const Philox::Key key{static_cast<uint32_t>(erasing.seed), static_cast<uint32_t>(erasing.seed >> 32)};
  const size_t count = boxes.size() / shape[0] / VITRINE_BOX_WORDS, plane = shape[2] * shape[3];
  Values y = samples;
  for (size_t i = 0; i < y.size(); ++i) {
    const Place at = place_of(i, shape);
    const auto row = static_cast<double>(at.row), column = static_cast<double>(at.column);
    for (size_t n = 0; n < count; ++n) {
      const double* box = boxes.data() + (at.sample * count + n) * VITRINE_BOX_WORDS;
      if (row < box[VITRINE_BOX_TOP] || row >= box[VITRINE_BOX_BOTTOM] || column < box[VITRINE_BOX_LEFT] ||
          column >= box[VITRINE_BOX_RIGHT]) {
        continue;
      }
      const auto draw = static_cast<uint32_t>(
          erasing.fill == VITRINE_ERASE_PIXEL ? at.element : n * shape[1] + at.element / plane);
      const uint32_t word = Philox::block(
          {draw / 4, static_cast<uint32_t>(at.sample), erasing.stream, erasing.step}, key)[draw % 4];
      y[i] = erasing.fill == VITRINE_ERASE_CONST ? 0 : normal_quantile(uniform_from(word));
    }
  }
  return y;
}

Values argmax(const Values& x, uint64_t width) {
  Values y;
  for (size_t row = 0; row < x.size() / width; ++row) {
    uint64_t best = 0;
    for (uint64_t c = 1; c < width; ++c) {
      const double value = x[row * width + c], highest = x[row * width + best];
      if (!std::isnan(highest) && (std::isnan(value) || value > highest)) best = c;
    }
    y.push_back(static_cast<double>(best));
  }
  return y;
}

Values binary_cross_entropy(const Values& logits, const Targets& targets) {
  const size_t rows = targets.labels.size(), classes = logits.size() / rows;
  Values losses;
  for (size_t r = 0; r < rows; ++r) {
    double sum = has_target(targets, r, classes) ? 0 : nan;
    for (size_t c = 0; c < classes; ++c) {
      const double x = logits[r * classes + c];
      const double log_sigmoid = std::min(x, 0.0) - std::log1p(std::exp(-std::abs(x)));
      sum += (1 - target_of(targets, r, c, classes)) * x - log_sigmoid;
    }
    losses.push_back(factor_of(targets.sum, classes) * sum);
  }
  return losses;
}

Values binary_cross_entropy_gradient(const Values& gradient, const Values& logits, const Targets& targets) {
  const size_t classes = logits.size() / targets.labels.size();
  Values y;
  for (size_t i = 0; i < logits.size(); ++i) {
    const size_t r = i / classes;
    const double sigmoid = 1 / (1 + std::exp(-logits[i]));
    const double off = sigmoid - target_of(targets, r, i % classes, classes);
    y.push_back(has_target(targets, r, classes) ? gradient[r] * factor_of(targets.sum, classes) * off : nan);
  }
  return y;
}

Values soft_distillation(const Values& student, const Values& teacher, const Softness& softness) {
  const uint64_t classes = softness.classes;
  Values losses;
  for (size_t base = 0; base < student.size(); base += classes) {
    const Values p = log_softmax(student.data() + base, classes, softness.temperature);
    const Values q = log_softmax(teacher.data() + base, classes, softness.temperature);
    double sum = 0;
    for (uint64_t c = 0; c < classes; ++c) {
      if (std::exp(q[c]) != 0) sum += std::exp(q[c]) * (q[c] - p[c]);
    }
    losses.push_back(factor_of(softness.sum, classes) * softness.temperature * softness.temperature * sum);
  }
  return losses;
}

Values soft_distillation_gradient(const Values& gradient, const Values& student, const Values& teacher,
                                  const Softness& softness) {
  const uint64_t classes = softness.classes;
  Values y;
  for (size_t base = 0; base < student.size(); base += classes) {
    const Values p = log_softmax(student.data() + base, classes, softness.temperature);
    const Values q = log_softmax(teacher.data() + base, classes, softness.temperature);
    const double factor = gradient[base / classes] * factor_of(softness.sum, classes) * softness.temperature;
    for (uint64_t c = 0; c < classes; ++c) y.push_back(factor * (std::exp(p[c]) - std::exp(q[c])));
  }
  return y;
}

}  // namespace vitrine::reference
