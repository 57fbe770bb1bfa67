#include "apps/cli/bench/bench_input.h"

#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "apps/cli/open_device.h"
#include "runtime/util/text.h"
#include "train/data/batch_loader.h"
#include "train/run/training_run.h"
#include "train/training_graph.h"

namespace vitrine::cli {

void bench_input(const std::string& config_file, const std::filesystem::path& data, bool json,
                 const CommonOptions& common) {
  TrainConfig config = read_train_config(config_file);
  config.epochs = 1;
  config.validate(config_file);
  const std::unique_ptr<Dataset> set = open_dataset(data, Split::train, dataset_options(config));
  const std::unique_ptr<Device> device = open_device(common);
  const Capabilities& capabilities = device->capabilities();
  const StepImages images = images_of(*set, config);
  const bool as_pictures = images == StepImages::pictures;
  const bool on_host = as_pictures && pictures_on_host({}, *device);
  const PictureCapacity largest = PictureCapacity::largest(capabilities, config.model.image_width);
  BatchLoader loader(*set, step_loading(config, images, largest, on_host));
  std::vector<uint8_t> bytes(as_pictures ? 0 : config.batch_size * set->shape().bytes());
  std::vector<uint32_t> labels(config.batch_size);
  const auto next = [&] {
    return as_pictures ? loader.next([](const PicturePart&) {}, labels) : loader.next(bytes, labels);
  };
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  uint64_t pictures = 0;
  while (const std::optional<Batch> batch = next()) pictures += batch->size;
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  const double rate = static_cast<double>(pictures) / seconds;
  const unsigned threads = std::max(1u, std::thread::hardware_concurrency());
  if (json) {
    const nlohmann::ordered_json line{
        {"config", config_file}, {"data", data.string()},     {"pictures", pictures}, {"seconds", seconds},
        {"threads", threads},    {"images_per_second", rate}, {"resized", on_host}};
    std::printf("%s\n", line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
    return;
  }
  const char* done = on_host       ? "decoded, resized and changed"
                     : as_pictures ? "decoded; the device resizes and changes them"
                                   : "as bytes";
  std::printf("%s, %" PRIu64 " pictures of %s by %u threads: %.1f a second, %s\n", config_file.c_str(),
              pictures, shown(data).c_str(), threads, rate, done);
}

}  // namespace vitrine::cli
