// One model looking at one picture, with everything that can be looked at kept on the device: who looks at
// whom in every layer, and what the patches' tokens say. Heat maps become pixels there, too.
//
//   PictureView view(pipelines, model, preprocess);
//   if (!view.look(picture, "photo.jpg", [&](double share) { return !cancelled; })) return;
//   PictureView::Pixels pixels = view.heat({.layer = 11, .colors = color_table(ColorMap::inferno)});
//   ... copy pixels.buffer into an image, draw it over view.region() of the picture ...
//
// What is kept takes, for each layer, the queries and keys with the values between or behind them where one
// projection makes all three: DINOv2-B at 518 pixels (1370 tokens of 768 numbers, 12 layers) keeps 151 MB in
// f32, 101 MB of it queries and keys, and half of that in f16. Rollout adds one number for each pair of
// tokens (8 MB), and takes as much for each layer while it is computed.
//
// One thread at a time may use a view; others may use the device meanwhile.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "model/files/weights.h"
#include "model/look/attention_maps.h"
#include "model/pictures/picture_input.h"
#include "model/run/range_guard.h"
#include "model/vit/vit_graph.h"
#include "runtime/graph/executable.h"
#include "runtime/graph/pipeline_store.h"
#include "runtime/ops/explain/heat.h"

namespace vitrine {

struct PictureViewOptions {
  DType dtype = DType::f32;
  std::optional<Result> result = {};  // the model's own when left out
  PlanOptions plan = {};              // its slice_seconds: how long others wait for their turn at most, about
  Warn warn = {};                     // as in RunnerOptions
  bool patch_features = false;        // they will be asked for
};

class PictureView {
 public:
  // Pipelines and model must outlive the view. The preprocessing must make pictures of the size that the
  // model is configured for, else Error(usage).
  PictureView(PipelineStore& pipelines, const Model& model, Preprocess preprocess,
              PictureViewOptions options = {});
  ~PictureView();

  // Runs the model. `preparing` is asked while weights are loaded and shaders compiled, where that is to be
  // done, and `go_on` between slices; false when one said no, and there is nothing to see then.
  // Throws Error(failed) that begins with `name` for a picture that can't be shown to the model; what was
  // seen before stays.
  bool look(Picture picture, const std::string& name, const GoOn& go_on = {}, const GoOn& preparing = {});
  bool has_picture() const { return seen_; }

  // For a runner of the same model, on the same thread.
  const std::shared_ptr<WeightStore>& weights() const { return weights_; }

  // What follows needs a picture, else Error(usage).

  // The bits that PictureRunner gives for the picture alone.
  std::span<const float> result() const;
  Result result_kind() const { return options_.result.value_or(natural_result(model_.config)); }
  double seconds() const { return seconds_; }  // how long look() took the device and those it let go first
  const Executable& executable() const;
  // The times of each of its steps. Nothing when it was told to stop; what was seen stays.
  std::optional<Profile> profile(const GoOn& go_on = {});
  // Where the patches lie in the picture.
  const MapRegion& region() const { return region_; }

  // Colors of a map's numbers from the smallest to the largest, red in the lowest byte (images/color_map.h
  // has some).
  using Colors = std::array<uint32_t, heat_colors>;
  struct HeatChoice {
    std::optional<uint64_t> layer = {};  // as in MapChoice; none: rollout
    std::optional<uint64_t> token = {};  // none: pooled_rows()
    Colors colors = {};
    bool operator==(const HeatChoice&) const = default;
  };
  // RGBA8 on the device, maps one after the other, as HeatResult describes them: those of all heads and
  // their mean, or one of rollout; or the patches' colors. The next call of the same function overwrites
  // them. Their writes are finished: whoever copies them needs a barrier from compute to transfer in front.
  struct Pixels {
    const Buffer* buffer = nullptr;
    std::shared_ptr<const void> owner;  // of the buffer, which a larger picture would replace
    uint64_t offset = 0;
    uint32_t width = 0, height = 0, maps = 1;
  };
  // One dispatch; of rollout, what roll_out() does comes before it once a picture.
  Pixels heat(const HeatChoice& choice);
  // Rollout through all layers, for all tokens. False when it was told to stop.
  bool roll_out(const GoOn& go_on = {});
  // The numbers that heat() shows of this choice: [heads + 1, rows, columns], or [1, ..] of rollout.
  std::vector<float> weights(const HeatChoice& choice);

