// Which tile a product is computed in, and in how many slices of K.
#include <algorithm>
#include <numeric>

#include "runtime/ops/occupancy.h"
#include "runtime/ops/products/matmul_kernels.h"

namespace vitrine {
namespace {

// What slices cost beyond their products, in multiply-adds. A partial sum is written and read again, 8 bytes,
// in the time of about 128 of them on discrete and integrated GPUs alike: 10 TFLOP/s beside 320 GB/s, 1
// TFLOP/s beside 32. A dispatch behind a barrier takes some microseconds.
double slicing_time(const MatmulSizes& sizes, uint32_t slices) {
  if (slices == 1) return 0;
  return 128.0 * slices * static_cast<double>(sizes.m * sizes.n) + 2e7;
}

// The time of a product in multiply-adds of a device that is filled.
double time_of(const TileWorth& tile, const MatmulSizes& sizes, const Capabilities& device) {
  const auto count = static_cast<double>(ceil_div(sizes.m, tile.tile_m) * ceil_div(sizes.n, tile.tile_n));
  const double work = count * tile.tile_m * tile.tile_n / tile.speed * static_cast<double>(sizes.k);
  return work * std::max(1.0, filling_groups(device) / (count * tile.slices)) +
         slicing_time(sizes, tile.slices);
}

// A slice of fewer k is mostly the filling and draining of its loop.
constexpr uint64_t shortest_slice = 128;

}  // namespace

std::vector<size_t> rank_tiles(std::span<const TileWorth> tiles, const MatmulSizes& sizes,
                               const Capabilities& device) {
  std::vector<size_t> order(tiles.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {}, [&](size_t i) { return time_of(tiles[i], sizes, device); });
  return order;
}

uint32_t best_slices(TileWorth tile, const MatmulSizes& sizes, const Capabilities& device) {
  return best_slices(tile, sizes, device, time_of);
}

uint32_t best_slices(TileWorth tile, const MatmulSizes& sizes, const Capabilities& device, TileTime time) {
  uint32_t best = 1;
  if (device.type == DeviceType::cpu) return best;  // its cores are few, and filled by few workgroups
  tile.slices = 1;
  double shortest = time(tile, sizes, device);
  for (const uint32_t slices : {2u, 3u, 4u, 6u, 8u}) {
    const uint64_t partial_sums = sizes.m * sizes.n * slices;
    if (sizes.k / slices < shortest_slice || 4 * partial_sums > device.max_storage_range ||
        partial_sums > (uint64_t{1} << 31)) {
      break;
    }
    tile.slices = slices;
    const double sliced = time(tile, sizes, device);
    if (sliced < shortest) {
      best = slices;
      shortest = sliced;
    }
  }
  return best;
}

}  // namespace vitrine
