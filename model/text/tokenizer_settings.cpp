#include "model/text/tokenizer_settings.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "runtime/util/json.h"
#include "runtime/util/text.h"

namespace vitrine {
namespace {

using Json = nlohmann::json;

// A token is its text, or an object that has it.
void read_token(const JsonObject& object, const char* key, std::optional<std::string>& token) {
  const Json* value = object.find(key);
  if (!value) return;
  if (value->is_string()) {
    token = value->get<std::string>();
  } else {
    token = JsonObject(*value, object.file() + " (" + key + ")").text("content");
  }
}

}  // namespace

AddedToken read_added_token(const JsonObject& object, uint64_t id) {
  AddedToken token;
  const auto content = object.text("content");
  if (!content || content->empty()) object.fail("content", nullptr, "a token's text");
  if (id > largest_id) object.fail("id", id, "a number up to " + std::to_string(largest_id));
  token.content = *content;
  token.id = static_cast<uint32_t>(id);
  assign(token.lstrip, object.flag("lstrip"));
  assign(token.rstrip, object.flag("rstrip"));
  assign(token.normalized, object.flag("normalized"));
  if (object.flag("single_word").value_or(false)) {
    object.fail("single_word", true, "false: added tokens that are whole words aren't supported yet");
  }
  return token;
}

TokenizerSettings read_tokenizer_settings(const std::filesystem::path& folder) {
  TokenizerSettings settings;
  for (const char* name : {"special_tokens_map.json", "tokenizer_config.json"}) {
    const std::filesystem::path path = folder / name;
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored)) continue;
    const Json json = read_json(path);
    const JsonObject object(json, shown(path));
    read_token(object, "bos_token", settings.begin);
    read_token(object, "eos_token", settings.end);
    read_token(object, "unk_token", settings.unknown);
    read_token(object, "pad_token", settings.pad);
    if (const auto lower = object.flag("do_lower_case")) settings.lower = lower;
    if (object.text("padding_side") == "right") settings.pads_right = true;
    if (const Json* names = object.find("model_input_names")) {
      if (!names->is_array()) object.fail("model_input_names", *names, "a list");
      settings.hides_padding = std::ranges::find(*names, "attention_mask") == names->end();
    }
    for (const char* side : {"padding_side", "truncation_side"}) {
      if (const auto text = object.text(side); text && text != "right") {
        object.fail(side, *text, "\"right\", the only side that is supported yet");
      }
    }
    if (const Json* added = object.find("added_tokens_decoder")) {
      const JsonObject checked(*added, shown(path) + " (added_tokens_decoder)");
      for (const auto& [key, value] : added->items()) {
        uint64_t id = 0;
        const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
        if (error != std::errc{} || end != key.data() + key.size()) {
          checked.fail(key.c_str(), value, "a token's number as its key");
        }
        settings.added.push_back(read_added_token(JsonObject(value, checked.file() + " (" + key + ")"), id));
      }
    }
  }
  return settings;
}

}  // namespace vitrine
