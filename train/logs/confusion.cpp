#include "train/logs/confusion.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "images/png_writer.h"
#include "runtime/util/atomic_file.h"
#include "runtime/util/csv.h"
#include "runtime/util/error.h"
#include "runtime/util/text.h"

namespace vitrine {
namespace {

// Counts of so many classes fill a gigabyte of text.
constexpr uint64_t most_classes = 10'000;

double share(uint64_t part, uint64_t all) {
  return all == 0 ? std::numeric_limits<double>::quiet_NaN()
                  : static_cast<double>(part) / static_cast<double>(all);
}

nlohmann::ordered_json number_or_null(double value) {
  return std::isnan(value) ? nlohmann::ordered_json() : nlohmann::ordered_json(value);
}

std::string csv_number(double value) { return std::isnan(value) ? "" : csv_cell(value); }

}  // namespace

void require_few_classes(uint64_t classes) {
  if (classes <= most_classes) return;
  throw Error(ErrorCode::usage, "a confusion matrix of " + std::to_string(classes) +
                                    " classes was asked for, expected at most " +
                                    std::to_string(most_classes));
}

Confusion::Confusion(uint64_t classes, std::vector<std::string> names)
    : classes_(classes), names_(std::move(names)), labelled_(classes), predicted_(classes) {
  if (names_.size() != classes_) names_.clear();
}

void Confusion::add(std::span<const float> results, std::span<const uint32_t> labels) {
  if (results.size() != labels.size() * classes_) {
    throw Error(ErrorCode::usage, std::to_string(results.size()) + " results for " +
                                      std::to_string(labels.size()) + " labels, expected " +
                                      std::to_string(classes_) + " each");
  }
  for (size_t i = 0; i < labels.size(); ++i) {
    const auto row = results.subspan(i * classes_, classes_);
    if (labels[i] >= classes_) continue;  // TestSums refuses it
    const auto predicted = static_cast<uint32_t>(std::ranges::max_element(row) - row.begin());
    ++counts_[{labels[i], predicted}];
    ++labelled_[labels[i]];
    ++predicted_[predicted];
  }
}

std::string Confusion::name(uint64_t number) const {
  return names_.empty() ? std::to_string(number) : names_[number];
}

uint64_t Confusion::count(uint64_t label, uint64_t predicted) const {
  const auto found = counts_.find({static_cast<uint32_t>(label), static_cast<uint32_t>(predicted)});
  return found == counts_.end() ? 0 : found->second;
}

ClassFigures Confusion::figures(uint64_t number) const {
  const uint64_t right = count(number, number);
  return {labelled_[number], share(right, predicted_[number]), share(right, labelled_[number])};
}

nlohmann::ordered_json to_json(const Confusion& confusion) {
  require_few_classes(confusion.classes());
  nlohmann::ordered_json json{{"classes", nlohmann::ordered_json::array()},
                              {"confusion", nlohmann::ordered_json::array()}};
  for (uint64_t label = 0; label < confusion.classes(); ++label) {
    const ClassFigures figures = confusion.figures(label);
    json["classes"].push_back({{"name", confusion.name(label)},
                               {"count", figures.count},
                               {"precision", number_or_null(figures.precision)},
                               {"recall", number_or_null(figures.recall)}});
    nlohmann::ordered_json row = nlohmann::ordered_json::array();
    for (uint64_t predicted = 0; predicted < confusion.classes(); ++predicted) {
      row.push_back(confusion.count(label, predicted));
    }
    json["confusion"].push_back(std::move(row));
  }
  return json;
}

std::string to_csv(const Confusion& confusion) {
  require_few_classes(confusion.classes());
  std::string text = "label \\ predicted";
  for (uint64_t c = 0; c < confusion.classes(); ++c) text += "," + csv_cell(confusion.name(c));
  text += ",count,precision,recall\n";
  for (uint64_t label = 0; label < confusion.classes(); ++label) {
    text += csv_cell(confusion.name(label));
    for (uint64_t predicted = 0; predicted < confusion.classes(); ++predicted) {
      text += "," + std::to_string(confusion.count(label, predicted));
    }
    const ClassFigures figures = confusion.figures(label);
    text += "," + std::to_string(figures.count) + "," + csv_number(figures.precision) + "," +
            csv_number(figures.recall) + "\n";
  }
  return text;
}

void require_confusion_name(const std::filesystem::path& file) {
  const std::string ending = file.extension().string();
  if (ending == ".csv" || ending == ".png") return;
  throw Error(ErrorCode::usage,
              "--confusion: found " + shown(file) + ", expected a name that ends in .csv or .png");
}

void write_confusion(const std::filesystem::path& file, const Confusion& confusion) {
  require_confusion_name(file);
  if (file.extension() == ".csv") {
    const std::string text = to_csv(confusion);
    write_file_atomically(file, std::as_bytes(std::span(text)));
    return;
  }
  const Image picture = picture_of(confusion);
  write_png(file, picture.width, picture.height, 4, picture.pixels);
}

}  // namespace vitrine
