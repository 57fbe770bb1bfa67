// vitrine features --head: a linear head on the feature maps, and what is written of it.
#pragma once

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "model/look/linear_head.h"

namespace vitrine::cli {

struct HeadFlags {
  std::string file, range;
};

// Declares --head and --depth-range.
void add_head_flags(CLI::App& command, HeadFlags& flags);

class HeadOutput {
 public:
  // Reads the head; errors begin with its file. `layers`: those of --layer, or none.
  HeadOutput(const HeadFlags& flags, const ViTConfig& config, HeadChoice choice);

  const HeadInput& input() const { return input_; }
  // Behind a run of the model: of each pixel that it was shown, the class or the distance. Written as .npy to
  // `out` and in colors to `colors`, each where it isn't empty.
  void write(PipelineStore& pipelines, const DenseFeatures& dense, const Executable& executable,
             const std::string& out, const std::string& colors);
  // What was found, for people and for programs.
  void add_to(nlohmann::ordered_json& line) const;
  void print() const;

 private:
  LinearHead head_;
  HeadInput input_;
  DepthRange range_;
  Extent grid_, size_;
  std::vector<uint32_t> classes_;
  std::vector<float> depths_;
};

}  // namespace vitrine::cli
