#include "runtime/ops/norms/kept_rows.h"

#include <algorithm>
#include <tuple>

#include "runtime/ops/lowering.h"
#include "runtime/ops/occupancy.h"

namespace vitrine {
namespace {

bool by_fours(const RowKeeping& keeping) { return keeping.width % 4 == 0; }
bool by_eights(const RowKeeping& keeping) { return keeping.halves && keeping.width % 8 == 0; }

// How many vec4s of a tensor each of so many lanes has.
uint64_t fours_of(const RowKeeping& keeping, uint64_t row_lanes) {
  const uint64_t piece_fours = by_eights(keeping) ? 2 : 1;
  return ceil_div(ceil_div(keeping.width, 4 * piece_fours), row_lanes) * piece_fours;
}

// 32 values of a tensor are more loads than a lane can have under way; addresses and sums want registers,
// too.
uint64_t most_fours(const Capabilities& device, const RowKeeping& keeping, uint32_t lanes) {
  constexpr double others = 16, most = 8;
  const double values = register_budget(device, lanes) - others;
  return static_cast<uint64_t>(
      std::clamp(values / (4.0 * keeping.tensors), by_eights(keeping) ? 2.0 : 1.0, most));
}

}  // namespace

std::optional<KeptRows> kept_rows(const Capabilities& device, const RowKeeping& keeping) {
  const uint32_t most_lanes = std::min(device.max_workgroup_size[0], device.max_workgroup_invocations);
  const uint32_t most_subgroups =
      device.max_workgroup_subgroups != 0 ? device.max_workgroup_subgroups : most_lanes;
  std::optional<KeptRows> best;
  std::tuple<uint64_t, uint64_t> least;
  for (uint32_t lanes = std::max(device.min_subgroup_size, 1u); lanes <= device.max_subgroup_size;
       lanes *= 2) {
    KeptRows rows{.lanes = lanes};
    const uint64_t most = most_fours(device, keeping, lanes);
    while (fours_of(keeping, rows.row_lanes()) > most && rows.row_lanes() <= most_lanes) ++rows.subgroups;
    if (rows.row_lanes() > most_lanes || rows.subgroups > most_subgroups) continue;
    // The fewest subgroups, since what they tell each other takes a barrier; then the fewest idle lanes; then
    // the most, which have the fewest loads to wait for one after the other.
    const std::tuple cost(rows.subgroups, rows.row_lanes() * fours_of(keeping, rows.row_lanes()));
    if (best && least < cost) continue;
    // Two rows where subgroups have 32 lanes: a multiprocessor that takes 16 workgroups fills up with them.
    if (rows.subgroups == 1) rows.rows = std::clamp(std::min(64u, most_lanes) / lanes, 1u, most_subgroups);
    best = rows;
    least = cost;
  }
  return best;
}

std::optional<std::string> refuse_kept_rows(const LowerContext& context, std::string_view shader,
                                            std::string_view variant, const RowKeeping& keeping) {
  if (auto reason = refuse(context, shader, variant)) return reason;
  if (!kept_rows(context.device(), keeping)) {
    return "rows of " + std::to_string(keeping.width) +
           " elements are more than a workgroup's registers hold";
  }
  return std::nullopt;
}

Dispatch keep_rows(const Capabilities& device, std::string_view shader, std::string_view variant,
                   const RowKeeping& keeping, uint64_t rows) {
  const KeptRows kept = kept_rows(device, keeping).value();
  Dispatch dispatch;
  dispatch.shader = &find_shader(shader, variant);
  dispatch.constants = {{"local_size", kept.local_size()},  {"lanes", kept.lanes},
                        {"row_lanes", kept.row_lanes()},    {"width", to_u32(keeping.width)},
                        {"by_fours", by_fours(keeping)},    {"by_eights", by_eights(keeping)},
                        {"shares_rows", kept.subgroups > 1}};
  dispatch.groups = spread_groups(device, ceil_div(rows, kept.rows));
  dispatch.subgroup_size = kept.lanes;
  return dispatch;
}

}  // namespace vitrine
