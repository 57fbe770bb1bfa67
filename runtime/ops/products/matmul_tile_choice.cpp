// Which tile a product is computed in, and in how many slices of K: what each asks of a device, by the model
// of runtime/ops/cost.h.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "runtime/ops/cost.h"
#include "runtime/ops/products/matmul_kernels.h"

namespace vitrine {
namespace {

double seconds_of(const TileWorth& tile, const MatmulSizes& sizes, const Capabilities& device) {
  const double product = estimate(work_of(tile, sizes), device).seconds;
  return tile.slices > 1 ? product + estimate(work_of_sum(tile, sizes), device).seconds : product;
}

// A slice of fewer k is mostly the filling and draining of its loop.
constexpr uint64_t shortest_slice = 128;

// Scratch memory and a second dispatch have to be worth a tenth: the model is no better than that.
constexpr double worthwhile = 0.9;

}  // namespace

Work work_of(const TileWorth& tile, const MatmulSizes& sizes) {
  const auto m = static_cast<double>(sizes.m), n = static_cast<double>(sizes.n);
  const auto tiles = static_cast<double>(ceil_div(sizes.m, tile.tile_m) * ceil_div(sizes.n, tile.tile_n));
  const double k = static_cast<double>(sizes.k) / tile.slices;
  const double products = static_cast<double>(tile.tile_m) * tile.tile_n * k;
  const auto in_bytes = static_cast<double>(sizes.in_bytes);
  Work work;
  work.groups = tiles * tile.slices;
  work.threads = tile.threads;
  work.subgroup_size = tile.subgroup_size;
  work.registers = tile.registers;
  work.shared_bytes = tile.shared_bytes;
  (tile.matrix_units ? work.matrix_multiply_adds : work.multiply_adds) = products / tile.matrix_speed;
  work.rounds = std::ceil(k / tile.step_k);
  work.shared_traffic = work.rounds * tile.shared_traffic;
  work.instructions = work.rounds * tile.instructions + tile.instructions_once;
  const double stored = tile.slices > 1 ? 4 : static_cast<double>(sizes.out_bytes);
  work.moved =
      (tile.tile_m + tile.tile_n) * k * in_bytes / tile.line_share + tile.tile_m * tile.tile_n * stored;
  work.pause = tile.pause;
  work.ahead = tile.ahead;
  work.cpu_speed = tile.cpu_speed;
  work.constant_bytes = n * static_cast<double>(sizes.k) * in_bytes;
  work.resident_bytes = m * static_cast<double>(sizes.k) * in_bytes + m * n * stored * tile.slices;
  return work;
}

Work work_of_sum(const TileWorth& tile, const MatmulSizes& sizes) {
  const double elements = static_cast<double>(sizes.m) * static_cast<double>(sizes.n);
  const double each = sizes.n % 4 == 0 ? 4 : 1;  // elements of an invocation
  Work work;
  work.threads = 128;
  work.registers = 32;
  work.groups = std::ceil(elements / each / work.threads);
  work.moved = 4.0 * tile.slices * each * work.threads;
  work.instructions = (tile.slices + 4) * (each + 3) * work.threads;
  work.resident_bytes = elements * (4.0 * tile.slices + static_cast<double>(sizes.out_bytes));
  return work;
}

std::vector<size_t> rank_tiles(std::span<const TileWorth> tiles, const MatmulSizes& sizes,
                               const Capabilities& device) {
  std::vector<double> seconds;
  for (const TileWorth& tile : tiles) seconds.push_back(seconds_of(tile, sizes, device));
  std::vector<size_t> order(tiles.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {}, [&](size_t i) { return seconds[i]; });
  return order;
}

uint32_t best_slices(TileWorth tile, const MatmulSizes& sizes, const Capabilities& device) {
  uint32_t best = 1;
  if (device.type == DeviceType::cpu) return best;  // its cores are few, and filled by few workgroups
  tile.slices = 1;
  double shortest = worthwhile * seconds_of(tile, sizes, device);
  for (const uint32_t slices : {2u, 3u, 4u, 6u, 8u}) {
    const uint64_t partial_sums = sizes.m * sizes.n * slices;
    if (sizes.k / slices < shortest_slice || 4 * partial_sums > device.max_storage_range ||
        partial_sums > (uint64_t{1} << 31)) {
      break;
    }
    tile.slices = slices;
    const double seconds = seconds_of(tile, sizes, device);
    if (seconds < shortest) {
      best = slices;
      shortest = seconds;
    }
  }
  return best;
}

}  // namespace vitrine
