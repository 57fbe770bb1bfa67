// Data sets of encoded pictures, each of a size of its own, wherever they lie.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "images/image.h"
#include "runtime/util/error.h"
#include "train/data/dataset.h"

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

class PictureDataset : public Dataset {
 public:
  // On the host: for a few pictures to look at, and for statistics. A training has the device do it.
  void read(uint64_t i, std::span<uint8_t> pixels) const override;
  std::shared_ptr<const Picture> picture(uint64_t i) const override;

 protected:
  // Error(usage) that begins with `name` where the options don't say what pictures are to become.
  PictureDataset(std::string name, const DatasetOptions& options);

  // Both may be called from several threads at once.
  virtual Image decode(uint64_t i) const = 0;
  virtual std::string name_of(uint64_t i) const = 0;  // for messages

 private:
  // Decoded pictures, those that are asked for first, as many as there is room for.
  mutable std::mutex mutex_;
  mutable std::unordered_map<uint64_t, std::shared_ptr<const Picture>> kept_;
  mutable uint64_t room_;
};

}  // namespace vitrine
