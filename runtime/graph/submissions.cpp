#include "runtime/graph/submissions.h"

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <map>

#include "runtime/graph/plan.h"
#include "runtime/vk/group_reads.h"

namespace vitrine {
namespace {

GroupRange whole(const Dispatch& dispatch) { return {.first = {}, .groups = dispatch.groups}; }

// A range along one axis, in as many even parts as it takes for at most `most` of its groups each.
std::vector<GroupRange> cut_along(const GroupRange& range, size_t axis, uint64_t most) {
  const uint64_t length = range.groups[axis];
  const uint64_t each = std::clamp<uint64_t>(most / (range.count() / length), 1, length);
  const uint64_t parts = ceil_div(length, each);
  std::vector<GroupRange> cut;
  for (uint64_t i = 0; i < parts; ++i) {
    const uint64_t begin = length * i / parts, end = length * (i + 1) / parts;
    GroupRange& part = cut.emplace_back(range);
    part.first[axis] += static_cast<uint32_t>(begin);
    part.groups[axis] = static_cast<uint32_t>(end - begin);
  }
  return cut;
}

double seconds_of(const Step& step, const GroupRange& range) {
  return step.seconds * static_cast<double>(range.count()) /
         static_cast<double>(whole(step.dispatch).count());
}

// Nothing where it has to stay whole, or needn't be cut.
std::vector<GroupRange> parts_of(const Step& step, double budget) {
  const uint64_t count = whole(step.dispatch).count();
  if (step.seconds <= budget || count < 2) return {};
  const auto most = static_cast<uint64_t>(static_cast<double>(count) * budget / step.seconds);
  std::vector<GroupRange> parts = cut_groups(
      step.dispatch.groups, cuttable_axes(step.dispatch.shader->words, step.dispatch.groups), most);
  if (parts.size() < 2) parts.clear();
  return parts;
}

std::string milliseconds(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g ms", seconds * 1e3);
  return text;
}

}  // namespace

std::vector<GroupRange> cut_groups(const std::array<uint32_t, 3>& groups, const std::array<bool, 3>& may_cut,
                                   uint64_t most) {
  std::array<size_t, 3> axes{0, 1, 2};
  std::ranges::stable_sort(axes, std::ranges::greater(), [&](size_t axis) { return groups[axis]; });
  std::vector<GroupRange> ranges{{.first = {}, .groups = groups}};
  for (const size_t axis : axes) {
    if (!may_cut[axis]) continue;
    std::vector<GroupRange> cut;
    for (const GroupRange& range : ranges)
      std::ranges::move(cut_along(range, axis, most), std::back_inserter(cut));
    ranges = std::move(cut);
  }
  return ranges;
}

uint32_t assign_slices(std::vector<Step>& steps, double budget) {
  uint32_t slice = 0;
  double used = 0;
  const auto place = [&](double seconds) {
    if (used > 0 && used + seconds > budget) {
      ++slice;
      used = 0;
    }
    used += seconds;
    return slice;
  };
  for (Step& step : steps) {
    step.parts = parts_of(step, budget);
    if (step.parts.empty()) {
      step.slice = place(step.seconds);
      continue;
    }
    if (used > 0) ++slice;
    step.slice = slice;
    slice += to_u32(step.parts.size()) - 1;
    used = seconds_of(step, step.parts.back());
  }
  return steps.empty() ? 0 : slice + 1;
}

std::vector<double> seconds_of_slices(const Plan& plan) {
  std::vector<double> seconds(plan.slice_count);
  for (const Step& step : plan.steps) {
    if (step.parts.empty()) seconds[step.slice] += step.seconds;
    for (size_t i = 0; i < step.parts.size(); ++i) seconds[step.slice + i] += seconds_of(step, step.parts[i]);
  }
  return seconds;
}

std::vector<std::string> overlong_steps(const Plan& plan) {
  // Of each shader the step that takes longest: a model has the same one in every block.
  struct Overlong {
    const Step* step = nullptr;
    double seconds = 0;
    size_t count = 0;
  };
  std::map<const ShaderVariant*, Overlong> found;
  for (const Step& step : plan.steps) {
    double longest = step.parts.empty() ? step.seconds : 0;
    for (const GroupRange& part : step.parts) longest = std::max(longest, seconds_of(step, part));
    if (longest <= plan.options.slice_seconds) continue;
    Overlong& entry = found[step.dispatch.shader];
    ++entry.count;
    if (longest > entry.seconds) entry = {&step, longest, entry.count};
  }
  std::vector<std::string> sentences;
  for (const auto& [shader, entry] : found) {
    const bool cut = !entry.step->parts.empty();
    sentences.push_back("'" + plan.graph->nodes()[entry.step->node].name + "' (" +
                        std::string(shader->shader) +
                        (entry.count > 1 ? ", the longest of " + std::to_string(entry.count) : "") +
                        ") takes about " + milliseconds(entry.seconds) + (cut ? " a workgroup" : "") +
                        " and can't be cut, where a submission is meant to take " +
                        milliseconds(plan.options.slice_seconds) + " at most");
  }
  return sentences;
}

}  // namespace vitrine
