#include "apps/desktop/engine/export.h"

#include "apps/desktop/engine/training_session.h"
#include "runtime/util/atomic_file.h"
#include "runtime/util/csv.h"
#include "runtime/util/error.h"

namespace vitrine::desktop {

std::string csv_number(double value) { return csv_cell(value); }
std::string csv_number(float value) { return csv_cell(value); }

std::string csv_text(std::span<const CsvRow> rows) {
  std::string text;
  for (const CsvRow& row : rows) {
    // A lone empty field would be an empty line, which readers skip.
    if (row.size() == 1 && row.front().empty()) text += "\"\"";
    for (size_t i = 0; i < row.size(); ++i) text += (i == 0 ? "" : ",") + csv_cell(row[i]);
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

std::vector<CsvRow> run_rows(const RunWatch::States& runs) {
  std::vector<CsvRow> rows{{"run", "what", "step", "mean", "lowest", "highest"}};
  for (const std::shared_ptr<const RunState>& run : runs) {
    const auto curve = [&](const char* what, const std::vector<CurvePoint>& points) {
      for (const CurvePoint& point : points) {
        rows.push_back({run->name, what, std::to_string(point.last), csv_number(point.mean),
                        csv_number(point.low), csv_number(point.high)});
      }
    };
    curve("loss", run->curves.loss);
    curve("learning_rate", run->curves.learning_rate);
    curve("gradient_norm", run->curves.gradient_norm);
    curve("images_per_second", run->curves.images_per_second);
    for (const ValidationPoint& point : run->curves.validations) {
      const auto value = [&](const char* what, double number) {
        rows.push_back({run->name, what, std::to_string(point.step), csv_number(number), "", ""});
      };
      value("val_loss", point.loss);
      value("val_accuracy", point.accuracy);
      value("val_top5", point.top5);
    }
    for (const uint64_t step : run->curves.skips)
      rows.push_back({run->name, "skipped", std::to_string(step), "", "", ""});
  }
  if (rows.size() == 1) rows.clear();
  return rows;
}

}  // namespace vitrine::desktop
