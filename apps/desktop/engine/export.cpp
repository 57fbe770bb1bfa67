#include "apps/desktop/engine/export.h"

#include <array>
#include <charconv>

#include "apps/desktop/engine/training_session.h"
#include "runtime/util/atomic_file.h"
#include "runtime/util/error.h"

namespace vitrine::desktop {
namespace {

template <typename Number>
std::string shortest(Number value) {
  std::array<char, 64> text{};
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), value);
  return {text.data(), end};
}

std::string quoted(const std::string& field) {
  if (field.find_first_of(",\"\r\n") == std::string::npos) return field;
  std::string text = "\"";
  for (const char c : field) {
    if (c == '"') text += '"';
    text += c;
  }
  return text + '"';
}

}  // namespace

std::string csv_number(double value) { return shortest(value); }
std::string csv_number(float value) { return shortest(value); }

std::string csv_text(std::span<const CsvRow> rows) {
  std::string text;
  for (const CsvRow& row : rows) {
    // A lone empty field would be an empty line, which readers skip.
    if (row.size() == 1 && row.front().empty()) text += "\"\"";
    for (size_t i = 0; i < row.size(); ++i) text += (i == 0 ? "" : ",") + quoted(row[i]);
    text += "\r\n";
  }
  return text;
}

void write_csv(const std::filesystem::path& path, std::span<const CsvRow> rows) {
  const std::string text = csv_text(rows);
  write_file_atomically(path, std::as_bytes(std::span(text)));
}

std::vector<CsvRow> answer_rows(std::span<const TopAnswer> answers) {
  std::vector<CsvRow> rows{{"rank", "index", "label", "probability"}};
  for (size_t i = 0; i < answers.size(); ++i) {
    rows.push_back({std::to_string(i + 1), std::to_string(answers[i].index), answers[i].label,
                    csv_number(answers[i].probability)});
  }
  return rows;
}

std::vector<CsvRow> map_rows(std::span<const float> weights, uint64_t height, uint64_t width) {
  const uint64_t each = height * width;
  if (each == 0 || weights.size() % each != 0) {
    throw Error(ErrorCode::usage, "found " + std::to_string(weights.size()) + " weights, expected maps of " +
                                      std::to_string(height) + " x " + std::to_string(width));
  }
  const uint64_t maps = weights.size() / each;
  std::vector<CsvRow> rows{{"map", "row", "column", "weight"}};
  for (uint64_t i = 0; i < weights.size(); ++i) {
    const uint64_t map = i / each;
    const std::string name = maps == 1 ? "map" : map + 1 == maps ? "mean" : "head " + std::to_string(map);
    rows.push_back(
        {name, std::to_string(i % each / width), std::to_string(i % width), csv_number(weights[i])});
  }
  return rows;
}

std::vector<CsvRow> profile_rows(const ProfileResult& profile) {
  std::vector<CsvRow> rows{{"step", "node", "operator", "kernel", "seconds", "share"}};
  for (size_t i = 0; i < profile.steps.size(); ++i) {
    const ProfileStep& step = profile.steps[i];
    rows.push_back({std::to_string(i), step.node, step.operator_name, step.kernel, csv_number(step.seconds),
                    csv_number(profile.total_seconds > 0 ? step.seconds / profile.total_seconds : 0)});
  }
  return rows;
}

std::vector<CsvRow> training_rows(const TrainingState& state) {
  std::vector<CsvRow> rows;
  if (state.losses.empty()) return rows;
  rows.push_back({"what", "step", "loss", "lowest loss", "highest loss", "accuracy", "samples"});
  for (const CurvePoint& point : state.losses) {
    rows.push_back({"training", std::to_string(point.last), csv_number(point.mean), csv_number(point.low),
                    csv_number(point.high), "", ""});
  }
  for (const TestPoint& point : state.tests) {
    rows.push_back({"test", std::to_string(point.step), csv_number(point.loss), "", "",
                    csv_number(point.accuracy), std::to_string(point.samples)});
  }
  return rows;
}

}  // namespace vitrine::desktop
