#include "tests/apps/document_rules.h"

#include <algorithm>
#include <regex>
#include <sstream>

namespace vitrine::test {
namespace {

// What stands in a document and not in what is run.
struct Replacement {
  std::string shown, run;
};

const Replacement replacements[] = {
    {"[--recompute]", "--recompute"},   {"in 1 2 3 4 5;", "in 1;"},
    {"50432x3072x768", "197x96x96"},     // a product of 0.2 TFLOP
    {"--layer 7", "--layer 2"},          // of the shipped model's four
    {"--devices 0,1", "--devices 0,0"},  // there may be one alone
};

// An option that makes a command's work small: put behind the subcommand, or in place of each larger number
// that the command has.
struct Limit {
  std::string subcommand, option;
  uint64_t most = 0;
  bool add = true;              // where the command hasn't got it
  std::string not_beside = {};  // an option that excludes it
};

const Limit limits[] = {
    {"vitrine digits", "--train", 300},     {"vitrine digits", "--test", 60},
    {"vitrine train", "--epochs", 1},       {"vitrine bench", "--runs", 1, true, "--startup"},
    {"vitrine bench", "--batch", 2, false}, {"vitrine tune", "--seconds", 1},
    {"vitrine tune", "--batch", 2, false},  {"vitrine classify FOLDER", "--batch", 2, false},
};

// For a slow device as many pictures as the shipped configurations have in a batch, and fewer to test on.
const Limit slow_limits[] = {{"vitrine digits", "--train", 128}, {"vitrine digits", "--test", 40}};

// Fields of models with random weights, and of those that are trained.
const Replacement one_block[] = {
    {"vitrine bench --arch", "vitrine bench --set depth=1 --arch"},
    {"vitrine bench --train", "vitrine bench --set depth=1 --train"},
    {"vitrine tune --arch", "vitrine tune --set depth=1 --arch"},
};

void replace_all(std::string& text, const Replacement& replacement) {
  for (size_t at = 0; (at = text.find(replacement.shown, at)) != std::string::npos;) {
    text.replace(at, replacement.shown.size(), replacement.run);
    at += replacement.run.size();
  }
}

void apply(const Limit& limit, std::string& text) {
  const size_t at = text.find(limit.subcommand);
  if (at == std::string::npos) return;
  std::smatch found;
  if (std::regex_search(text, found, std::regex(limit.option + " ([0-9]+(,[0-9]+)*)"))) {
    std::istringstream numbers(found[1].str());
    std::string smaller;
    for (std::string number; std::getline(numbers, number, ',');) {
      if (!smaller.empty()) smaller += ',';
      smaller += std::to_string(std::min<uint64_t>(std::stoull(number), limit.most));
    }
    text.replace(static_cast<size_t>(found.position(1)), static_cast<size_t>(found.length(1)), smaller);
  } else if (limit.add && (limit.not_beside.empty() || text.find(limit.not_beside) == std::string::npos)) {
    text.insert(at + limit.subcommand.size(), " " + limit.option + " " + std::to_string(limit.most));
  }
}

}  // namespace

std::string made_small(const std::string& command, bool for_slow) {
  std::string text = command;
  for (const Replacement& replacement : replacements) replace_all(text, replacement);
  // An epoch of the data that lie here, with no model behind it: there is nothing to make smaller.
  if (text.starts_with("vitrine bench --train") && text.find(" --data ") != std::string::npos) return text;
  for (const Replacement& replacement : one_block) replace_all(text, replacement);
  // A training that begins with a model keeps its depth.
  if (text.find("--model") == std::string::npos)
    replace_all(text, {"vitrine train", "vitrine train --set depth=1"});
  if (for_slow) {
    // Patches of 14 or of 16 and 32 pixels divide these.
    const std::string pixels = text.find("patch14") == std::string::npos ? "64" : "56";
    if (text.find("--image-size") == std::string::npos)
      replace_all(text, {"--set depth=1 --arch", "--set depth=1 --image-size " + pixels + " --arch"});
    replace_all(text, {"--train configs/imagenet", "--set image_size=64 --train configs/imagenet"});
  }
  for (const Limit& limit : limits) apply(limit, text);
  if (for_slow) {
    for (const Limit& limit : slow_limits) apply(limit, text);
  }
  // All of a device's kernels take minutes; the tests of doctor itself go through them.
  if (text == "vitrine doctor") text += " --only gated_product";
  return text;
}

}  // namespace vitrine::test
