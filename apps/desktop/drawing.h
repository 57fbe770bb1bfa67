// The canvas on which a digit is drawn, and what the shipped model says of it: state of the UI thread.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>

#include "apps/desktop/engine/digit_canvas.h"
#include "apps/desktop/engine/digit_reader.h"
#include "apps/desktop/engine/export.h"
#include "apps/desktop/gpu/texture.h"
#include "runtime/graph/pipeline_store.h"

namespace vitrine::desktop {

class Drawing {
 public:
  // `wake` is called from the reader's thread.
  Drawing(PipelineStore& pipelines, TextureStore& textures, std::optional<std::filesystem::path> model,
          std::function<void()> wake);

  DigitCanvas canvas;

  // Once a frame, while the canvas is on the screen.
  void update();
  const std::optional<DigitAnswer>& answer() const { return answer_; }
  const Texture* seen() const { return seen_.get(); }  // what the model was shown
  std::optional<std::string> error() const;
  std::vector<std::string> labels() const;
  bool busy() const { return reader_ && reader_->busy(); }
  std::optional<size_t> best() const;  // the answer's class
  std::vector<CsvRow> rows() const;    // of the answer

 private:
  PipelineStore& pipelines_;
  TextureStore& textures_;
  std::optional<std::filesystem::path> model_;
  std::function<void()> wake_;
  std::unique_ptr<DigitReader> reader_;  // made when the canvas is first shown
  std::optional<DigitAnswer> answer_;
  TexturePointer seen_;
};

}  // namespace vitrine::desktop
