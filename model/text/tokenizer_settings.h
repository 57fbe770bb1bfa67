// tokenizer_config.json and special_tokens_map.json: what transformers keeps of a tokenizer beside its own
// files.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "model/files/json_object.h"
#include "model/text/tokenizer.h"

namespace vitrine {

// The largest number of a token in files.
constexpr uint64_t largest_id = 1u << 28;

struct TokenizerSettings {
  std::optional<std::string> begin, end, unknown, pad;
  std::optional<bool> lower;
  // That texts are padded on the right, and that the model isn't told where: where a file says nothing of
  // it, it goes by the library's class.
  bool pads_right = false, hides_padding = false;
  std::vector<AddedToken> added;
};

// What the folder's files say; nothing where there are none. Throws Error(bad_file) naming the file.
TokenizerSettings read_tokenizer_settings(const std::filesystem::path& folder);
// The files' content, as read_siglip_pieces() and read_tokenizer_json() find it.
std::unique_ptr<Tokenizer> parse_siglip_pieces(std::string_view bytes, const std::string& file,
                                               const TokenizerSettings& settings = {});
std::unique_ptr<Tokenizer> parse_tokenizer_json(const nlohmann::json& json, const std::string& file,
                                                const TokenizerSettings& settings = {});
// One entry of "added_tokens" or "added_tokens_decoder".
AddedToken read_added_token(const JsonObject& object, uint64_t id);

}  // namespace vitrine