  // The first three principal components of the patches' tokens, behind the model's last norm, as
  // principal_colors() has them: [grid height, grid width]. Computed once a picture. Nothing when it was told
  // to stop.
  std::optional<Pixels> principal_colors(const GoOn& go_on = {});

  // What patch_features() (model/look/patch_features.h) makes of the picture, [patches, feature width], on
  // the host. Nothing when it was told to stop. Error(usage) where the options didn't say that it would be
  // asked for.
  std::optional<std::vector<float>> patch_features(const GoOn& go_on = {});
  // A number of each patch as heat() shows a map: one, which the next call of either overwrites.
  Pixels paint(std::span<const float> numbers, const Colors& colors);

  // Dispatches of the last call of what makes pixels; 0 where it had nothing to compute.
  uint32_t last_dispatches() const { return last_dispatches_; }

 private:
  // Where a layer's attention lies.
  struct KeptValue {
    std::string state;
    Shape shape;
    DType dtype = DType::f32;
  };
  struct KeptLayer {
    KeptValue q, k, lse;
    AttentionOptions options;  // without a bias, which is a value of the model's graph
    std::string bias = {};     // the constant's name; empty: none
    Shape bias_shape = {};
    // The options for this layer in a graph of its own.
    AttentionOptions options_in(Graph& graph) const;
  };
  enum class Source : uint8_t { attention, pooled_rows, rollout, pooled_rollout };
  using Painter = std::pair<Source, uint64_t>;  // and which layer

  void require_picture() const;
  void require_choice(const HeatChoice& choice) const;
  ViTGraphOptions picture_options() const;
  BlockTaps taps();
  bool make_executable(const GoOn& preparing);
  void forget_all();
  void fill(Executable& executable, const PicturePart& part) const;
  void take_result();
  bool run(Executable& executable, const GoOn& go_on) const;
  Plan plan_of(std::shared_ptr<const Graph> graph) const;
  uint64_t tail_of_looks() const;
  std::unique_ptr<Executable> make(Plan plan, const GoOn& preparing = {});
  std::shared_ptr<const Graph> features_graph() const;
  std::shared_ptr<const Graph> patch_features_graph() const;
  std::shared_ptr<const Graph> rollout_graph() const;
  std::shared_ptr<const Graph> painter_graph(const Painter& painter) const;
  Painter painter_of(const HeatChoice& choice) const;
  uint32_t maps_of(const HeatChoice& choice) const;

  PipelineStore& pipelines_;
  const Model& model_;
  Preprocess preprocess_;
  PictureViewOptions options_;
  std::vector<float> values_;
  PictureCapacity largest_, capacity_;
  RangeGuard guard_;
  std::shared_ptr<WeightStore> weights_;
  std::shared_ptr<StateStore> states_;  // shared with Pixels
  uint64_t tail_bytes_ = 0;             // as far as any plan may read behind a state

  // Made for the states that there are.
  std::map<uint64_t, KeptLayer> layers_;
  std::unique_ptr<Executable> model_run_, features_run_, patch_features_run_, paint_run_;
  std::map<Painter, std::unique_ptr<Executable>> painters_;

  bool seen_ = false, rolled_out_ = false, features_seen_ = false;
  std::optional<HeatChoice> shown_;
  std::vector<float> result_;
  MapRegion region_;
  double seconds_ = 0;
  uint32_t last_dispatches_ = 0;
};

}  // namespace vitrine
