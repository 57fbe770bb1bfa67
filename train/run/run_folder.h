// The folder R that a training writes to:
//   checkpoint.safetensors, training.json   what it goes on from (checkpoint.h), and its settings
//   checkpoints/epoch-000012.safetensors    checkpoints of the last epochs' ends, where several are kept
//   best, last                              models, where it is validated: R itself is read as R/best
//   model.safetensors, config.json, ...     the model, where it isn't
//   adapter_model.safetensors, ...          in place of model.safetensors, of a training with LoRA
//   log.csv, events.out.tfevents...         what it told on the way (training_log.h)
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace vitrine {

std::filesystem::path checkpoint_in(const std::filesystem::path& out);
std::filesystem::path settings_in(const std::filesystem::path& out);
std::filesystem::path best_in(const std::filesystem::path& out);
std::filesystem::path last_in(const std::filesystem::path& out);
std::filesystem::path checkpoint_of_epoch(const std::filesystem::path& out, uint64_t epoch);

// What write_model() leaves in a folder.
const std::vector<std::string>& model_file_names();

// Keeps the checkpoint as that of so many epochs besides, and takes those away that are older than the last
// `keep`, and those of later epochs, which come again. With keep 1 nothing is done. Doing it twice does it
// once.
void keep_checkpoint(const std::filesystem::path& out, uint64_t epochs, uint64_t keep);

// Removes what trainings that were killed left unfinished in `out`: each may be as large as a checkpoint.
void remove_left_behind_in(const std::filesystem::path& out);

// Makes `to` the same model as `from`, whole or not at all. No bytes are copied where the file system has
// hard links.
void link_model(const std::filesystem::path& from, const std::filesystem::path& to);

}  // namespace vitrine
