#include "apps/desktop/looking.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

#include "images/image.h"
#include "images/shrink.h"
#include "runtime/util/text.h"

namespace vitrine::desktop {
namespace {

// Nobody sees more pixels than a screen has, and devices limit the sides of images.
constexpr uint32_t longest_side = 2048;

void add_rows(std::vector<CsvRow>& rows, const std::vector<StructureNode>& nodes) {
  for (const StructureNode& node : nodes) {
    std::string shape;
    for (const uint64_t size : node.shape) shape += (shape.empty() ? "" : "x") + std::to_string(size);
    rows.push_back({node.path, node.name, node.operator_name, shape,
                    std::string(vitrine::name_of(node.dtype)), std::to_string(node.parameters),
                    csv_number(node.flops), node.what});
    add_rows(rows, node.children);
  }
}

std::vector<CsvRow> structure_rows(const std::vector<StructureNode>& nodes) {
  std::vector<CsvRow> rows{{"path", "part", "operator", "shape", "dtype", "parameters", "flops", "what"}};
  add_rows(rows, nodes);
  return rows;
}

std::string patch_name(const ViTConfig& c, uint64_t patch) {
  return "patch in row " + std::to_string(patch / c.grid_width()) + ", col " +
         std::to_string(patch % c.grid_width());
}

}  // namespace

Looking::Looking(PipelineStore& pipelines, TextureStore& textures, Worker& worker, std::string dtype)
    : pipelines_(pipelines),
      textures_(textures),
      worker_(worker),
      dtype_(std::move(dtype)),
      self_(std::make_shared<Looking*>(this)) {}

Looking::~Looking() { *self_ = nullptr; }

void Looking::post(uint64_t generation, std::function<void(Looking&)> task) const {
  worker_.post_to_ui([self = self_, generation, task = std::move(task)] {
    if (*self && (*self)->generation_ == generation) task(**self);
  });
}

// ---- actions ----

void Looking::cancel(View view) {
  // A look that ends halfway has overwritten what was seen before.
  if (looking_) forget_picture();
  Asked asked = asked_;
  drop_jobs();
  // What the view shows would be asked for again by the next frame.
  asked.features |= view == View::features;
  asked.profile |= view == View::profile;
  if (view == View::words) asked.words = words_;
  if (is_map(view) && session_) {
    asked.map = wanted(view);
    // A map of something else would stay on the screen.
    std::optional<Maps>& shown = view == View::rollout ? rollout_ : attention_;
    if (shown && !(shown->choice == *asked.map)) shown.reset();
  }
  asked_ = std::move(asked);
}

void Looking::ask_again() { asked_ = {}; }

bool Looking::left_out(View view) const {
  return is_map(view) && session_ && !mapping_ && asked_.map == wanted(view);
}

void Looking::drop_jobs() {
  worker_.cancel();
  // What such a job posts or throws is for nobody any more; those that were queued will never begin.
  ++generation_;
  loading_ = looking_ = mapping_ = profiling_ = false;
  asked_ = {};
  taken_.reset();
  wants_numbers_.reset();
}

void Looking::start(std::string what, Worker::Job job) {
  worker_.start(std::move(what), [this, job = std::move(job), generation = generation_](Progress& progress) {
    try {
      job(progress);
    } catch (...) {
      post(generation,
           [](Looking& self) { self.loading_ = self.looking_ = self.mapping_ = self.profiling_ = false; });
      throw;
    }
  });
}

void Looking::choose_model(const ModelChoice& choice) {
  drop_jobs();
  choice_ = choice;
  words_.reset();  // another model's are as wide as it likes
  structure_.clear();
  profile_.reset();
  forget_picture();
  loading_ = true;
  // The job lets the model before go: that takes a while, and the next one may need the memory.
  start("Opening " + choice.title, [this, choice, before = std::exchange(session_, nullptr),
                                    generation = generation_](Progress& progress) mutable {
    before.reset();
    std::shared_ptr<ModelSession> session = ModelSession::open(pipelines_, choice, dtype_, progress);
    std::vector<StructureNode> structure = session->structure();
    std::vector<std::string> warnings = session->take_warnings();
    post(generation, [session = std::move(session), structure = std::move(structure),
                      warnings = std::move(warnings)](Looking& self) mutable {
      self.loading_ = false;
      self.session_ = std::move(session);
      self.structure_ = std::move(structure);
      std::ranges::move(warnings, std::back_inserter(self.warnings_));
      // Attention pooling says most of what such a model looks at; else the last block does.
      self.selection_.layer = self.layers() - 1;
      self.selection_.token.reset();
      self.select(self.selection_);
      if (self.wanted_path_) self.look_at(*self.wanted_path_);
    });
  });
}

void Looking::forget_picture() {
  seen_.reset();
  attention_.reset();
  rollout_.reset();
  words_map_.reset();
  features_.reset();
}

void Looking::look_at(const std::filesystem::path& path) {
  wanted_path_ = path;
  if (!session_) return;
  // Only the newest picture is waited for. What was seen of the one before is gone on the device.
  drop_jobs();
  profile_.reset();
  looking_ = true;
  start("Looking at " + path.filename().string(), [this, path, exif = turns_by_exif(), session = session_,
                                                   generation = generation_](Progress& progress) {
    const auto found = std::make_shared<LookResult>();
    Staged staged;
    try {
      *found = session->look(path, progress, exif);
      const Image small = shrunk(found->picture, longest_side);
      staged = {small.width, small.height, stage_picture(pipelines_.device(), small.pixels)};
    } catch (...) {
      post(generation, [](Looking& self) { self.forget_picture(); });
      throw;
    }
    found->picture.pixels = {};  // the texture is enough
    std::vector<std::string> warnings = session->take_warnings();
    post(generation, [path, found, staged, warnings = std::move(warnings)](Looking& self) mutable {
      std::ranges::move(warnings, std::back_inserter(self.warnings_));
      self.take_look(path, *found, staged);
    });
  });
}

bool Looking::turns_by_exif() const {
  return asked_exif_.value_or(session_ && session_->model().preprocess.exif);
}

void Looking::turn_by_exif(std::optional<bool> asked) {
  const bool before = turns_by_exif();
  asked_exif_ = asked;
  if (turns_by_exif() == before || !wanted_path_) return;
  const bool same = seen_ && !looking_ && seen_->result.orientation == 1;
  if (!same) look_at(*wanted_path_);
}

void Looking::take_look(const std::filesystem::path& path, LookResult& found, Staged picture) {
  Seen seen;
  seen.path = path;
  seen.width = found.picture.width;
  seen.height = found.picture.height;
  try {
    seen.texture = textures_.make(picture.width, picture.height);
    textures_.write(seen.texture, std::move(picture.pixels));
  } catch (...) {
    looking_ = false;
    forget_picture();
    throw;
  }
  seen.region = found.region;
  seen.result = std::move(found);
  taken_ = std::move(seen);
}

void Looking::show_taken() {
  if (!taken_ || !(taken_->texture->made() || taken_->texture->failed())) return;
  forget_picture();
  seen_ = std::exchange(taken_, std::nullopt);
  looking_ = false;
  ++looks_;
}

void Looking::select(MapSelection selection) {
  selection.opacity = std::clamp(selection.opacity, 0.0f, 1.0f);
  if (const ViTConfig* c = config()) {
    selection.layer = std::min(selection.layer, layers() - 1);
    if (selection.head) selection.head = std::min(*selection.head, heads_of_maps(*c, selection.layer) - 1);
    if (selection.token) selection.token = std::min(*selection.token, c->tokens() - 1);
  }
  selection_ = selection;
}

void Looking::profile() {
  if (!session_ || !seen_ || profiling_ || looking_) return;
  profiling_ = asked_.profile = true;
  start("Measuring every operator", [this, session = session_, generation = generation_](Progress& progress) {
    post(generation, [result = session->profile(progress)](Looking& self) mutable {
      self.profiling_ = false;
      self.profile_ = std::move(result);
    });
  });
}

// ---- maps ----

PictureView::HeatChoice Looking::wanted(View view) const {
  PictureView::HeatChoice choice{
      .layer = selection_.layer, .token = selection_.token, .colors = color_table(selection_.map)};
  if (view == View::rollout) choice.layer.reset();
  // The pooling's learned query looks at the patches; no token of the picture looks there.
  if (choice.layer == config()->depth) choice.token.reset();
  return choice;
}

const Looking::Maps* Looking::maps(View view) const {
  if (view == View::rollout) return rollout_ ? &*rollout_ : nullptr;
  if (view == View::attention || view == View::grid) return attention_ ? &*attention_ : nullptr;
  // Of words that were taken away there is nothing to see.
  if (view == View::words) return words_map_ && words_ ? &*words_map_ : nullptr;
  return nullptr;
}

void Looking::update(View view) {
  show_taken();
  if (!seen_ || !session_ || looking_ || mapping_ || copying()) return;
  if (wants_numbers_) return read_map_numbers(*std::exchange(wants_numbers_, std::nullopt));
  if (view == View::features) {
    if (!features_ && !asked_.features) ask_for_features();
    return;
  }
  if (view == View::words) {
    const bool shown =
        words_map_ && words_map_->words == words_ && words_map_->choice.colors == wanted(view).colors;
    if (words_ && !shown && asked_.words != words_) ask_for_words();
    return;
  }
  if (!is_map(view)) return;
  const PictureView::HeatChoice choice = wanted(view);
  const Maps* shown = maps(view);
  if ((!shown || !(shown->choice == choice)) && asked_.map != choice) ask_for_maps(choice);
}

void Looking::ask_for_maps(const PictureView::HeatChoice& choice) {
  mapping_ = true;
  asked_.map = choice;
  start(choice.layer ? "Attention" : "Rollout",
        [this, choice, session = session_, generation = generation_](Progress& progress) {
          if (!choice.layer && !session->view().roll_out(go_on(progress))) throw Cancelled{};
          progress.check();
          const auto begin = std::chrono::steady_clock::now();
          const PictureView::Pixels pixels = session->view().heat(choice);
          Maps maps;
          maps.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
          maps.dispatches = session->view().last_dispatches();
          maps.choice = choice;
          post(generation, [maps, pixels](Looking& self) {
            self.mapping_ = false;
            self.asked_.map.reset();
            self.show_maps(maps.choice.layer ? self.attention_ : self.rollout_, maps, pixels);
          });
        });
}

void Looking::show_maps(std::optional<Maps>& place, Maps maps, const PictureView::Pixels& pixels) {
  maps.count = pixels.maps;
  maps.height = pixels.height;
  const uint32_t height = pixels.height * pixels.maps;
  maps.texture = textures_.make_or_keep(place ? place->texture : nullptr, pixels.width, height);
  textures_.copy(maps.texture, *pixels.buffer, pixels.offset, pixels.owner);
  place = std::move(maps);
}

void Looking::ask_for_features() {
  mapping_ = asked_.features = true;
  start("Features", [this, session = session_, generation = generation_](Progress& progress) {
    const std::optional<PictureView::Pixels> found = session->view().principal_colors(go_on(progress));
    if (!found) throw Cancelled{};
    post(generation, [pixels = *found](Looking& self) {
      self.mapping_ = false;
      self.features_ = self.textures_.make(pixels.width, pixels.height);
      self.textures_.copy(self.features_, *pixels.buffer, pixels.offset, pixels.owner);
    });
  });
}

void Looking::ask_for_words() {
  mapping_ = true;
  asked_.words = words_;
  start("Where the words are", [this, words = words_, choice = wanted(View::words), session = session_,
                                generation = generation_](Progress& progress) {
    Maps maps;
    maps.words = words;
    maps.choice = choice;
    maps.numbers = session->similarities(*words, progress);
    const auto begin = std::chrono::steady_clock::now();
    const PictureView::Pixels pixels = session->view().paint(maps.numbers, choice.colors);
    maps.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    maps.dispatches = session->view().last_dispatches();
    post(generation, [maps, pixels](Looking& self) {
      self.mapping_ = false;
      self.asked_.words.reset();
      self.show_maps(self.words_map_, maps, pixels);
    });
  });
}

void Looking::read_numbers(View view, std::function<void(std::vector<CsvRow>)> take) {
  if (is_map(view)) {
    if (!seen_ || looking_) return take({});
    wants_numbers_ = Numbers{view, std::move(take)};
    return;
  }
  if (view == View::words && maps(view)) {
    const ViTConfig& c = session_->model().config;
    return take(map_rows(maps(view)->numbers, c.grid_height(), c.grid_width()));
  }
  if (view == View::structure) return take(structure_rows(structure_));
  if (view == View::profile) return take(profile_ ? profile_rows(*profile_) : std::vector<CsvRow>{});
  take(seen_ ? answer_rows(seen_->result.top) : std::vector<CsvRow>{});
}

void Looking::read_map_numbers(Numbers wants) {
  mapping_ = true;
  start("Reading the map's numbers",
        [this, choice = wanted(wants.view), session = session_, generation = generation_,
         take = std::move(wants.take)](Progress& progress) {
          if (!choice.layer && !session->view().roll_out(go_on(progress))) throw Cancelled{};
          const std::vector<float> weights = session->view().weights(choice);
          const ViTConfig& c = session->model().config;
          post(generation, [rows = map_rows(weights, c.grid_height(), c.grid_width()), take](Looking& self) {
            self.mapping_ = false;
            take(rows);
          });
        });
}

bool Looking::copying() const {
  const auto waits = [this](const TexturePointer& texture) { return texture && textures_.waits(*texture); };
  return waits(features_) || (attention_ && waits(attention_->texture)) ||
         (rollout_ && waits(rollout_->texture)) || (words_map_ && waits(words_map_->texture));
}

bool Looking::busy() const { return loading_ || looking_ || mapping_ || profiling_ || wants_numbers_; }

// ---- what there is ----

const ViTConfig* Looking::config() const { return session_ ? &session_->model().config : nullptr; }
uint64_t Looking::layers() const {
  const ViTConfig* c = config();
  return c ? c->depth + has_attention_pool(*c) : 1;
}
uint64_t Looking::heads() const { return config() ? heads_of_maps(*config(), selection_.layer) : 1; }

std::string Looking::layer_name(uint64_t layer) const {
  const ViTConfig* c = config();
  if (c && layer == c->depth) return "attention pooling";
  return "layer " + std::to_string(layer) + (c ? " of 0 to " + std::to_string(c->depth - 1) : "");
}

std::string Looking::token_name() const {
  const ViTConfig* c = config();
  if (!c) return "";
  if (selection_.token) {
    const uint64_t token = *selection_.token;
    if (c->is_patch(token)) return patch_name(*c, token - c->prefix_tokens());
    return "token " + std::to_string(token);
  }
  if (selection_.layer == c->depth) return "pooling's query";
  return pooled_rows(*c).mean ? pooled_name(*c) : c->class_token ? "class token" : patch_name(*c, 0);
}

std::string Looking::summary() const {
  if (!session_) return "No model is open";
  const ViTConfig& c = *config();
  return counted(c.depth, "layer") + ", " + counted(c.heads, "head") + ", width " + std::to_string(c.dim) +
         ", " + std::to_string(c.image_width) + " x " + std::to_string(c.image_height) +
         " pixels in patches of " + std::to_string(c.patch_width) + " x " + std::to_string(c.patch_height);
}

}  // namespace vitrine::desktop
