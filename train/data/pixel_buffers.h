// Memory of pictures that nobody looks at any more, for those to come. Taken from the system anew for each, a
// photograph's costs as much time as resizing it.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "model/pictures/picture_input.h"

namespace vitrine {

// May be used by several threads at once, and has to be held by a shared pointer.
class PixelBuffers : public std::enable_shared_from_this<PixelBuffers> {
 public:
  // Of any size and with any content; empty where there is none.
  std::vector<uint8_t> take();
  // Whose pixels come back here when nobody holds it any more.
  std::shared_ptr<const Picture> share(Picture picture);

 private:
  void give(std::vector<uint8_t> buffer);

  std::mutex mutex_;
  std::vector<std::vector<uint8_t>> free_;
};

}  // namespace vitrine
