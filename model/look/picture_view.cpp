#include "model/look/picture_view.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "model/look/patch_features.h"
#include "runtime/ops/attention/attention_rows.h"
#include "runtime/ops/explain/attention_heat.h"
#include "runtime/ops/explain/attention_rollout.h"
#include "runtime/ops/explain/principal_colors.h"
#include "runtime/ops/tokens/pool.h"
#include "runtime/util/error.h"
#include "runtime/util/text.h"

namespace vitrine {
namespace {

constexpr const char *tokens_state = "tokens", *pixels_state = "heat.pixels", *numbers_state = "heat.numbers",
                     *features_state = "features.pixels", *rollout_state = "rollout",
                     *pooled_rollout_state = "rollout.pooled";

std::string layer_state(uint64_t layer, const char* what) {
  return "layer." + std::to_string(layer) + "." + what;
}

ValueId state_of(Graph& graph, const std::string& name, Shape shape, DType dtype = DType::f32) {
  return graph.state(name, shape, {name}, dtype);
}

// For what comes before the first slice, as a share of nothing.
GoOn asked_in_front(const GoOn& go_on) {
  if (!go_on) return {};
  return [&go_on](double) { return go_on(0); };
}

// Maps are drawn from the queries and keys of one attention a block.
std::optional<std::string> refuses_to_draw(const ViTConfig& c) {
  if (c.attention == AttentionKind::differential)
    return "its attention is differential, whose maps can't be drawn yet (vitrine attention writes them)";
  if (c.attention == AttentionKind::talking_heads || c.class_blocks > 0)
    return "its heads talk, or its class token has blocks of its own, of which there are no maps yet";
  if (c.branches == 1) return std::nullopt;
  return "its blocks have " + std::to_string(c.branches) +
         " attentions side by side, whose maps can't be drawn yet (vitrine attention writes them)";
}

void write_words(Executable& executable, std::string_view input, std::span<const uint32_t> words) {
  std::ranges::copy(std::as_bytes(words), executable.input(executable.input_index(input)).begin());
}

}  // namespace

PictureView::PictureView(PipelineStore& pipelines, const Model& model, Preprocess preprocess,
                         PictureViewOptions options)
    : pipelines_(pipelines),
      model_(model),
      preprocess_(std::move(preprocess)),
      options_(std::move(options)),
      values_(preprocess_.values(model.config.channels)),
      largest_(PictureCapacity::largest(pipelines.device().capabilities(), preprocess_.width())),
      capacity_(PictureCapacity::covering({}, largest_)),
      guard_(
          pipelines, model, [this](uint64_t) { return picture_options(); }, options_.plan, options_.warn),
      weights_(std::make_shared<WeightStore>(pipelines, *model.constants)) {
  require_size(preprocess_, model.config.image_height, model.config.image_width);
  if (const auto reason = refuses_to_draw(model.config))
    throw Error(ErrorCode::usage, shown(model.name) + ": " + *reason);
}

PictureView::~PictureView() = default;

ViTGraphOptions PictureView::picture_options() const {
  ViTGraphOptions options{.dtype = options_.dtype, .result = options_.result};
  options.image = [this](Graph& graph) {
    return add_picture_input(graph, preprocess_, model_.config.channels, 1, capacity_).image;
  };
  return options;
}

AttentionOptions PictureView::KeptLayer::options_in(Graph& graph) const {
  AttentionOptions of_it = options;
  if (bias.empty()) return of_it;
  const ValueId known = graph.find(bias);  // one that all layers share
  of_it.bias = known ? known : graph.constant(bias, bias_shape);
  return of_it;
}

// Has every layer's attention and the last block's tokens written to states, where they stay.
BlockTaps PictureView::taps() {
  const ViTConfig& c = model_.config;
  const auto keep = [](Graph& graph, ValueId id, const std::string& state) {
    // Queries and keys are often parts of one value.
    if (graph.value(id).role != Role::state) graph.store(id, {state});
    const Value& value = graph.value(id);
    return KeptValue{value.place.buffer, value.shape, value.dtype};
  };
  BlockTaps taps;
  for (uint64_t layer = 0; layer < c.depth + has_attention_pool(c); ++layer) {
    taps[layer] = {.keeps = {.lse = true},
                   .look = [this, layer, keep](GraphBuilder& builder, const BlockValues& block) {
                     const ViTConfig& config = model_.config;
                     Graph& graph = builder.graph();
                     const AttentionValues& attention = block.attention;
                     layers_[layer] = {.q = keep(graph, attention.q, layer_state(layer, "q")),
                                       .k = keep(graph, attention.k, layer_state(layer, "k")),
                                       .lse = keep(graph, attention.lse, layer_state(layer, "lse")),
                                       .options = attention.options};
                     if (const ValueId bias = attention.options.bias) {
                       KeptLayer& kept = layers_[layer];
                       kept.options.bias = {};
                       kept.bias = graph.value(bias).name;
                       kept.bias_shape = graph.value(bias).shape;
                     }
                     if (layer == config.depth) return;
                     if (const MapRows rows = pooled_rows(config); rows.mean) {
                       const ValueId pooled =
                           attention_rows(graph, "blocks." + std::to_string(layer) + ".attn.rows",
                                          attention.q, attention.k, attention.lse, attention.options,
                                          {.first_row = rows.first, .rows = rows.count, .mean_rows = true});
                       graph.store(pooled, {layer_state(layer, "pooled")});
                     }
                     if (layer + 1 == config.depth) keep(graph, block.out, tokens_state);
                   }};
  }
  return taps;
}

Plan PictureView::plan_of(std::shared_ptr<const Graph> graph) const {
  return make_plan(std::move(graph), pipelines_.device().capabilities(), guard_.plan_options());
}

// How far the plans of all that is asked for later read behind a state, once it is known which there are.
uint64_t PictureView::tail_of_looks() const {
  uint64_t tail = std::max(plan_of(features_graph()).tail_bytes, plan_of(rollout_graph()).tail_bytes);
  if (options_.patch_features) tail = std::max(tail, plan_of(patch_features_graph()).tail_bytes);
  const auto add = [&](const HeatChoice& choice) {
    tail = std::max(tail, plan_of(painter_graph(painter_of(choice))).tail_bytes);
  };
  add({});
  for (const auto& [layer, kept] : layers_) {
    add({.layer = layer});
    add({.layer = layer, .token = 0});
  }
  return tail;
}

// None when it was told to stop.
std::unique_ptr<Executable> PictureView::make(Plan plan, const GoOn& preparing) {
  for (const Plan::StateBuffer& state : plan.states) {
    const std::span<const std::string> made = states_->names();
    if (std::ranges::find(made, state.name) == made.end())
      states_->make(state.name, state.bytes, tail_bytes_);
  }
  try {
    return std::make_unique<Executable>(*weights_, std::move(plan), states_.get(), preparing);
  } catch (const Interrupted&) {
    return nullptr;
  }
}

void PictureView::forget_all() {
  painters_.clear();
  paint_run_.reset();
  patch_features_run_.reset();
  features_run_.reset();
  model_run_.reset();
  layers_.clear();
  states_.reset();
}

bool PictureView::make_executable(const GoOn& preparing) {
  forget_all();
  const ViTConfig& c = model_.config;
  states_ = std::make_shared<StateStore>(pipelines_.device());
  ViTGraphOptions options = picture_options();
  options.taps = taps();
  Plan plan = guard_.plan(std::move(options));
  tail_bytes_ = std::max(plan.tail_bytes, tail_of_looks());
  const uint64_t most_heads = has_attention_pool(c) ? std::max(c.heads, c.pooling_heads()) : c.heads;
  const uint64_t maps = (most_heads + 1) * c.patches();
  states_->make(pixels_state, maps * heat_pixels * heat_pixels * sizeof(uint32_t), tail_bytes_);
  states_->make(numbers_state, maps * sizeof(float), tail_bytes_);
  model_run_ = make(std::move(plan), preparing);
  if (!model_run_) forget_all();
  return model_run_ != nullptr;
}

void PictureView::fill(Executable& executable, const PicturePart& part) const {
  write_picture_input(executable, 0, {&part, 1}, values_);
}

bool PictureView::run(Executable& executable, const GoOn& go_on) const {
  return executable.run_sliced(go_on ? go_on : [](double) { return true; });
}

void PictureView::take_result() {
  const auto bytes = model_run_->output(model_run_->output_index(name_of(result_kind())));
  result_.resize(bytes.size() / sizeof(float));
  std::memcpy(result_.data(), bytes.data(), bytes.size());
}

bool PictureView::look(Picture picture, const std::string& name, const GoOn& go_on, const GoOn& preparing) {
  const uint32_t width = picture.width, height = picture.height;
  const PicturePart part = prepare_part(preprocess_, std::move(picture), largest_, name);
  const MapRegion region =
      map_region(model_.config, picture_geometry(preprocess_, height, width, name), height, width);
  seen_ = rolled_out_ = features_seen_ = false;
  shown_.reset();

  const ResampleNeeds needs = resample_needs(part.prepared.resample);
  if (!model_run_ || !capacity_.holds(needs)) {
    capacity_ = PictureCapacity::covering(needs, largest_);
    if (!make_executable(preparing)) return false;
  }
  const auto start = std::chrono::steady_clock::now();
  fill(*model_run_, part);
  if (!run(*model_run_, go_on)) return false;
  take_result();
  const auto fill_probe = [&](Executable& probe) { fill(probe, part); };
  try {
    if (options_.dtype == DType::f16 && guard_.overflowed(result_, 1, fill_probe, preparing)) {
      if (!make_executable(preparing)) return false;
      fill(*model_run_, part);
      if (!run(*model_run_, go_on)) return false;
      take_result();
    }
  } catch (const Interrupted&) {
    return false;
  }
  seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  region_ = region;
  seen_ = true;
  return true;
}

void PictureView::require_picture() const {
  if (!seen_) throw Error(ErrorCode::usage, "the model has not looked at a picture yet");
}

std::span<const float> PictureView::result() const {
  require_picture();
  return result_;
}

const Executable& PictureView::executable() const {
  require_picture();
  return *model_run_;
}

std::optional<Profile> PictureView::profile(const GoOn& go_on) {
  require_picture();
  // The same inputs write the same bits to the states: what was seen stays, even if only a part of it runs.
  return model_run_->profile(go_on ? go_on : [](double) { return true; });
}

void PictureView::require_choice(const HeatChoice& choice) const {
  require_picture();
  AttentionMapOptions options;
  if (choice.layer) options.layers = {*choice.layer};
  if (choice.token) options.rows = MapRows{.first = *choice.token};
  const AttentionMaps known(model_.config, std::move(options));  // or it says what there is not
  if (choice.layer == model_.config.depth && choice.token) {
    throw Error(ErrorCode::usage, "token " + std::to_string(*choice.token) +
                                      " was asked for in attention pooling, where only the query looks");
  }
}

PictureView::Painter PictureView::painter_of(const HeatChoice& choice) const {
  const bool pooled = !choice.token && pooled_rows(model_.config).mean;
  if (!choice.layer) return {pooled ? Source::pooled_rollout : Source::rollout, 0};
  const bool stored = pooled && *choice.layer < model_.config.depth;
  return {stored ? Source::pooled_rows : Source::attention, *choice.layer};
}

uint32_t PictureView::maps_of(const HeatChoice& choice) const {
  return choice.layer ? to_u32(heads_of_maps(model_.config, choice.layer) + 1) : 1;
}

std::shared_ptr<const Graph> PictureView::painter_graph(const Painter& painter) const {
  const ViTConfig& c = model_.config;
  const auto graph = std::make_shared<Graph>();
  const ValueId choice = graph->input("choice", {1}, DType::u32);
  const ValueId colors = graph->input("colors", {heat_colors}, DType::u32);
  HeatGrid grid{.first = c.prefix_tokens(), .height = c.grid_height(), .width = c.grid_width()};
  const auto& [source, layer] = painter;
  HeatResult result;
  switch (source) {
    case Source::attention: {
      const KeptLayer& kept = layers_.at(layer);
      if (layer == c.depth) grid.first -= c.first_pooled();  // of what is pooled alone
      const ValueId q = state_of(*graph, kept.q.state, kept.q.shape, kept.q.dtype);
      const ValueId k = state_of(*graph, kept.k.state, kept.k.shape, kept.k.dtype);
      const ValueId lse = state_of(*graph, kept.lse.state, kept.lse.shape);
      result = attention_heat(*graph, "heat", q, k, lse, choice, colors, kept.options_in(*graph), grid);
      break;
    }
    case Source::pooled_rows:
      result = vitrine::heat(*graph, "heat",
                             state_of(*graph, layer_state(layer, "pooled"), {c.heads, 1, c.tokens()}), choice,
                             colors, grid, true);
      break;
    case Source::rollout:
    case Source::pooled_rollout: {
      const bool pooled = source == Source::pooled_rollout;
      const Shape shape{1, pooled ? 1 : c.tokens(), c.tokens()};
      const ValueId stored = state_of(*graph, pooled ? pooled_rollout_state : rollout_state, shape);
      result = vitrine::heat(*graph, "heat", stored, choice, colors, grid, false);
      break;
    }
  }
  graph->store(result.pixels, {pixels_state});
  graph->store(result.numbers, {numbers_state});
  return graph;
}

PictureView::Pixels PictureView::heat(const HeatChoice& choice) {
  require_choice(choice);
  if (!choice.layer) roll_out();
  const Painter painter = painter_of(choice);
  std::unique_ptr<Executable>& run = painters_[painter];
  if (!run) run = make(plan_of(painter_graph(painter)));
  // Pooled rows are stored alone, and the pooled token of all other models is the first one.
  const uint32_t row = to_u32(choice.token.value_or(0));
  write_words(*run, "choice", {&row, 1});
  write_words(*run, "colors", choice.colors);
  run->run();
  last_dispatches_ = to_u32(run->plan().steps.size());
  shown_ = choice;
  return {.buffer = &states_->find(pixels_state),
          .owner = states_,
          .width = to_u32(model_.config.grid_width() * heat_pixels),
          .height = to_u32(model_.config.grid_height() * heat_pixels),
          .maps = maps_of(choice)};
}

std::vector<float> PictureView::weights(const HeatChoice& choice) {
  require_choice(choice);
  if (shown_ != choice) heat(choice);
  std::vector<float> numbers(maps_of(choice) * model_.config.patches());
  states_->read(numbers_state, 0, std::as_writable_bytes(std::span(numbers)));
  return numbers;
}

std::shared_ptr<const Graph> PictureView::rollout_graph() const {
  const ViTConfig& c = model_.config;
  const uint64_t tokens = c.tokens();
  const auto graph = std::make_shared<Graph>();
  std::vector<ValueId> maps;
  for (uint64_t layer = 0; layer < c.depth; ++layer) {
    const KeptLayer& kept = layers_.at(layer);
    maps.push_back(attention_rows(*graph, "blocks." + std::to_string(layer) + ".attn.mean",
                                  state_of(*graph, kept.q.state, kept.q.shape, kept.q.dtype),
                                  state_of(*graph, kept.k.state, kept.k.shape, kept.k.dtype),
                                  state_of(*graph, kept.lse.state, kept.lse.shape), kept.options_in(*graph),
                                  {.mean_heads = true}));
  }
  // Some rows at a time, so that no dispatch is long: others have their turn between two of them. Multiples
  // of 64 rows begin where any device can bind them.
  constexpr double most_flops = 5e8;
  const double a_row = 2.0 * static_cast<double>(tokens) * static_cast<double>(tokens);
  const uint64_t rows = std::max<uint64_t>(64, static_cast<uint64_t>(most_flops / a_row) / 64 * 64);
  for (uint64_t first = 0; first < tokens; first += rows) {
    const std::string name = "rollout." + std::to_string(first) + ".";
    ValueId joint =
        attention_rollout(*graph, name + std::to_string(c.depth - 1), maps.back(),
                          RolloutRows{.first_row = first, .rows = std::min(rows, tokens - first)});
    for (uint64_t layer = c.depth - 1; layer-- > 0;)
      joint = attention_rollout(*graph, name + std::to_string(layer), maps[layer], joint);
    graph->store(joint, {rollout_state, first * tokens});
  }
  if (const MapRows pooled = pooled_rows(c); pooled.mean) {
    const ValueId all = state_of(*graph, rollout_state, {1, tokens, tokens});
    graph->store(pool_mean(*graph, "rollout.pooled", all, pooled.first, pooled.count),
                 {pooled_rollout_state});
  }
  return graph;
}

bool PictureView::roll_out(const GoOn& go_on) {
  require_picture();
  if (rolled_out_) return true;
  // Not kept: it holds a map of all tokens for each layer.
  const std::unique_ptr<Executable> rollout = make(plan_of(rollout_graph()), asked_in_front(go_on));
  rolled_out_ = rollout && run(*rollout, go_on);
  return rolled_out_;
}

std::shared_ptr<const Graph> PictureView::features_graph() const {
  const ViTConfig& c = model_.config;
  GraphBuilder builder;
  const ValueId tokens = state_of(builder.graph(), tokens_state, {1, c.tokens(), c.dim});
  const ValueId normed = VisionTransformer(c).finish(builder, tokens, Result::tokens);
  const ValueId pixels =
      vitrine::principal_colors(builder.graph(), "principal_colors", normed, c.prefix_tokens(), c.patches());
  builder.graph().store(pixels, {features_state});
  return builder.finish();
}

std::optional<PictureView::Pixels> PictureView::principal_colors(const GoOn& go_on) {
  require_picture();
  const ViTConfig& c = model_.config;
  last_dispatches_ = 0;
  if (!features_run_) features_run_ = make(plan_of(features_graph()), asked_in_front(go_on));
  if (!features_run_) return std::nullopt;
  if (!features_seen_) {
    if (!run(*features_run_, go_on)) return std::nullopt;
    last_dispatches_ = to_u32(features_run_->plan().steps.size());
    features_seen_ = true;
  }
  return Pixels{.buffer = &states_->find(features_state),
                .owner = states_,
                .width = to_u32(c.grid_width()),
                .height = to_u32(c.grid_height())};
}

std::shared_ptr<const Graph> PictureView::patch_features_graph() const {
  const ViTConfig& c = model_.config;
  GraphBuilder builder;
  Graph& graph = builder.graph();
  const ValueId tokens = state_of(graph, tokens_state, {1, c.tokens(), c.dim});
  graph.output(vitrine::patch_features(builder, c, tokens), "patches");
  return builder.finish();
}

std::optional<std::vector<float>> PictureView::patch_features(const GoOn& go_on) {
  require_picture();
  if (!options_.patch_features)
    throw Error(ErrorCode::usage, "features of patches were not announced to the view");
  std::unique_ptr<Executable>& made = patch_features_run_;
  if (!made) made = make(plan_of(patch_features_graph()), asked_in_front(go_on));
  if (!made || !run(*made, go_on)) return std::nullopt;
  const auto bytes = made->output(0);
  std::vector<float> features(bytes.size() / sizeof(float));
  std::memcpy(features.data(), bytes.data(), bytes.size());
  return features;
}

PictureView::Pixels PictureView::paint(std::span<const float> numbers, const Colors& colors) {
  require_picture();
  const ViTConfig& c = model_.config;
  if (numbers.size() != c.patches()) {
    throw Error(ErrorCode::usage, "found " + counted(numbers.size(), "number") + " to paint, expected " +
                                      std::to_string(c.patches()) + ", one a patch");
  }
  if (!paint_run_) {
    const auto graph = std::make_shared<Graph>();
    const ValueId stored = graph->input("numbers", {1, 1, c.patches()});
    const HeatResult result =
        vitrine::heat(*graph, "heat", stored, graph->input("choice", {1}, DType::u32),
                      graph->input("colors", {heat_colors}, DType::u32),
                      {.first = 0, .height = c.grid_height(), .width = c.grid_width()}, false);
    graph->store(result.pixels, {pixels_state});
    graph->store(result.numbers, {numbers_state});
    paint_run_ = make(plan_of(graph));
  }
  shown_.reset();
  constexpr uint32_t row = 0;
  write_words(*paint_run_, "choice", {&row, 1});
  write_words(*paint_run_, "colors", colors);
  std::ranges::copy(std::as_bytes(numbers), paint_run_->input(paint_run_->input_index("numbers")).begin());
  paint_run_->run();
  last_dispatches_ = to_u32(paint_run_->plan().steps.size());
  return {.buffer = &states_->find(pixels_state),
          .owner = states_,
          .width = to_u32(c.grid_width() * heat_pixels),
          .height = to_u32(c.grid_height() * heat_pixels)};
}

}  // namespace vitrine
