// The kinds of data sets. Each open_ gives nothing where the folder holds none of its kind; if it does, and
// the split that was asked for is missing or broken, that is an Error(bad_file).
#pragma once

#include "train/data/dataset.h"

namespace vitrine {

std::unique_ptr<Dataset> open_idx(const std::filesystem::path& folder, Split split,
                                  const DatasetOptions& options);
std::unique_ptr<Dataset> open_cifar(const std::filesystem::path& folder, Split split,
                                    const DatasetOptions& options);
std::unique_ptr<Dataset> open_image_folder(const std::filesystem::path& folder, Split split,
                                           const DatasetOptions& options);
// WebDataset's shards: train-*.tar or train/*.tar.
std::unique_ptr<Dataset> open_tar_shards(const std::filesystem::path& folder, Split split,
                                         const DatasetOptions& options);
// Hugging Face's tables of pictures: train-*.parquet, here or in data/.
std::unique_ptr<Dataset> open_parquet(const std::filesystem::path& folder, Split split,
                                      const DatasetOptions& options);
// Tables of files and their classes: train.csv.
std::unique_ptr<Dataset> open_csv(const std::filesystem::path& folder, Split split,
                                  const DatasetOptions& options);

// Refuses pictures of another size than the model's; an empty `expected` takes all.
void require_shape(const std::string& name, const SampleShape& found, const SampleShape& expected);

// Samples are numbered in 32 bits.
void require_countable(const std::string& name, uint64_t samples);

}  // namespace vitrine
