// Decodes pictures as vitrine classify does and does nothing with them: what decoding alone costs.
#include <chrono>
#include <cstdio>
#include <filesystem>

#include "images/decode_queue.h"
#include "images/picture_files.h"
#include "runtime/util/error.h"

int main(int argc, char** argv) {
  try {
    const std::vector<std::filesystem::path> named(argv + 1, argv + argc);
    const auto start = std::chrono::steady_clock::now();
    vitrine::DecodeQueue queue(vitrine::encoded_in(vitrine::picture_files(named)));
    uint64_t pictures = 0, pixels = 0;
    while (const auto decoded = queue.next()) {
      if (!decoded->image) continue;
      ++pictures;
      pixels += decoded->image->pixel_count();
    }
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    std::printf("{\"pictures\": %llu, \"pixels\": %llu, \"seconds\": %.6f}\n",
                static_cast<unsigned long long>(pictures), static_cast<unsigned long long>(pixels),
                seconds.count());
    return 0;
  } catch (const vitrine::Error& error) {
    std::fprintf(stderr, "decode_folder: %s\n", error.what());
    return error.exit_status();
  }
}
