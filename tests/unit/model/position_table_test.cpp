#include "model/vit/position_table.h"

#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "runtime/util/error.h"
#include "runtime/util/json.h"
#include "runtime/util/npy.h"

using namespace vitrine;

namespace {

const std::filesystem::path folder = std::filesystem::path(VITRINE_TEST_DATA) / "parity" / "positions";

PositionRule rule_of(const nlohmann::json& row) {
  ViTConfig config;
  set_field(config, "position_resize", row.at("rule").get<std::string>(), "test", ErrorCode::usage);
  return {config.position_resize, row.at("offset").get<double>()};
}

Grid grid_of(const nlohmann::json& pair) { return {pair[0].get<uint64_t>(), pair[1].get<uint64_t>()}; }

}  // namespace

TEST_CASE("position tables are resampled as PyTorch resamples them") {
  const nlohmann::json rows = read_json(folder / "cases.json");
  REQUIRE(rows.size() >= 40);
  for (const nlohmann::json& row : rows) {
    const std::string result = row.at("result");
    INFO(result);
    const std::vector<float> table = NpyFile(folder / row.at("table").get<std::string>()).values<float>();
    const std::vector<double> reference = NpyFile(folder / result).values<double>();
    const std::vector<float> found =
        resize_positions(table, 2, grid_of(row.at("from")), grid_of(row.at("to")), rule_of(row));
    REQUIRE(found.size() == reference.size());
    double worst = 0;
    for (size_t i = 0; i < found.size(); ++i)
      worst = std::max(worst, std::abs(static_cast<double>(found[i]) - reference[i]));
    // What rounding to float may cost numbers of this size; coordinates and filters are exact.
    CHECK(worst <= 4e-7);
  }
}

TEST_CASE("a table for the same grid stays as it is, and the rows in front of the patches always do") {
  std::vector<float> table(3 * (2 + 4 * 5));
  for (size_t i = 0; i < table.size(); ++i) table[i] = std::sin(static_cast<float>(i));
  for (const auto resize : {PositionResize::bicubic, PositionResize::bicubic_antialias,
                            PositionResize::bicubic_corners, PositionResize::bilinear}) {
    CHECK(resize_positions(table, 3, {4, 5}, {4, 5}, {.resize = resize}) == table);
    const auto other = resize_positions(table, 3, {4, 5}, {6, 2}, {.resize = resize});
    REQUIRE(other.size() == 3 * (2 + 12));
    CHECK(std::equal(other.begin(), other.begin() + 6, table.begin()));
  }
}

TEST_CASE("rows behind the patches stay as they are, and the patches' become what they would without them") {
  std::vector<float> table(3 * (1 + 4 * 5 + 2));
  for (size_t i = 0; i < table.size(); ++i) table[i] = std::sin(static_cast<float>(i));
  const auto found = resize_positions(table, 3, {4, 5}, {6, 2}, {.behind = 2});
  REQUIRE(found.size() == 3 * (1 + 12 + 2));
  const auto without = resize_positions(std::span(table).first(3 * 21), 3, {4, 5}, {6, 2}, {});
  CHECK(std::equal(without.begin(), without.end(), found.begin()));
  CHECK(std::equal(found.end() - 6, found.end(), table.end() - 6));
  CHECK_THROWS_AS(resize_positions(table, 3, {4, 5}, {6, 2}, {.behind = 4}), Error);
}

TEST_CASE("a table that is no such grid is refused") {
  const std::vector<float> table(3 * 10);
  CHECK_THROWS_AS(resize_positions(table, 3, {4, 4}, {2, 2}, {}), Error);
  CHECK_THROWS_AS(resize_positions(table, 4, {2, 2}, {2, 3}, {}), Error);
  CHECK_THROWS_AS(resize_positions(table, 3, {3, 3}, {0, 3}, {}), Error);
  CHECK_THROWS_AS(resize_positions(table, 0, {3, 3}, {1, 3}, {}), Error);
}
