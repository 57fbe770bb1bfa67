#include "train/data/picture_dataset.h"

#include <utility>
#include <vector>

#include "runtime/util/text.h"

namespace vitrine {

DecodeOptions decoding(const Preprocess& preprocess, std::optional<bool> exif) {
  return {.exif = exif.value_or(preprocess.exif), .white = preprocess.converts_rgb};
}

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

PictureDataset::EncodedPicture PictureDataset::encoded_file(const std::filesystem::path& path) {
  return {.file = read_picture_file(path), .name = shown(path)};
}

void PictureDataset::read(uint64_t i, std::span<uint8_t> pixels) const {
  const std::shared_ptr<const Picture> picture = this->picture(i);
  const PreparedPicture prepared = prepare_picture(*preprocess_, picture->height, picture->width, name_);
  const std::vector<uint32_t> resized = resized_on_host(*picture, prepared);
  for (uint32_t c = 0; c < shape_.channels; ++c) {
    const std::span<uint8_t> plane = pixels.subspan(c * shape_.pixels(), shape_.pixels());
    for (size_t p = 0; p < plane.size(); ++p) plane[p] = static_cast<uint8_t>(resized[p] >> (8 * c));
  }
}

std::shared_ptr<const Picture> PictureDataset::kept(uint64_t i) const {
  const std::lock_guard lock(mutex_);
  const auto kept = kept_.find(i);
  return kept == kept_.end() ? nullptr : kept->second;
}

// Said as soon as a picture's size is known, and here, where the file's name is.
void PictureDataset::require_geometry(uint32_t height, uint32_t width, const std::string& name) const {
  picture_geometry(*preprocess_, height, width, name);
}

std::shared_ptr<const Picture> PictureDataset::picture(uint64_t i) const {
  if (auto kept = this->kept(i)) return kept;
  auto decoded = as_data_file([&] {
    const EncodedPicture from = encoded(i);
    Image image = decode_image(from.file, from.name, decoding(*preprocess_));
    require_geometry(image.height, image.width, from.name);
    return std::make_shared<const Picture>(picture_for(std::move(image), shape_.channels));
  });
  const std::lock_guard lock(mutex_);
  if (decoded->pixels.size() > room_) {
    room_ = 0;                                    // the next one asks nobody
  } else if (kept_.emplace(i, decoded).second) {  // another thread may have been at it
    room_ -= decoded->pixels.size();
  }
  return decoded;
}

PicturePatch PictureDataset::patch(uint64_t i, const ChooseArea& choose) const {
  // What is kept is kept whole: the next epoch looks at another rectangle of it.
  std::shared_ptr<const Picture> whole = kept(i);
  if (!whole && has_room()) whole = picture(i);
  if (whole) {
    choose(whole->height, whole->width);
    return {.picture = std::move(whole)};
  }
  return as_data_file([&]() -> PicturePatch {
    const EncodedPicture from = encoded(i);
    const ChooseArea checked = [&](uint32_t height, uint32_t width) {
      require_geometry(height, width, from.name);
      return choose(height, width);
    };
    ImagePart part = decode_part(from.file, from.name, decoding(*preprocess_), checked, buffers_->take());
    return {.picture = buffers_->share(picture_for(std::move(part.image), shape_.channels)),
            .top = part.top,
            .left = part.left};
  });
}

bool PictureDataset::has_room() const {
  const std::lock_guard lock(mutex_);
  return room_ != 0;
}

}  // namespace vitrine
