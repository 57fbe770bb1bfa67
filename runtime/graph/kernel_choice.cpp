#include "runtime/graph/kernel_choice.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <ranges>

#include "runtime/util/error.h"
#include "runtime/vk/reflection.h"

namespace vitrine {
namespace {

using namespace std::string_view_literals;

// FNV-1a, 64 bits: tells versions of a shader apart, which is all that it is for.
uint64_t hash_of(std::span<const uint32_t> words) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const uint32_t word : words) {
    for (int shift = 0; shift < 32; shift += 8) hash = (hash ^ (word >> shift & 255)) * 0x100000001b3u;
  }
  return hash;
}

std::string join(const std::vector<std::string>& parts, const char* separator) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : separator) + part;
  return text;
}

// The numbers among the specialization constants that stand for a choice.
constexpr std::array choices{"activation"sv, "ahead"sv, "function"sv, "k_multiple"sv, "patch_run"sv};
// What is fused behind a product (shaders/lib/epilogue.glsl).
constexpr std::string_view fused = "epilogue_";

bool chooses_path(const ReflectedConstant& constant) {
  if (constant.name.starts_with(fused)) return false;
  return constant.is_switch || std::ranges::find(choices, constant.name) != choices.end();
}

// "aligned_n,k_multiple=16": the switches that are on, and the choices.
std::string path_of(const Dispatch& dispatch) {
  std::string path;
  for (const ReflectedConstant& constant : reflect(dispatch.shader->words).constants) {
    if (!chooses_path(constant)) continue;
    const uint32_t value = dispatch.constant(constant.name);
    if (constant.is_switch && value == 0) continue;
    path += (path.empty() ? "" : ",") + constant.name;
    if (!constant.is_switch) path += "=" + std::to_string(value);
  }
  return path;
}

// Into how many slices a sum is cut is a size, although a configuration names it.
std::string certificate_prefix(const OpDef& op, const Candidate& candidate) {
  const std::string name = candidate.name();
  return std::string(op.name) + "=" + name.substr(0, name.find("/slices")) + " ";
}

// Certificates of a candidate, whatever its code was when they were made.
auto certificates_of(const OpDef& op, const Candidate& candidate, const KernelChoices& known) {
  const std::string prefix = certificate_prefix(op, candidate);
  const auto is_behind = [&](const auto& each) { return !each.first.starts_with(prefix); };
  const auto first = known.certificates.lower_bound(prefix);
  return std::ranges::subrange(first, std::find_if(first, known.certificates.end(), is_behind));
}

// What the self-test said of the code that the candidate would run here, empty where all of it passed;
// nothing where some was not tested. Only near a certificate is a kernel lowered to learn which code that is.
std::optional<std::string> verdict_of(const LowerContext& context, const Candidate& candidate,
                                      const KernelChoices& known) {
  const OpDef& op = *context.node().op;
  if (certificates_of(op, candidate, known).empty()) return std::nullopt;
  std::optional<std::string> verdict = "";
  for (const std::string& key : certificate_keys(op, candidate, lower_as(context, candidate))) {
    const auto found = known.certificates.find(key);
    if (found == known.certificates.end()) {
      verdict = std::nullopt;
    } else if (!found->second.empty()) {
      return found->second;
    }
  }
  return verdict;
}

std::string_view kernel_part(std::string_view name) { return name.substr(0, name.find(':')); }

class Chooser {
 public:
  Chooser(const Graph& graph, const LowerContext& context, std::string_view wish, const KernelChoices* known)
      : context_(context), op_(*context.node().op), wish_(wish), known_(known) {
    candidates_ = candidates_of(context, &notes_);
    // A wish leaves the other kernels aside, whatever they say.
    if (!wish_.empty()) {
      std::erase_if(notes_, [&](const std::string& note) {
        return !note.starts_with(std::string(kernel_part(wish_)) + ": ");
      });
    }
    if (known_ && wish_.empty()) look_up(graph);
    if (wish_.empty()) put_unproven_last();
  }

  KernelChoice choose() {
    for (const Candidate& candidate : candidates_) {
      if (candidate.name() == tuned_ && accepts(candidate)) return taken(candidate, "the table");
    }
    if (!tuned_.empty()) notes_.push_back(tuned_ + ", the table's: it can't run this node any more");
    for (const Candidate& candidate : candidates_) {
      if (wished_for(candidate) && accepts(candidate))
        return taken(candidate, wish_.empty() ? "heuristics" : "a wish");
    }
    const bool known = wish_.empty() || std::ranges::any_of(op_.kernels, [&](const KernelDef& kernel) {
                         return kernel.name == kernel_part(wish_);
                       });
    const bool misnamed = known && wish_.find(':') != wish_.npos &&
                          std::ranges::any_of(candidates_, [&](const Candidate& candidate) {
                            return candidate.kernel->name == kernel_part(wish_);
                          });
    if (!known) notes_.insert(notes_.begin(), "there is no kernel of that name");
    if (misnamed && !wished_was_refused_)
      notes_.insert(notes_.begin(), configurations_of(kernel_part(wish_)));
    throw Error(ErrorCode::failed,
                std::string(op_.name) + " '" + context_.node().name + "' can't be run on this device" +
                    (wish_.empty() ? "" : " by '" + std::string(wish_) + "'") + ": " + join(notes_, "; "));
  }

 private:
  void look_up(const Graph& graph) {
    const auto found = known_->tuned.find(node_key(graph, context_.node()));
    if (found != known_->tuned.end()) tuned_ = found->second;
  }

