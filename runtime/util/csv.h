// Cells of tables that programs and spreadsheets read.
#pragma once

#include <string>
#include <string_view>

namespace vitrine {

// A cell as it stands in a CSV file: in quotes where it has to be. A text that a spreadsheet would take for a
// formula, since it begins with = + - @ or a tab and is no number, has an apostrophe in front: what classes
// and files are called comes from anywhere, and nobody's spreadsheet is to compute it.
std::string csv_cell(std::string_view text);
// The fewest digits that read back the same.
std::string csv_cell(double value);
std::string csv_cell(float value);

}  // namespace vitrine
