#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/check/reference_matmul.h"

namespace vitrine::reference {

Attention attention(const Heads& q, const Heads& k, const Heads& v, uint64_t batch, uint64_t heads,
                    double scale, const WeightFactor& factor, const Sees& sees, const ScoreBias& bias) {
  Attention result;
  result.out.resize(batch * q.tokens * heads * v.head_width);
  Values row(k.tokens), applied;
  for (uint64_t b = 0; b < batch; ++b) {
    for (uint64_t h = 0; h < heads; ++h) {
      for (uint64_t n = 0; n < q.tokens; ++n) {
        double highest = -std::numeric_limits<double>::infinity();
        for (uint64_t m = 0; m < k.tokens; ++m) {
          double dot = 0;
          for (uint64_t d = 0; d < q.head_width; ++d) dot += q.at(b, n, h, d) * k.at(b, m, h, d);
          dot = dot * scale + (bias ? bias(b, h, n, m) : 0);
          row[m] = sees && !sees(n, m) ? -std::numeric_limits<double>::infinity() : dot;
          highest = std::max(highest, row[m]);
        }
        result.scores.insert(result.scores.end(), row.begin(), row.end());
        const bool nothing =
            std::all_of(row.begin(), row.end(), [](double s) { return std::isinf(s) && s < 0; });
        double sum = 0;
        for (double& value : row) sum += value = std::exp(value - highest);
        for (double& value : row) value /= sum;
        result.weights.insert(result.weights.end(), row.begin(), row.end());
        // Nothing but -inf: the sum of exp(score) is 0, and its logarithm -inf.
        result.lse.push_back(nothing ? highest : highest + std::log(sum));
        applied = row;
        if (factor) {
          for (uint64_t m = 0; m < k.tokens; ++m) applied[m] *= factor((b * heads + h) * q.tokens + n, m);
        }
        for (uint64_t d = 0; d < v.head_width; ++d) {
          double mixed = 0;
          for (uint64_t m = 0; m < k.tokens; ++m) mixed += applied[m] * v.at(b, m, h, d);
          result.out[((b * q.tokens + n) * heads + h) * v.head_width + d] = mixed;
        }
      }
    }
  }
  return result;
}

AttentionGradients attention_gradient(const Heads& q, const Heads& k, const Heads& v, uint64_t batch,
                                      uint64_t heads, double scale, const Values& out_gradient,
                                      const WeightFactor& factor, const ScoreBias& bias) {
  const Values weights = attention(q, k, v, batch, heads, scale, {}, {}, bias).weights;
  AttentionGradients result{Values(q.values.size()), Values(k.values.size()), Values(v.values.size()), {}};
  result.scores.resize(weights.size());
  Values of_weights(k.tokens);
  for (uint64_t b = 0; b < batch; ++b) {
    for (uint64_t h = 0; h < heads; ++h) {
      for (uint64_t n = 0; n < q.tokens; ++n) {
        const uint64_t row = (b * heads + h) * q.tokens + n;
        const double* given = &out_gradient[((b * q.tokens + n) * heads + h) * v.head_width];
        double mean = 0;
        for (uint64_t m = 0; m < k.tokens; ++m) {
          const double weight = weights[row * k.tokens + m], kept = factor ? factor(row, m) : 1;
          double dot = 0;
          for (uint64_t d = 0; d < v.head_width; ++d) {
            dot += given[d] * v.at(b, m, h, d);
            result.v[v.index(b, m, h, d)] += weight * kept * given[d];
          }
          of_weights[m] = kept * dot;
          mean += weight * of_weights[m];
        }
        for (uint64_t m = 0; m < k.tokens; ++m) {
          const double of_bias = weights[row * k.tokens + m] * (of_weights[m] - mean);
          const double of_score = scale * of_bias;
          result.scores[row * k.tokens + m] = of_bias;
          for (uint64_t d = 0; d < q.head_width; ++d) {
            result.q[q.index(b, n, h, d)] += of_score * k.at(b, m, h, d);
            result.k[k.index(b, m, h, d)] += of_score * q.at(b, n, h, d);
          }
        }
      }
    }
  }
  return result;
}

uint64_t RelativeGrid::rows() const { return (2 * height - 1) * (2 * width - 1) + 3 * first; }

uint64_t RelativeGrid::row(uint64_t query, uint64_t key) const {
  if (query < first && key < first) return rows() - 1;
  if (key < first) return rows() - 2;
  if (query < first) return rows() - 3;
  const uint64_t down = (query - first) / width + height - 1 - (key - first) / width;
  const uint64_t right = (query - first) % width + width - 1 - (key - first) % width;
  return down * (2 * width - 1) + right;
}

ScoreBias relative_bias(const RelativeGrid& grid, const Values& table, uint64_t heads) {
  return [grid, table, heads](uint64_t, uint64_t head, uint64_t query, uint64_t key) {
    return table[grid.row(query, key) * heads + head];
  };
}

ScoreBias bias_rows(const RelativeGrid& grid, const Values& rows, uint64_t heads) {
  return [grid, rows, heads](uint64_t batch, uint64_t head, uint64_t query, uint64_t key) {
    const uint64_t line = ((batch * heads + head) * grid.tokens() + query) * (grid.height + grid.width);
    return rows[line + key / grid.width] + rows[line + grid.height + key % grid.width];
  };
}

Values relative_bias_gradient(const RelativeGrid& grid, const Values& scores, uint64_t batch,
                              uint64_t heads) {
  Values sums(grid.rows() * heads);
  const uint64_t tokens = grid.tokens();
  for (uint64_t i = 0; i < batch * heads * tokens * tokens; ++i) {
    sums[grid.row(i / tokens % tokens, i % tokens) * heads + i / tokens / tokens % heads] += scores[i];
  }
  return sums;
}

}  // namespace vitrine::reference
