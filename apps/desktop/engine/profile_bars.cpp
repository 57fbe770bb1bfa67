#include "apps/desktop/engine/profile_bars.h"

#include <algorithm>

#include "model/look/structure.h"

namespace vitrine::desktop {
namespace {

class BarBuilder {
 public:
  explicit BarBuilder(std::vector<ProfileBar>& bars) : bars_(bars) {
    bars_.push_back({.name = "inference"});
    open_.push_back(0);
  }

  void add(const ProfileStep& step) {
    std::vector<std::string> paths{""};
    for (const std::string& part : parts_of_path(step.node))
      paths.push_back(paths.back().empty() ? part : paths.back() + "." + part);
    // What is open of the path stays so: the end of one part isn't the end of what it is in.
    size_t depth = 1;
    while (depth < open_.size() && depth < paths.size() && bars_[open_[depth]].path == paths[depth]) ++depth;
    // A part that the node before was inside of, and that this one is itself ("attn" behind "attn.qkv").
    open_.resize(depth);
    for (; depth < paths.size(); ++depth) {
      open_.push_back(bars_.size());
      const size_t dot = paths[depth].rfind('.');
      bars_.push_back({.name = paths[depth].substr(dot == std::string::npos ? 0 : dot + 1),
                       .path = paths[depth],
                       .depth = static_cast<uint32_t>(depth),
                       .start = now_});
    }
    for (const size_t bar : open_) {
      bars_[bar].seconds += step.seconds;
      ++bars_[bar].dispatches;
    }
    std::string& kernel = bars_[open_.back()].kernel;
    if (kernel.find(step.kernel) == std::string::npos) kernel += (kernel.empty() ? "" : ", ") + step.kernel;
    now_ += step.seconds;
  }

 private:
  std::vector<ProfileBar>& bars_;
  std::vector<size_t> open_;  // by depth
  double now_ = 0;
};

}  // namespace

ProfileResult profile_result(const Plan& plan, const Profile& profile) {
  ProfileResult result{.total_seconds = profile.total_seconds};
  BarBuilder bars(result.bars);
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const Step& step = plan.steps[i];
    const Node& node = plan.graph->nodes()[step.node];
    result.steps.push_back({.node = node.name,
                            .operator_name = std::string(node.op->name),
                            .kernel = step.kernel,
                            .seconds = profile.step_seconds.at(i)});
    bars.add(result.steps.back());
  }
  return result;
}

}  // namespace vitrine::desktop
