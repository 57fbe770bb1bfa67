// The pictures that are open: files in an order, one of them selected, with thumbnails. No picture is decoded
// on the UI's thread, and of a whole folder only the thumbnails that were looked at lately are in memory.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/desktop/engine/worker.h"
#include "images/image.h"

namespace vitrine::desktop {

struct Thumbnail {
  enum class State : uint8_t { waiting, ready, broken };
  State state = State::waiting;
  std::shared_ptr<const Image> image;  // when ready: at most `thumbnail_side` pixels long
  uint32_t width = 0, height = 0;      // when ready: of the whole picture
  std::string error;                   // when broken: one sentence
};

// Everything here belongs to the UI's thread.
class PictureLibrary {
 public:
  static constexpr uint32_t thumbnail_side = 128;
  static constexpr size_t thumbnails_kept = 512;

  // Jobs go to `worker`, which must outlive the library. Give it one of its own: then nobody who looks at a
  // picture waits for thumbnails, and cancelling one stops not the other.
  explicit PictureLibrary(Worker& worker);
  ~PictureLibrary();
  PictureLibrary(const PictureLibrary&) = delete;
  PictureLibrary& operator=(const PictureLibrary&) = delete;

  // Files and folders instead of what is open. They are listed in a job, and the list changes in a later
  // frame: then `opened` is called, with the first one selected. Where nothing is found, an error of the
  // worker says so, and what was open stays.
  void open(std::vector<std::filesystem::path> named, std::function<void()> opened = {});

  // The list in another order: the largest score first, pictures without one behind all others, and those of
  // equal scores as they were opened, as all are without a function. The selected picture stays selected.
  using Score = std::function<std::optional<float>(const std::filesystem::path&)>;
  void sort_by(const Score& score);
  // Another number whenever that has changed what stands where.
  uint64_t order_number() const;

  // Pictures are counted as they are listed.
  size_t size() const;
  bool empty() const { return size() == 0; }
  // Another number for every other list, and when its pictures are turned: what was kept by a picture's
  // number is about other pixels then.
  uint64_t list_number() const;
  // Of the picture in this place, in whatever order.
  size_t number(size_t index) const;
  const std::filesystem::path& path(size_t index) const;
  std::string name(size_t index) const;  // the file's own, fit to be shown

  std::optional<size_t> selected() const;
  void select(size_t index);
  // False at the end, where the selection stays.
  bool next();
  bool previous();

  // Asks for it where it isn't there yet: call it for those that are visible, in every frame.
  const Thumbnail& thumbnail(size_t index);
  // Thumbnails as the pictures' EXIF data asks to turn them; else as they are stored.
  void turn_by_exif(bool on);
  // What was found out elsewhere: the file can't be read.
  void mark_broken(size_t index, std::string error);

 private:
  struct State;
  std::shared_ptr<State> state_;  // jobs that outlive the library find it gone
  Worker& worker_;
};

}  // namespace vitrine::desktop
