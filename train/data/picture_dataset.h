// Data sets of encoded pictures, each of a size of its own, wherever they lie.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "images/image.h"
#include "runtime/util/error.h"
#include "train/data/dataset.h"
#include "train/data/pixel_buffers.h"

namespace vitrine {

// Work whose failure means a broken data file here.
template <typename Work>
auto as_data_file(const Work& work) {
  try {
    return work();
  } catch (const Error& error) {
    throw Error(ErrorCode::bad_file, error.what());
  }
}

// As a model of this many channels looks at it.
Picture picture_for(Image image, uint64_t channels);
// How files become pixels where a preprocessing is going to take them; `exif` goes before what it says.
DecodeOptions decoding(const Preprocess& preprocess, std::optional<bool> exif = {});

class PictureDataset : public Dataset {
 public:
  // On the host: for a few pictures to look at, and for statistics. A training has the device do it.
  void read(uint64_t i, std::span<uint8_t> pixels) const override;
  std::shared_ptr<const Picture> picture(uint64_t i) const override;
  PicturePatch patch(uint64_t i, const ChooseArea& choose) const override;

 protected:
  // Error(usage) that begins with `name` where the options don't say what pictures are to become.
  PictureDataset(std::string name, const DatasetOptions& options);

  struct EncodedPicture {
    std::vector<std::byte> file;
    std::string name;  // for messages
  };
  static EncodedPicture encoded_file(const std::filesystem::path& path);
  // May be called from several threads at once.
  virtual EncodedPicture encoded(uint64_t i) const = 0;

 private:
  std::shared_ptr<const Picture> kept(uint64_t i) const;
  bool has_room() const;
  void require_geometry(uint32_t height, uint32_t width, const std::string& name) const;

  // Decoded pictures, those that are asked for first, as many as there is room for.
  mutable std::mutex mutex_;
  mutable std::unordered_map<uint64_t, std::shared_ptr<const Picture>> kept_;
  mutable uint64_t room_;
  const std::shared_ptr<PixelBuffers> buffers_ =
      std::make_shared<PixelBuffers>();  // of those that aren't kept
};

}  // namespace vitrine
