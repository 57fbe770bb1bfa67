#include "train/data/picture_dataset.h"

#include <cstring>
#include <utility>
#include <vector>

#include "model/pictures/host_resample.h"

namespace vitrine {

Picture picture_for(Image image, uint64_t channels) {
  if (channels == 1) make_grey(image);
  return {.width = image.width, .height = image.height, .pixels = std::move(image.pixels)};
}

PictureDataset::PictureDataset(std::string name, const DatasetOptions& options) : room_(options.kept_bytes) {
  name_ = std::move(name);
  shape_ = options.shape;
  if ((shape_.channels != 1 && shape_.channels != 3) || shape_.height == 0 || shape_.width == 0) {
    throw Error(ErrorCode::usage,
                name_ + ": found pictures of any size and the size " + shape_.to_string() +
                    ", expected the size (1 or 3 channels, height, width) that they are to get");
  }
  const std::optional<Preprocess>& p = options.preprocess;
  if (p && (p->height() != shape_.height || p->width() != shape_.width)) {
    throw Error(ErrorCode::usage, name_ + ": found preprocessing to " + std::to_string(p->height()) + " x " +
                                      std::to_string(p->width()) + " pixels, expected the model's " +
                                      std::to_string(shape_.height) + " x " + std::to_string(shape_.width));
  }
  preprocess_ = p ? *p : cover_and_crop(shape_.height, shape_.width, {0}, {1});
}

void PictureDataset::read(uint64_t i, std::span<uint8_t> pixels) const {
  const std::shared_ptr<const Picture> picture = this->picture(i);
  const PreparedPicture prepared = prepare_picture(*preprocess_, picture->height, picture->width, name_of(i));
  std::vector<uint32_t> packed(picture->pixels.size() / 4);
  std::memcpy(packed.data(), picture->pixels.data(), picture->pixels.size());
  const std::vector<uint32_t> resized = resample_on_host(packed, picture->width, prepared);
  for (uint32_t c = 0; c < shape_.channels; ++c) {
    const std::span<uint8_t> plane = pixels.subspan(c * shape_.pixels(), shape_.pixels());
    for (size_t p = 0; p < plane.size(); ++p) plane[p] = static_cast<uint8_t>(resized[p] >> (8 * c));
  }
}

std::shared_ptr<const Picture> PictureDataset::picture(uint64_t i) const {
  {
    const std::lock_guard lock(mutex_);
    if (const auto kept = kept_.find(i); kept != kept_.end()) return kept->second;
  }
  Image image = as_data_file([&] { return decode(i); });
  // Said here, where the file's name is known.
  as_data_file([&] { return picture_geometry(*preprocess_, image.height, image.width, name_of(i)); });
  auto decoded = std::make_shared<const Picture>(picture_for(std::move(image), shape_.channels));
  const std::lock_guard lock(mutex_);
  // Another thread may have been at it.
  if (decoded->pixels.size() <= room_ && kept_.emplace(i, decoded).second) room_ -= decoded->pixels.size();
  return decoded;
}

}  // namespace vitrine
