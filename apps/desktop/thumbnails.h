// Thumbnails of the library as textures: those that are on the screen, and some that were.
#pragma once

#include <cstdint>
#include <map>

#include "apps/desktop/engine/picture_library.h"
#include "apps/desktop/gpu/texture.h"

namespace vitrine::desktop {

class Thumbnails {
 public:
  Thumbnails(TextureStore& textures, PictureLibrary& library) : textures_(textures), library_(library) {}

  // Null until it is there, and for broken pictures; asks for it.
  const Texture* texture(size_t index);
  // Once a frame: lets those go that nobody asked for lately.
  void end_frame();

 private:
  static constexpr size_t most = 200;
  struct Entry {
    TexturePointer texture;
    uint64_t used = 0;
  };
  TextureStore& textures_;
  PictureLibrary& library_;
  std::map<size_t, Entry> entries_;
  uint64_t list_ = 0, frame_ = 0;
};

}  // namespace vitrine::desktop