  void put_unproven_last() {
    const auto proven = [&](const Candidate& candidate) {
      return !candidate.kernel->unproven || (known_ && verdict_of(context_, candidate, *known_) == "");
    };
    const auto last = std::ranges::stable_partition(candidates_, proven);
    if (last.empty() || last.size() == candidates_.size()) return;
    for (const Candidate& candidate : last) {
      const std::string note = std::string(candidate.kernel->name) +
                               ": has passed no self-test on this device yet, which `vitrine doctor` runs";
      if (std::ranges::find(notes_, note) == notes_.end()) notes_.push_back(note);
    }
  }

  bool wished_for(const Candidate& candidate) const {
    if (wish_.empty()) return true;
    return candidate.name() == wish_ || candidate.kernel->name == wish_;
  }

  bool accepts(const Candidate& candidate) {
    const auto failure = known_ ? failure_of(context_, candidate, *known_) : std::nullopt;
    if (!failure) return true;
    const std::string note = candidate.name() + ": failed its self-test here (" + *failure + ")";
    if (std::ranges::find(notes_, note) == notes_.end()) notes_.push_back(note);
    wished_was_refused_ = true;
    return false;
  }

  KernelChoice taken(const Candidate& candidate, const char* who) const {
    std::string text = candidate.name();
    // Where there is nothing to choose from, nobody chose.
    if (candidates_.size() > 1 || !notes_.empty()) text += std::string(", by ") + who;
    if (!notes_.empty()) text += " (not " + join(notes_, "; ") + ")";
    return {candidate, text};
  }

  std::string configurations_of(std::string_view kernel) const {
    std::vector<std::string> names;
    for (const Candidate& candidate : candidates_) {
      if (candidate.kernel->name == kernel && !candidate.configuration.empty())
        names.push_back(candidate.configuration);
    }
    if (names.empty()) return std::string(kernel) + " has one configuration, without a name";
    return "the configurations of " + std::string(kernel) + " that fit it here are " + join(names, ", ");
  }

  const LowerContext& context_;
  const OpDef& op_;
  std::string_view wish_;
  const KernelChoices* known_;
  std::vector<Candidate> candidates_;
  std::vector<std::string> notes_;  // why what was not taken was not
  std::string tuned_;
  bool wished_was_refused_ = false;
};

}  // namespace

std::string Candidate::name() const {
  return std::string(kernel->name) + (configuration.empty() ? "" : ":" + configuration);
}

Candidate candidate_named(const OpDef& op, std::string_view name) {
  const auto kernel = std::ranges::find(op.kernels, kernel_part(name), &KernelDef::name);
  if (kernel == op.kernels.end()) return {};
  const size_t colon = name.find(':');
  return {&*kernel, std::string(colon == name.npos ? "" : name.substr(colon + 1))};
}

std::vector<Candidate> candidates_of(const LowerContext& context, std::vector<std::string>* refusals) {
  struct Ranked {
    const KernelDef* kernel;
    double preference;
  };
  std::vector<Ranked> kernels;
  for (const KernelDef& kernel : context.node().op->kernels) {
    if (const auto refusal = kernel.refuses(context)) {
      if (refusals) refusals->push_back(std::string(kernel.name) + ": " + *refusal);
    } else {
      kernels.push_back({&kernel, kernel.preference(context)});
    }
  }
  std::ranges::stable_sort(kernels, std::greater{}, &Ranked::preference);
  std::vector<Candidate> candidates;
  for (const Ranked& ranked : kernels) {
    if (!ranked.kernel->configurations) {
      candidates.push_back({ranked.kernel, ""});
      continue;
    }
    for (std::string& name : ranked.kernel->configurations(context))
      candidates.push_back({ranked.kernel, std::move(name)});
  }
  return candidates;
}

Lowered lower_as(const LowerContext& context, const Candidate& candidate) {
  return candidate.kernel->lower(context.with_configuration(candidate.configuration));
}

std::string node_key(const Graph& graph, const Node& node) {
  std::string key = std::string(node.op->name) + "(";
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (i != 0) key += ", ";
    if (!node.inputs[i]) {
      key += "-";
      continue;
    }
    const Value& value = graph.value(node.inputs[i]);
    if (value.role == Role::constant) key += "const ";
    key += std::string(name_of(value.dtype)) + value.shape.to_string();
  }
  return key + ")" + node.attributes.to_string();
}

std::vector<std::string> certificate_keys(const OpDef& op, const Candidate& candidate,
                                          const Lowered& lowered) {
  std::vector<std::string> keys;
  const auto add = [&](const Dispatch& dispatch) {
    char hash[20];
    std::snprintf(hash, sizeof hash, "%016llx",
                  static_cast<unsigned long long>(hash_of(dispatch.shader->words)));
    std::string key = certificate_prefix(op, candidate) + std::string(dispatch.shader->shader) + "." +
                      std::string(dispatch.shader->variant) + "#" + hash;
    if (const std::string path = path_of(dispatch); !path.empty()) key += " " + path;
    if (std::ranges::find(keys, key) == keys.end()) keys.push_back(std::move(key));
  };
  for (const Dispatch& dispatch : lowered.dispatches) add(dispatch);
  for (const Pack& pack : lowered.packs) add(pack.dispatch);
  return keys;
}

std::optional<std::string> failure_of(const LowerContext& context, const Candidate& candidate,
                                      const KernelChoices& known) {
  // Most devices have no failure, and then nothing is lowered.
  const bool may_fail =
      std::ranges::any_of(certificates_of(*context.node().op, candidate, known),
                          [](const auto& certificate) { return !certificate.second.empty(); });
  if (!may_fail) return std::nullopt;
  const auto verdict = verdict_of(context, candidate, known);
  return verdict && !verdict->empty() ? verdict : std::nullopt;
}

KernelChoice choose_kernel(const Graph& graph, const LowerContext& context, std::string_view wish,
                           const KernelChoices* known) {
  return Chooser(graph, context, wish, known).choose();
}

}  // namespace vitrine
