#include "apps/desktop/exports.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "images/png_writer.h"
#include "runtime/util/error.h"

namespace vitrine::desktop {
namespace {

std::string job_name(const std::filesystem::path& to) { return "Writing " + to.filename().string(); }

// What of the window's pixels lies in the area; nothing where that is empty.
std::optional<Image> part_of(const Image& whole, const Area& area, float pixels_across, float pixels_down) {
  const auto at = [](float position, uint32_t limit) {
    return static_cast<uint32_t>(std::clamp(position, 0.0f, static_cast<float>(limit)));
  };
  const uint32_t left = at(area.left * pixels_across, whole.width);
  const uint32_t top = at(area.top * pixels_down, whole.height);
  const uint32_t right = at((area.left + area.width) * pixels_across, whole.width);
  const uint32_t bottom = at((area.top + area.height) * pixels_down, whole.height);
  if (right <= left || bottom <= top) return std::nullopt;
  Image part{right - left, bottom - top, {}};
  for (uint32_t y = top; y < bottom; ++y) {
    const auto row =
        whole.pixels.begin() + static_cast<std::ptrdiff_t>((uint64_t{y} * whole.width + left) * 4);
    part.pixels.insert(part.pixels.end(), row, row + static_cast<std::ptrdiff_t>(part.width) * 4);
  }
  return part;
}

}  // namespace

std::filesystem::path Exports::file(const std::filesystem::path& path, const std::string& extension) const {
  if (!path.empty()) return path;
  // NAME.png, NAME-2.png, ...
  const std::string stem = "vitrine-" + std::string(name_of(screen_.view()).name);
  std::error_code none;
  for (int i = 1;; ++i) {
    std::filesystem::path name = stem + (i == 1 ? "" : "-" + std::to_string(i)) + extension;
    if (!std::filesystem::exists(name, none)) return name;
  }
}

void Exports::write(const std::filesystem::path& to, std::function<void()> write_it) {
  worker_.start(job_name(to), [this, to, write_it = std::move(write_it)](Progress&) {
    write_it();
    worker_.post_to_ui([this, to] { notices_.say("Written: " + std::filesystem::absolute(to).string()); });
  });
}

void Exports::write_picture(const std::filesystem::path& to) {
  capture_([this, to, area = screen_.exported](const Image& whole) {
    std::optional<Image> part = part_of(whole, area, screen_.pixels_across, screen_.pixels_down);
    if (!part) return notices_.say_error("there is nothing to export in this view");
    write(to, [to, picture = std::move(*part)] {
      write_png(to, picture.width, picture.height, 4, picture.pixels);
    });
  });
  screen_.show_next_frames(2);
}

void Exports::write_numbers(const std::filesystem::path& to, std::vector<CsvRow> rows) {
  if (rows.empty()) return notices_.say_error("there are no numbers to export in this view");
  write(to, [to, table = std::move(rows)] { write_csv(to, table); });
}

void Exports::write_window(const std::filesystem::path& to,
                           std::function<void(const std::string& error)> done) {
  capture_([this, to, done = std::move(done)](const Image& image) {
    worker_.start(job_name(to), [this, to, image, done](Progress&) {
      std::string error;
      try {
        write_png(to, image.width, image.height, 4, image.pixels);
      } catch (const Error& failed) {
        error = failed.what();
      }
      worker_.post_to_ui([done, error] { done(error); });
    });
  });
  screen_.show_next_frames(2);
}

}  // namespace vitrine::desktop
