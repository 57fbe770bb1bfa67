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

// Refuses pictures of another size than the model's; an empty `expected` takes all.
void require_shape(const std::string& name, const SampleShape& found, const SampleShape& expected);

}  // namespace vitrine
