// The model that a distilled training learns from: its forward pass is part of the step, its weights are
// constants.
#pragma once

#include <memory>
#include <optional>

#include "model/files/weights.h"
#include "model/vit/graph_builder.h"
#include "train/train_config.h"

namespace vitrine {

// What the step's graph has of it.
struct TeacherModel {
  ViTConfig config;           // without what only training does
  bool renormalizes = false;  // it wants images normalised otherwise than the student
};

struct Teacher {
  TeacherModel model;
  std::unique_ptr<ConstantSource> constants;
};

// Opens what the configuration's distillation names; nothing where there is none. Throws Error(bad_file) that
// names the teacher where it isn't one for this model: other pictures, channels or classes.
std::optional<Teacher> open_teacher(const TrainConfig& config);

// Tells teachers apart: a checksum of the weights.
uint64_t checksum_of(Teacher& teacher);

// The constants of a step: the teacher's (append_teacher) from it, all others from `own`. Both have to
// outlive this.
std::unique_ptr<ConstantSource> with_teacher(ConstantSource& own, Teacher& teacher);

// The teacher's logits, [B, classes], on images that are normalised for the student.
ValueId append_teacher(GraphBuilder& builder, const TeacherModel& teacher, ValueId images);

}  // namespace vitrine
