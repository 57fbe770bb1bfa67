#include "apps/desktop/drawing.h"

#include <algorithm>

namespace vitrine::desktop {

Drawing::Drawing(PipelineStore& pipelines, TextureStore& textures, std::optional<std::filesystem::path> model,
                 std::function<void()> wake)
    : pipelines_(pipelines), textures_(textures), model_(std::move(model)), wake_(std::move(wake)) {}

void Drawing::update() {
  if (!model_) return;
  if (!reader_) reader_ = std::make_unique<DigitReader>(pipelines_, *model_, wake_);
  reader_->ask(canvas);
  std::optional<DigitAnswer> answer = reader_->answer();
  if (!answer || (answer_ && answer_->version == answer->version)) return;
  answer_ = std::move(answer);
  if (answer_->probabilities.empty()) {
    seen_.reset();
    return;
  }
  const GreyPicture& picture = answer_->seen;
  std::vector<uint8_t> pixels(4 * picture.pixels.size(), 255);
  for (size_t i = 0; i < picture.pixels.size(); ++i) std::fill_n(&pixels[4 * i], 3, picture.pixels[i]);
  seen_ = textures_.make_or_keep(seen_, picture.size, picture.size, Sampling::sharp);
  textures_.write(seen_, pixels);
}

std::optional<std::string> Drawing::error() const {
  if (!model_) return "the digit model that comes with Vitrine was not found";
  return reader_ ? reader_->error() : std::nullopt;
}

std::vector<std::string> Drawing::labels() const {
  return reader_ ? reader_->labels() : std::vector<std::string>{};
}

std::optional<size_t> Drawing::best() const {
  if (!answer_ || answer_->probabilities.empty()) return std::nullopt;
  return static_cast<size_t>(std::ranges::max_element(answer_->probabilities) -
                             answer_->probabilities.begin());
}

std::vector<CsvRow> Drawing::rows() const {
  std::vector<CsvRow> rows;
  if (!best()) return rows;
  const std::vector<std::string> names = labels();
  rows.push_back({"label", "probability"});
  for (size_t i = 0; i < answer_->probabilities.size(); ++i) {
    rows.push_back({i < names.size() ? names[i] : std::to_string(i),
                    csv_number(static_cast<double>(answer_->probabilities[i]))});
  }
  return rows;
}

}  // namespace vitrine::desktop
