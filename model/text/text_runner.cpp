#include "model/text/text_runner.h"

#include <algorithm>
#include <cstring>

#include "model/files/file_dtype.h"
#include "model/run/runner.h"
#include "runtime/tune/choice_store.h"
#include "runtime/util/error.h"
#include "runtime/util/split.h"
#include "runtime/util/text.h"

namespace vitrine {
namespace {

// A row of a table that stays in its file: of a quarter of a million, a batch needs a thousand.
void read_row(const StoredTensor& table, uint64_t row, std::span<float> values) {
  const uint64_t bytes = values.size() * bits_of(table.info->dtype) / 8;
  to_floats(table.info->dtype, table.bytes().subspan(row * bytes, bytes), values);
}

}  // namespace

TextRunner::TextRunner(PipelineStore& pipelines, const TextModel& model, TextRunnerOptions options)
    : pipelines_(pipelines),
      model_(model),
      options_(std::move(options)),
      weights_(pipelines, *model.constants),
      positions_(model.positions.floats()) {
  options_.plan = with_stored_choices(std::move(options_.plan), pipelines.device().capabilities());
}

Executable& TextRunner::executable(uint64_t batch) {
  std::unique_ptr<Executable>& made = executables_[batch];
  if (!made) {
    const TextConfig& config = model_.config;
    GraphBuilder builder(DType::f32);
    Graph& graph = builder.graph();
    const ValueId tokens = graph.input("tokens", {batch, config.length, config.blocks.dim});
    const ValueId rows = graph.input("rows", {batch}, DType::u32);
    graph.output(TextTower(config)(builder, tokens, rows), "texts");
    made = std::make_unique<Executable>(
        weights_, make_plan(builder.finish(), pipelines_.device().capabilities(), options_.plan));
  }
  return *made;
}

uint64_t pooled_token(const TextConfig& config, std::span<const uint32_t> ids, const std::string& text) {
  if (config.kind == TextKind::siglip) return config.length - 1;
  constexpr uint32_t as_published = 2;  // whatever the end's own number: it is the largest
  const auto found = config.end_of_text == as_published ? std::ranges::max_element(ids)
                                                        : std::ranges::find(ids, config.end_of_text);
  if (found == ids.end()) {
    throw Error(ErrorCode::bad_file, "the tokenizer ends " + in_quotes(text) + " without the token " +
                                         std::to_string(config.end_of_text) +
                                         ", which config.json calls the end (eos_token_id)");
  }
  return static_cast<uint64_t>(found - ids.begin());
}

std::vector<float> TextRunner::run(const std::vector<std::string>& texts) {
  const TextConfig& config = model_.config;
  const uint64_t dim = config.blocks.dim, most = std::min<uint64_t>(options_.batch, texts.size());
  std::vector<float> results;
  std::vector<float> row(dim);
  for (size_t first = 0; first < texts.size(); first += most) {
    const uint64_t count = std::min<uint64_t>(most, texts.size() - first);
    Executable& run = executable(count);
    const std::span<std::byte> tokens = run.input(run.input_index("tokens")),
                               rows = run.input(run.input_index("rows"));
    for (uint64_t i = 0; i < count; ++i) {
      const std::string& text = texts[first + i];
      const std::vector<uint32_t> ids = model_.tokenizer->encode(text, config.length);
      const auto pooled = static_cast<uint32_t>(i * config.length + pooled_token(config, ids, text));
      std::memcpy(rows.data() + i * sizeof pooled, &pooled, sizeof pooled);
      for (uint64_t at = 0; at < config.length; ++at) {
        read_row(model_.tokens, ids[at], row);
        for (uint64_t d = 0; d < dim; ++d) row[d] += positions_[at * dim + d];
        std::memcpy(tokens.data() + (i * config.length + at) * dim * sizeof(float), row.data(),
                    dim * sizeof(float));
      }
    }
    run.run();
    const auto out = run.output(0);
    results.resize(results.size() + count * config.width);
    std::memcpy(results.data() + results.size() - count * config.width, out.data(),
                count * config.width * sizeof(float));
  }
  return results;
}

std::vector<std::string> labels_in(std::string_view text) {
  std::vector<std::string> labels;
  for (const std::string_view part : split(text, ',')) {
    if (const std::string_view label = trimmed(part); !label.empty()) labels.emplace_back(label);
  }
  return labels;
}

std::string with_label(std::string pattern, std::string_view label) {
  for (size_t at = pattern.find("{}"); at != std::string::npos; at = pattern.find("{}", at + label.size()))
    pattern.replace(at, 2, label);
  return pattern;
}

std::vector<float> label_vectors(TextRunner& runner, const std::vector<std::string>& labels,
                                 const std::vector<std::string>& templates) {
  std::vector<std::string> texts;
  for (const std::string& label : labels) {
    if (templates.empty()) texts.push_back(label);
    for (const std::string& pattern : templates) texts.push_back(with_label(pattern, label));
  }
  std::vector<float> vectors = runner.run(texts);
  if (labels.empty()) return vectors;
  const size_t width = vectors.size() / texts.size(), each = texts.size() / labels.size();
  for (size_t i = 0; i < texts.size(); ++i) normalize(std::span(vectors).subspan(i * width, width));
  if (each == 1) return vectors;
  std::vector<float> means(labels.size() * width);
  for (size_t label = 0; label < labels.size(); ++label) {
    for (size_t d = 0; d < width; ++d) {
      double sum = 0;
      for (size_t i = 0; i < each; ++i) sum += static_cast<double>(vectors[(label * each + i) * width + d]);
      means[label * width + d] = static_cast<float>(sum / static_cast<double>(each));
    }
    normalize(std::span(means).subspan(label * width, width));
  }
  return means;
}

}  // namespace vitrine
