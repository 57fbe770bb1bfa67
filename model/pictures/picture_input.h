// Preprocessing as the first nodes of a graph. The graph knows the size of the result and how much room
// there is for pictures, not the pictures' sizes: those are data, written before each run.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "model/pictures/preprocess.h"
#include "runtime/graph/executable.h"
#include "runtime/graph/graph.h"

namespace vitrine {

// Four bytes a pixel, red, green and blue first, rows from top to bottom. A model of one channel looks at
// the first byte.
struct Picture {
  uint32_t width = 0, height = 0;
  std::vector<uint8_t> pixels;
};

// A picture with what is to be done with it. Without one it is blank_picture()'s, or none at all.
struct PicturePart {
  std::shared_ptr<const Picture> picture;
  PreparedPicture prepared;
  std::vector<uint32_t> operations = {};  // of a training: what is done to the result (operation_words())
};

// Room for the pictures of a batch. Powers of two, so that few recordings serve all batches.
struct PictureCapacity {
  uint64_t pixels = 0, blocks = 0, words = 0;

  // Enough for `needs`, and at most `largest` where that is enough.
  static PictureCapacity covering(const ResampleNeeds& needs, const PictureCapacity& largest);
  // What a batch may have on this device when it makes pictures of this width.
  static PictureCapacity largest(const Capabilities& device, uint64_t width);
  bool holds(const ResampleNeeds& needs) const;
  bool operator==(const PictureCapacity&) const = default;
};

// What add_picture_input makes: the pictures resized and cropped [B, H, W] u32, and the numbers
// [B, C, H, W] f32 that a model is given.
struct PictureInput {
  ValueId resized, image;
};

// Declares the inputs "pixels", "resample" and "values" and appends the preprocessing.
PictureInput add_picture_input(Graph& graph, const Preprocess& preprocess, uint64_t channels, uint64_t batch,
                               const PictureCapacity& capacity);

// The first half: declares the inputs "pixels" and "resample", and gives the resized pictures.
ValueId add_resized_pictures(Graph& graph, const Preprocess& preprocess, uint64_t batch,
                             const PictureCapacity& capacity);

// Throws Error(usage) where pictures are made of another size than this, a model's.
void require_size(const Preprocess& preprocess, uint64_t height, uint64_t width);

// Makes a picture ready. One that is too large for the device is resized here, on the host, with the
// same result. Throws Error(failed) that begins with `name`.
PicturePart prepare_part(const Preprocess& preprocess, Picture picture, const PictureCapacity& largest,
                         const std::string& name);
// The same of one for which it is decided what is to be done.
PicturePart part_of(std::shared_ptr<const Picture> picture, PreparedPicture prepared,
                    const PictureCapacity& largest);

// The result's pixels, resized on the host, and such pixels as a picture of this width, which is made in
// `memory`.
std::vector<uint32_t> resized_on_host(const Picture& picture, const PreparedPicture& prepared);
Picture picture_of(std::span<const uint32_t> pixels, uint32_t width, std::vector<uint8_t> memory = {});

// Writes the inputs of one run. There must be as many parts as the graph's batch.
void write_picture_input(Executable& executable, uint32_t set, std::span<const PicturePart> parts,
                         std::span<const float> values);
// Those of add_resized_pictures() for a batch of `batch`: `parts` are its pictures from `first` on. The
// others are none: what lies in their places stays.
void write_resized_input(Executable& executable, uint32_t set, std::span<const PicturePart> parts,
                         uint64_t batch, uint64_t first);

}  // namespace vitrine
