#include "model/files/labels.h"

#include <charconv>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "runtime/util/error.h"
#include "runtime/util/text.h"

namespace vitrine {
namespace {

using Json = nlohmann::json;
using IndexedNames = std::map<uint64_t, std::string>;

class Reader {
 public:
  Reader(uint64_t classes, std::string field, const std::string& file)
      : classes_(classes), field_(std::move(field)), file_(file) {}

  [[noreturn]] void fail(const std::string& found, const std::string& expected) const {
    throw Error(ErrorCode::bad_file, file_ + ": \"" + field_ + "\" " + found + ", expected " + expected);
  }

  std::string text(const Json& value, const std::string& key) const {
    if (!value.is_string()) fail("has a JSON " + std::string(value.type_name()) + " for " + key, "a string");
    return value.get<std::string>();
  }

  IndexedNames list(const Json& value) const {
    IndexedNames names;
    for (const Json& name : value) {
      const uint64_t index = names.size();
      if (index >= classes_) too_many(value.size());
      names.emplace(index, text(name, "class " + std::to_string(index)));
    }
    return names;
  }

  // Keys are indices, as JSON has to write them: "0", "1".
  IndexedNames object(const Json& value) const {
    IndexedNames names;
    for (const auto& [key, name] : value.items()) {
      uint64_t index = 0;
      const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), index);
      const bool whole = error == std::errc() && end == key.data() + key.size();
      if (!whole || std::to_string(index) != key || index >= classes_) {
        fail("has a label for " + in_quotes(key), "class numbers from 0 to " + std::to_string(classes_ - 1));
      }
      names.emplace(index, text(name, in_quotes(key)));
    }
    return names;
  }

  [[noreturn]] void too_many(size_t count) const {
    fail("has " + std::to_string(count) + " labels",
         "at most the " + std::to_string(classes_) + " of the model's classes");
  }

 private:
  uint64_t classes_;
  std::string field_;
  const std::string& file_;
};

const Json* find(const Json& json, const std::string& key) {
  const auto found = json.find(key);
  return found == json.end() || found->is_null() ? nullptr : &*found;
}

// timm's field, which may stand in the file or in its pretrained_cfg; the first goes before the second.
const Json* find_timm(const Json& config, const char* key) {
  if (const Json* value = find(config, key)) return value;
  const Json* pretrained = find(config, "pretrained_cfg");
  return pretrained && pretrained->is_object() ? find(*pretrained, key) : nullptr;
}

void describe(IndexedNames& names, const Json& config, const std::string& file) {
  const Json* descriptions = find_timm(config, "label_descriptions");
  if (!descriptions) return;
  const Reader read(0, "label_descriptions", file);
  if (!descriptions->is_object())
    read.fail("is a JSON " + std::string(descriptions->type_name()), "an object of texts by label");
  for (auto& [index, name] : names) {
    const Json* text = find(*descriptions, name);
    if (!text) read.fail("has none for the label " + in_quotes(name), "one for each of \"label_names\"");
    name = read.text(*text, in_quotes(name));
  }
}

Labels labels_of(const IndexedNames& names) {
  if (names.empty()) return {};
  std::vector<std::string> list(names.rbegin()->first + 1);
  for (const auto& [index, name] : names) list[index] = name;
  return Labels(std::move(list));
}

}  // namespace

std::string Labels::operator[](uint64_t index) const {
  return index < names_.size() && !names_[index].empty() ? names_[index] : "class " + std::to_string(index);
}

Labels read_labels(const Json& config, uint64_t classes, const std::string& file) {
  if (classes == 0 || !config.is_object()) return {};
  if (const Json* labels = find(config, "id2label")) {
    const Reader read(classes, "id2label", file);
    if (!labels->is_object())
      read.fail("is a JSON " + std::string(labels->type_name()), "an object of labels");
    const IndexedNames names = read.object(*labels);
    if (names.size() != classes) {
      read.fail("has " + std::to_string(names.size()) + " labels",
                "one for each of the model's " + std::to_string(classes) + " classes");
    }
    return labels_of(names);
  }
  // timm's may leave classes out.
  const Json* labels = find_timm(config, "label_names");
  if (!labels) return {};
  const Reader read(classes, "label_names", file);
  if (!labels->is_array() && !labels->is_object())
    read.fail("is a JSON " + std::string(labels->type_name()), "a list of labels or an object of them");
  IndexedNames names = labels->is_array() ? read.list(*labels) : read.object(*labels);
  describe(names, config, file);
  return labels_of(names);
}

}  // namespace vitrine
