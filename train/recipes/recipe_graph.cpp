#include "train/recipes/recipe_graph.h"

#include <algorithm>
#include <bit>
#include <string>

#include "model/vit/vision_transformer.h"
#include "runtime/ops/elementwise/binary.h"
#include "runtime/ops/elementwise/unary.h"
#include "runtime/ops/training/argmax.h"
#include "runtime/ops/training/binary_cross_entropy.h"
#include "runtime/ops/training/cross_entropy.h"
#include "runtime/ops/training/erase_boxes.h"
#include "runtime/ops/training/mix_samples.h"
#include "runtime/ops/training/soft_distillation.h"
#include "shaders/training/erase_boxes.h"
#include "shaders/training/mix_samples.h"
#include "train/recipes/mixing.h"
#include "train/recipes/teacher.h"
#include "train/step_inputs.h"

namespace vitrine {
namespace {

// Beyond the streams that places in the model count up from 0.
constexpr uint32_t erasing_stream = 0xFFFF0000;

uint32_t fill_of(ErasingMode mode) {
  switch (mode) {
    case ErasingMode::constant:
      return VITRINE_ERASE_CONST;
    case ErasingMode::rand:
      return VITRINE_ERASE_RAND;
    case ErasingMode::pixel:
      return VITRINE_ERASE_PIXEL;
  }
  return VITRINE_ERASE_CONST;
}

ValueId label_loss(Graph& graph, const TrainConfig& config, ValueId result, ValueId labels) {
  const Recipe& recipe = config.recipe;
  const uint64_t batch = config.batch_size;
  ValueId others, shares;
  if (recipe.mixup.on()) {
    others = graph.input(std::string(other_labels_input), {batch}, DType::u32);
    shares = graph.input(std::string(shares_input), {batch});
  }
  if (recipe.loss == Loss::bce) {
    return binary_cross_entropy(graph, "loss", result, labels,
                                {.label_smoothing = config.label_smoothing,
                                 .target_threshold = recipe.bce_target_threshold,
                                 .sum = recipe.bce_sum,
                                 .others = others,
                                 .shares = shares});
  }
  const CrossEntropyOptions options{.label_smoothing = config.label_smoothing};
  const ValueId own = cross_entropy(graph, "loss", result, labels, options);
  if (!recipe.mixup.on()) return own;
  // Cross-entropy is linear in its target.
  const ValueId other_shares = graph.input(std::string(other_shares_input), {batch});
  const ValueId other = cross_entropy(graph, "loss.other", result, others, options);
  return add(graph, "loss.mixed", multiply(graph, "loss.share", own, shares),
             multiply(graph, "loss.other.share", other, other_shares));
}

}  // namespace

ValueId append_mixing(GraphBuilder& builder, const TrainConfig& config, ValueId images) {
  const Recipe& recipe = config.recipe;
  Graph& graph = builder.graph();
  const uint64_t batch = config.batch_size;
  if (recipe.random_erasing.on()) {
    const ValueId boxes = graph.input(std::string(erasing_input),
                                      {batch, recipe.random_erasing.boxes(), VITRINE_BOX_WORDS}, DType::u32);
    images = erase_boxes(graph, "erase", images, boxes, builder.step(),
                         {.fill = fill_of(recipe.random_erasing.mode), .stream = erasing_stream});
  }
  if (recipe.mixup.on()) {
    const ValueId mixing = graph.input(std::string(mixing_input), {batch, VITRINE_MIX_WORDS}, DType::u32);
    images = mix_samples(graph, "mix", images, mixing);
  }
  return images;
}

Answers append_models(GraphBuilder& builder, const TrainConfig& config,
                      const std::optional<TeacherModel>& teacher, ValueId images) {
  const ViTConfig& c = config.model;
  const VisionTransformer model(c);
  if (!teacher) return {.result = model(builder, images, natural_result(c))};
  Answers answers;
  if (c.distilled_head) {
    const auto [classes, distilled] = model.heads(builder, images);
    answers = {.result = classes, .for_teacher = distilled};
  } else {
    answers.result = answers.for_teacher = model(builder, images, Result::logits);
  }
  answers.of_teacher = append_teacher(builder, *teacher, images);
  return answers;
}

ValueId append_losses(Graph& graph, const TrainConfig& config, const Answers& answers, ValueId labels) {
  const ValueId of_labels = label_loss(graph, config, answers.result, labels);
  if (!answers.of_teacher) return of_labels;
  const Distillation& d = config.recipe.distillation;
  const ValueId of_teacher =
      d.kind == DistillationKind::hard
          ? cross_entropy(graph, "loss.teacher", answers.for_teacher,
                          argmax(graph, "teacher.labels", answers.of_teacher))
          : soft_distillation(graph, "loss.teacher", answers.for_teacher, answers.of_teacher,
                              {.temperature = d.tau, .sum = d.sum});
  return add(graph, "loss.both", scale(graph, "loss.part", of_labels, 1 - d.alpha),
             scale(graph, "loss.teacher.part", of_teacher, d.alpha));
}

void write_recipe_inputs(Executable& step, uint32_t set, const TrainConfig& config, uint64_t pass,
                         const PartOfBatch& part) {
  const uint64_t samples = part.samples, before = part.number * part.parts.part;
  const auto place = [&](uint64_t row) { return part.parts.place(part.batch_samples, before + row); };
  const Recipe& recipe = config.recipe;
  const PictureSides sides{config.model.image_height, config.model.image_width};
  if (recipe.random_erasing.on()) {
    const std::span<uint32_t> words = input_as<uint32_t>(step, erasing_input, set);
    std::ranges::fill(words, 0u);
    for (uint64_t i = 0; i < samples; ++i) {
      uint32_t* to = words.data() + i * recipe.random_erasing.boxes() * VITRINE_BOX_WORDS;
      for (const Box& box : draw_erasing(recipe.random_erasing, config.seed, pass, place(i), sides)) {
        to[VITRINE_BOX_TOP] = box.top;
        to[VITRINE_BOX_BOTTOM] = box.bottom;
        to[VITRINE_BOX_LEFT] = box.left;
        to[VITRINE_BOX_RIGHT] = box.right;
        to += VITRINE_BOX_WORDS;
      }
    }
  }
  if (!recipe.mixup.on()) return;
  const std::span<const uint32_t> labels = input_as<uint32_t>(step, "labels", set);
  const std::span<uint32_t> words = input_as<uint32_t>(step, mixing_input, set),
                            others = input_as<uint32_t>(step, other_labels_input, set);
  const std::span<float> shares = input_as<float>(step, shares_input, set);
  // A loss of several labels at once takes the own one's share alone.
  const std::span<float> other_shares =
      recipe.loss == Loss::bce ? std::span<float>() : input_as<float>(step, other_shares_input, set);
  const std::vector<Mix> of_batch = draw_mixing(recipe.mixup, config.seed, pass, part.batch_samples, sides);
  std::vector<Mix> mixes;
  for (uint64_t i = 0; i < samples; ++i) {
    mixes.push_back(of_batch[place(i)]);
    if (!part.parts.pairs) continue;
    // Beside it, but for one in the middle, which comes last and is alone.
    const uint64_t beside = (before + i) ^ 1;
    mixes.back().partner =
        static_cast<uint32_t>((beside < part.batch_samples ? beside : before + i) - before);
  }
  // What doesn't count is mixed with itself.
  for (uint64_t i = samples; i < config.batch_size; ++i)
    mixes.push_back({.partner = static_cast<uint32_t>(i)});
  std::ranges::fill(words, 0u);
  for (uint64_t i = 0; i < mixes.size(); ++i) {
    const Mix& mix = mixes[i];
    const auto own = static_cast<float>(mix.share), other = static_cast<float>(1 - mix.share);
    uint32_t* to = words.data() + i * VITRINE_MIX_WORDS;
    to[VITRINE_MIX_PARTNER] = mix.partner;
    to[VITRINE_MIX_OWN] = std::bit_cast<uint32_t>(mix.cuts ? 1.0f : own);
    to[VITRINE_MIX_OTHER] = std::bit_cast<uint32_t>(mix.cuts ? 0.0f : other);
    to[VITRINE_MIX_TOP] = mix.box.top;
    to[VITRINE_MIX_BOTTOM] = mix.box.bottom;
    to[VITRINE_MIX_LEFT] = mix.box.left;
    to[VITRINE_MIX_RIGHT] = mix.box.right;
    others[i] = labels[mix.partner];
    shares[i] = own;
    if (!other_shares.empty()) other_shares[i] = other;
  }
}

}  // namespace vitrine
