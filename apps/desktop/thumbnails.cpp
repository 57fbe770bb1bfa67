#include "apps/desktop/thumbnails.h"

#include <algorithm>

namespace vitrine::desktop {

const Texture* Thumbnails::texture(size_t index) {
  if (list_ != library_.list_number()) {
    entries_.clear();
    list_ = library_.list_number();
  }
  Entry& entry = entries_[library_.number(index)];
  entry.used = frame_;
  if (!entry.texture) {
    const Thumbnail& thumbnail = library_.thumbnail(index);
    if (thumbnail.state != Thumbnail::State::ready) return nullptr;
    entry.texture = textures_.make(thumbnail.image->width, thumbnail.image->height);
    textures_.write(entry.texture, thumbnail.image->pixels);
  }
  return entry.texture.get();
}

void Thumbnails::end_frame() {
  ++frame_;
  while (entries_.size() > most) {
    const auto oldest =
        std::ranges::min_element(entries_, {}, [](const auto& entry) { return entry.second.used; });
    if (oldest->second.used + 1 >= frame_) return;
    entries_.erase(oldest);
  }
}

}  // namespace vitrine::desktop
