#include "train/logs/predictions.h"

#include <algorithm>
#include <utility>

#include "model/vit/vision_transformer.h"
#include "runtime/ops/norms/softmax.h"
#include "runtime/util/csv.h"

namespace vitrine {
namespace {

// Rows whose softmax is computed together.
constexpr size_t batch = 256;

void append(AtomicFile& file, const std::string& text) { file.write(std::as_bytes(std::span(text))); }

}  // namespace

Predictions::Predictions(PipelineStore& pipelines, const Model& model, const Dataset& data,
                         std::vector<std::string> names, const std::filesystem::path& to)
    : model_(model),
      data_(data),
      names_(std::move(names)),
      file_(to),
      softmax_(
          pipelines,
          [](GraphBuilder& builder, ValueId logits) { return softmax(builder.graph(), "softmax", logits); },
          *model.constants) {
  append(file_, "index,file,label,predicted,probability\n");
}

std::string Predictions::name(uint64_t number) const {
  return number < names_.size() ? names_[number] : std::to_string(number);
}

void Predictions::add(std::span<const float> results, std::span<const uint32_t> labels) {
  results_.insert(results_.end(), results.begin(), results.end());
  labels_.insert(labels_.end(), labels.begin(), labels.end());
  if (labels_.size() >= batch) write();
}

void Predictions::write() {
  if (labels_.empty()) return;
  const size_t classes = results_.size() / labels_.size();
  Tensor rows{Shape{labels_.size(), classes}, results_};
  if (natural_result(model_.config) == Result::logits) rows = softmax_(rows);
  std::string text;
  for (size_t i = 0; i < labels_.size(); ++i, ++written_) {
    const auto row = std::span(results_).subspan(i * classes, classes);
    const auto best = static_cast<size_t>(std::ranges::max_element(row) - row.begin());
    text += std::to_string(written_) + "," + csv_cell(data_.file(written_).string()) + "," +
            csv_cell(name(labels_[i])) + "," + csv_cell(name(best)) + "," +
            csv_cell(rows.values[i * classes + best]) + "\n";
  }
  append(file_, text);
  results_.clear();
  labels_.clear();
}

void Predictions::commit() {
  write();
  file_.commit();
}

}  // namespace vitrine
