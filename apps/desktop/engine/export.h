// The numbers on the screen as CSV (RFC 4180: commas, lines that end in CR and LF, quotes where they are
// needed).
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "apps/desktop/engine/profile_bars.h"
#include "apps/desktop/engine/run_watch.h"
#include "model/run/top_answers.h"

namespace vitrine::desktop {

struct TrainingState;

// One line of fields, the first one of a table with the columns' names.
using CsvRow = std::vector<std::string>;

// A number that reads back as the same one; NaN and infinities as "nan", "inf" and "-inf".
std::string csv_number(double value);
std::string csv_number(float value);

std::string csv_text(std::span<const CsvRow> rows);
// The file appears whole or not at all. Error(failed) where it can't be written.
void write_csv(const std::filesystem::path& path, std::span<const CsvRow> rows);

// rank, index, label, probability
std::vector<CsvRow> answer_rows(std::span<const TopAnswer> answers);
// map, row, column, weight: `weights` are maps one after the other, of `height` rows of `width` numbers. Of
// several maps the last one is the mean of the others, which are heads.
std::vector<CsvRow> map_rows(std::span<const float> weights, uint64_t height, uint64_t width);
// step, node, operator, kernel, seconds, share
std::vector<CsvRow> profile_rows(const ProfileResult& profile);
// what, step, loss, lowest loss, highest loss, accuracy, samples: the curves
std::vector<CsvRow> training_rows(const TrainingState& state);
// run, what, step, mean, lowest, highest: a line for each point that is drawn, of every curve
std::vector<CsvRow> run_rows(const RunWatch::States& runs);

}  // namespace vitrine::desktop
