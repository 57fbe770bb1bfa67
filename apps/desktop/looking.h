// A model looking at the selected picture: what was found, what is shown of it, and the jobs that make it.
// State of the UI thread; the model itself is used by the worker alone.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/desktop/engine/export.h"
#include "apps/desktop/engine/model_session.h"
#include "apps/desktop/engine/worker.h"
#include "apps/desktop/gpu/texture.h"
#include "apps/desktop/view.h"
#include "images/color_map.h"
#include "model/look/picture_view.h"

namespace vitrine::desktop {

inline constexpr std::array color_maps{ColorMap::inferno, ColorMap::viridis, ColorMap::grey};

// What is shown of a picture's maps.
struct MapSelection {
  uint64_t layer = 0;             // one behind the last block: attention pooling, where a model has it
  std::optional<uint64_t> head;   // none: the mean of all
  std::optional<uint64_t> token;  // none: what the result is made of
  float opacity = 0.85f;
  ColorMap map = ColorMap::inferno;
  bool patch_grid = false;
};

class Looking {
 public:
  Looking(PipelineStore& pipelines, TextureStore& textures, Worker& worker, std::string dtype);
  ~Looking();

  // ---- actions ----
  void choose_model(const ModelChoice& choice);
  void look_at(const std::filesystem::path& path);
  // Pictures as their EXIF data asks to turn them, for people and the model; else as they are stored.
  // Asked for, or as the library of the model's preprocessing has it.
  void turn_by_exif(std::optional<bool> asked);
  std::optional<bool> asked_exif() const { return asked_exif_; }
  bool turns_by_exif() const;
  // What `view` would show is left out, too, until it is asked for again.
  void cancel(View view);
  void ask_again();
  bool left_out(View view) const;  // its maps were cancelled, or could not be made
  // Layer, head and token are brought into what the model has.
  void select(MapSelection selection);
  // A text's vector of length 1, for the view that shows how like it the patches are; null: there is none.
  void show_words(std::shared_ptr<const std::vector<float>> vector) { words_ = std::move(vector); }
  bool has_words() const { return words_ != nullptr; }
  void profile();
  bool asked_for_profile() const { return asked_.profile; }

  // ---- once a frame: asks for what the view shows and isn't there ----
  void update(View view);
  bool busy() const;  // something that was asked for isn't there yet
  // A frame is still to copy what a shader has written. It must not change before, so that update() asks for
  // nothing, whatever was chosen meanwhile.
  bool copying() const;
  std::vector<std::string> take_warnings() { return std::exchange(warnings_, {}); }

  // ---- the model ----
  std::shared_ptr<ModelSession> session() const { return session_; }  // null while none is open
  bool has_model() const { return session_ != nullptr; }
  const ModelChoice& model_choice() const { return choice_; }
  const std::string& model_name() const { return choice_.name; }
  const std::string& model_title() const { return choice_.title; }
  const ViTConfig* config() const;
  uint64_t layers() const;  // that have a map, attention pooling included
  uint64_t heads() const;
  std::string layer_name(uint64_t layer) const;
  std::string token_name() const;
  std::string summary() const;  // one line for the status bar
  const std::vector<StructureNode>& structure() const { return structure_; }

  // ---- the picture ----
  struct Seen {
    std::filesystem::path path;
    uint32_t width = 0, height = 0;
    TexturePointer texture;
    MapRegion region;  // of the patches, in the picture's pixels
    LookResult result;
  };
  const Seen* seen() const { return seen_ ? &*seen_ : nullptr; }
  const MapSelection& selection() const { return selection_; }
  uint64_t looks() const { return looks_; }  // how often a model has run over a picture

  // ---- maps of it, as textures ----
  struct Maps {
    TexturePointer texture;  // `count` maps below each other
    uint32_t count = 0, height = 0;
    uint32_t dispatches = 0;  // that making them took
    double seconds = 0;
    PictureView::HeatChoice choice;
    // Where it is a map of words: whose, and its numbers.
    std::shared_ptr<const std::vector<float>> words = {};
    std::vector<float> numbers = {};
  };
  // What the view shows, possibly of the selection before, until the new one is there.
  const Maps* maps(View view) const;
  const Texture* features() const { return features_.get(); }
  const std::optional<ProfileResult>& profile_result() const { return profile_; }

  // What the view's numbers are, for export: calls `take` in a later frame.
  void read_numbers(View view, std::function<void(std::vector<CsvRow>)> take);

 private:
  void drop_jobs();
  // A job of this one; what it posts counts only until the next cancel().
  void start(std::string what, Worker::Job job);
  void post(uint64_t generation, std::function<void(Looking&)> task) const;
  struct Numbers {
    View view;
    std::function<void(std::vector<CsvRow>)> take;
  };
  // A picture on its way to a texture.
  struct Staged {
    uint32_t width = 0, height = 0;
    std::shared_ptr<const Buffer> pixels;
  };
  void take_look(const std::filesystem::path& path, LookResult& found, Staged picture);
  void show_taken();
  void forget_picture();
  void ask_for_maps(const PictureView::HeatChoice& choice);
  void show_maps(std::optional<Maps>& place, Maps maps, const PictureView::Pixels& pixels);
  void ask_for_features();
  void ask_for_words();
  PictureView::HeatChoice wanted(View view) const;
  void read_map_numbers(Numbers wants);

  PipelineStore& pipelines_;
  TextureStore& textures_;
  Worker& worker_;
  std::string dtype_;
  ModelChoice choice_;
  std::shared_ptr<ModelSession> session_;
  std::vector<StructureNode> structure_;
  std::optional<std::filesystem::path> wanted_path_;
  std::optional<bool> asked_exif_;
  std::optional<Seen> taken_, seen_;  // taken_: to be shown as soon as its texture can be drawn
  MapSelection selection_;
  std::optional<Maps> attention_, rollout_, words_map_;
  std::shared_ptr<const std::vector<float>> words_;
  TexturePointer features_;
  std::optional<ProfileResult> profile_;
  uint64_t looks_ = 0;
  bool loading_ = false, looking_ = false, mapping_ = false, profiling_ = false;
  // What was asked for and did not come, and would be asked for again in every frame otherwise.
  struct Asked {
    std::optional<PictureView::HeatChoice> map;
    bool features = false, profile = false;
    std::shared_ptr<const std::vector<float>> words = {};
  } asked_;
  // Read as soon as no map is under way: that writes to where maps are.
  std::optional<Numbers> wants_numbers_;
  uint64_t generation_ = 0;  // counts cancel(): older answers are dropped
  std::vector<std::string> warnings_;
  std::shared_ptr<Looking*> self_;  // null inside once this is gone: tasks that come late do nothing
};

}  // namespace vitrine::desktop
