// tokenizer.json, the file of the library `tokenizers`: steps by name, of which those are done that CLIP's,
// SigLIP's and SigLIP 2's have.
#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

#include "model/files/json_object.h"
#include "model/text/text_steps.h"
#include "model/text/tokenizer.h"
#include "model/text/tokenizer_settings.h"
#include "model/text/unicode.h"
#include "runtime/util/error.h"
#include "runtime/util/json.h"
#include "runtime/util/text.h"

namespace vitrine {
namespace {

using Json = nlohmann::json;

// A vocabulary of a quarter of a million tokens, and as many merges.
constexpr JsonLimits limits{.bytes = size_t{64} << 20, .values = 4'000'000};

std::unordered_map<std::string, uint32_t> read_vocabulary(const Json& json, const std::string& file) {
  const JsonObject object(json, file);
  std::unordered_map<std::string, uint32_t> vocabulary;
  for (const auto& [token, value] : json.items()) {
    const auto id = as_whole(value);
    if (!id || *id > largest_id) object.fail(in_quotes(token).c_str(), value, "a token's number");
    vocabulary.emplace(token, static_cast<uint32_t>(*id));
  }
  return vocabulary;
}

// What a tokenizer.json is made of, whichever model it has.
class StepTokenizer : public Tokenizer {
 public:
  struct Specials {
    std::vector<AddedToken> added;
    std::optional<uint32_t> begin, end;
    uint32_t pad = 0;
  };
  StepTokenizer(TextSteps steps, Specials specials) : steps_(std::move(steps)) {
    added_ = std::move(specials.added);
    begin_ = specials.begin;
    end_ = specials.end;
    pad_ = specials.pad;
    for (AddedToken& token : added_) {
      if (token.normalized) token.content = apply_steps(steps_, token.content);
    }
  }

 protected:
  std::string normalize(std::string_view text) const override { return apply_steps(steps_, text); }

 private:
  TextSteps steps_;
};

// Words that byte pairs are made of: by CLIP's expression, or with the spaces behind them as Gemma has it.
class PairTokenizer : public StepTokenizer {
 public:
  PairTokenizer(BytePairs pairs, PairWords words, TextSteps steps, Specials specials)
      : StepTokenizer(std::move(steps), std::move(specials)), pairs_(std::move(pairs)), words_(words) {}

 protected:
  void append(std::vector<uint32_t>& ids, std::string_view text, bool) const override {
    if (words_ == PairWords::clip) {
      for (const std::string& word : clip_words(text)) pairs_.append(ids, word);
    } else {
      for (const std::string_view word : words_with_spaces(text)) pairs_.append(ids, word);
    }
  }
  uint32_t largest() const override { return pairs_.largest(); }

 private:
  BytePairs pairs_;
  PairWords words_;
};

class UnigramTokenizer : public StepTokenizer {
 public:
  UnigramTokenizer(Unigram unigram, Metaspace metaspace, TextSteps steps, Specials specials)
      : StepTokenizer(std::move(steps), std::move(specials)),
        unigram_(std::move(unigram)),
        metaspace_(metaspace) {}

 protected:
  void append(std::vector<uint32_t>& ids, std::string_view text, bool first) const override {
    for (const std::string& word : metaspace_.words(text, first)) unigram_.append(ids, word);
  }
  uint32_t largest() const override { return unigram_.size() - 1; }

 private:
  Unigram unigram_;
  Metaspace metaspace_;
};

JsonObject required(const JsonObject& object, const char* key) {
  if (auto found = object.object(key)) return *found;
  object.fail(key, nullptr, "an object");
}

std::string kind_of(const JsonObject& object) {
  if (auto type = object.text("type")) return *type;
  object.fail("type", nullptr, "the name of a kind");
}

// What stands around a text.
struct Around {
  std::optional<uint32_t> begin, end;
};

Around read_template(const JsonObject& object) {
  const Json* single = object.find("single");
  const Json* specials = object.find("special_tokens");
  if (!single || !single->is_array()) object.fail("single", single ? *single : Json(), "a list");
  if (!specials || !specials->is_object()) {
    object.fail("special_tokens", specials ? *specials : Json(), "an object");
  }
  Around around;
  bool text = false;
  for (const Json& part : *single) {
    const JsonObject step(part, object.file() + " (single)");
    if (step.find("Sequence") && !text) {
      text = true;
      continue;
    }
    const auto special = step.object("SpecialToken");
    const auto name = special ? special->text("id") : std::nullopt;
    std::optional<uint32_t>& place = text ? around.end : around.begin;
    if (!name || place || !specials->contains(*name)) {
      object.fail("single", *single, "a text with at most one known token on each side");
    }
    const JsonObject token((*specials)[*name], object.file() + " (special_tokens)");
    const Json* ids = token.find("ids");
    const auto id = ids && ids->is_array() && ids->size() == 1 ? as_whole(ids->front()) : std::nullopt;
    if (!id || *id > largest_id) token.fail("ids", ids ? *ids : Json(), "one token's number");
    place = static_cast<uint32_t>(*id);
  }
  if (!text) object.fail("single", *single, "a text with at most one known token on each side");
  return around;
}

Around read_around(const JsonObject& object) {
  const std::string type = kind_of(object);
  if (type == "TemplateProcessing") return read_template(object);
  if (type == "RobertaProcessing" || type == "BertProcessing") {
    const auto id = [&](const char* key) {
      const Json* pair = object.find(key);
      const auto number = pair && pair->is_array() && pair->size() == 2 ? as_whole((*pair)[1]) : std::nullopt;
      if (!number || *number > largest_id) {
        object.fail(key, pair ? *pair : Json(), "a token and its number");
      }
      return static_cast<uint32_t>(*number);
    };
    return {id("cls"), id("sep")};
  }
  if (type == "ByteLevel") return {};
  if (type == "Sequence") {
    Around around;
    const Json* list = object.find("processors");
    if (!list || !list->is_array()) object.fail("processors", list ? *list : Json(), "a list");
    for (const Json& each : *list) {
      const Around found = read_around(JsonObject(each, object.file()));
      if (found.begin) around.begin = found.begin;
      if (found.end) around.end = found.end;
    }
    return around;
  }
  object.fail("type", type, "TemplateProcessing, RobertaProcessing or ByteLevel, which are supported");
}

// "a b", or ["a", "b"].
std::vector<std::string> read_merges(const JsonObject& model) {
  const Json* list = model.find("merges");
  if (!list || !list->is_array()) model.fail("merges", list ? *list : Json(), "a list");
  std::vector<std::string> merges;
  for (const Json& merge : *list) {
    const bool pair = merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string();
    if (!pair && !merge.is_string()) model.fail("merges", merge, "two tokens");
    merges.push_back(pair ? merge[0].get<std::string>() + " " + merge[1].get<std::string>()
                          : merge.get<std::string>());
  }
  return merges;
}

BytePairs read_byte_pairs(const JsonObject& model, PairWords words) {
  const bool clip = words == PairWords::clip;
  if (model.flag("byte_fallback").value_or(false) == clip) {
    model.fail("byte_fallback", clip,
               clip ? "false, the only value that is supported with CLIP's words"
                    : "true, the only value that is supported with Gemma's words");
  }
  const auto require_false = [&](const char* key) {
    if (model.flag(key).value_or(false)) model.fail(key, true, "false, the only value that is supported yet");
  };
  const auto require_none = [&](const char* key) {
    const auto mark = model.text(key);
    if (mark && !mark->empty()) model.fail(key, *mark, "none, as nothing else is supported yet");
  };
  require_false("ignore_merges");
  require_none("continuing_subword_prefix");
  if (clip) {
    require_false("fuse_unk");  // with a token for each byte nothing is unknown
  } else {
    require_none("end_of_word_suffix");
  }
  if (const Json* dropout = model.find("dropout"); dropout && *dropout != 0.0) {
    model.fail("dropout", *dropout, "none");
  }
  const Json* vocabulary = model.find("vocab");
  if (!vocabulary) model.fail("vocab", nullptr, "an object");
  auto tokens = read_vocabulary(*vocabulary, model.file() + " (vocab)");
  if (!clip) return {std::move(tokens), read_merges(model), model.file()};
  return {std::move(tokens), read_merges(model), model.text("end_of_word_suffix").value_or(""),
          model.text("unk_token").value_or(""), model.file()};
}

// What the folder's other files say has to be what is done.
void require_gemma_settings(const TokenizerSettings& settings, const std::string& file) {
  if (!settings.pads_right || !settings.hides_padding) {
    throw Error(ErrorCode::bad_file,
                file +
                    R"(: expected "padding_side": "right" and "model_input_names": ["input_ids"] in )"
                    R"(tokenizer_config.json, as SigLIP 2 has them: without, texts are padded on the left )"
                    "and padding is masked, which isn't supported yet");
  }
}

Unigram read_unigram(const JsonObject& model) {
  if (model.flag("byte_fallback").value_or(false)) {
    model.fail("byte_fallback", true, "false, the only value that is supported yet");
  }
  const Json* list = model.find("vocab");
  if (!list || !list->is_array() || list->empty()) model.fail("vocab", list ? *list : Json(), "a list");
  std::vector<UnigramPiece> pieces;
  for (const Json& piece : *list) {
    if (!piece.is_array() || piece.size() != 2 || !piece[0].is_string() || !piece[1].is_number()) {
      model.fail("vocab", piece, "a piece and its score");
    }
    pieces.push_back({.text = piece[0].get<std::string>(), .score = piece[1].get<double>()});
    pieces.back().matches = !pieces.back().text.empty();
  }
  const auto unknown = model.whole("unk_id");
  if (!unknown || *unknown >= pieces.size()) {
    model.fail("unk_id", unknown ? Json(*unknown) : Json(), "the number of a piece");
  }
  return {std::move(pieces), static_cast<uint32_t>(*unknown), false};
}

}  // namespace

std::unique_ptr<Tokenizer> read_tokenizer_json(const std::filesystem::path& path, bool lower) {
  TokenizerSettings settings = read_tokenizer_settings(path.parent_path());
  if (lower) settings.lower = true;
  return parse_tokenizer_json(read_json(path, limits), shown(path), settings);
}

std::unique_ptr<Tokenizer> parse_tokenizer_json(const Json& json, const std::string& file,
                                                const TokenizerSettings& settings) {
  const JsonObject object(json, file);
  const JsonObject model = required(object, "model");
  TextSteps steps;
  if (const auto normalizer = object.object("normalizer")) steps = read_steps(*normalizer);
  std::vector<AddedToken> added;
  if (const Json* list = object.find("added_tokens")) {
    if (!list->is_array()) object.fail("added_tokens", *list, "a list");
    for (const Json& each : *list) {
      const JsonObject token(each, file + " (added_tokens)");
      const auto id = token.whole("id");
      if (!id) token.fail("id", nullptr, "a token's number");
      added.push_back(read_added_token(token, *id));
    }
  }
  Around around;
  if (const auto post = object.object("post_processor")) around = read_around(*post);
  const JsonObject splitter = required(object, "pre_tokenizer");
  const auto pad_of = [&](auto&& find) {
    if (settings.pad) {
      const auto token = std::ranges::find(added, *settings.pad, &AddedToken::content);
      if (token != added.end()) return token->id;
      if (const uint32_t* id = find(*settings.pad)) return *id;
      throw Error(ErrorCode::bad_file, file + ": found no token " + in_quotes(*settings.pad) +
                                           ", expected the one that pads, as tokenizer_config.json names it");
    }
    if (const auto padding = object.object("padding")) {
      if (const auto id = padding->whole("pad_id")) {
        if (*id > largest_id) padding->fail("pad_id", *id, "a token's number");
        return static_cast<uint32_t>(*id);
      }
    }
    if (around.end) return *around.end;
    object.fail("padding", nullptr, "a token that pads, here or in tokenizer_config.json");
  };
  const std::string type = kind_of(model);
  if (type == "BPE") {
    const PairWords words = read_pair_words(splitter);
    BytePairs pairs = read_byte_pairs(model, words);
    const uint32_t pad = pad_of([&](const std::string& token) { return pairs.find(token); });
    StepTokenizer::Specials specials{added, around.begin, around.end, pad};
    if (words == PairWords::with_spaces) {
      require_gemma_settings(settings, file);
      if (settings.lower.value_or(false)) steps.insert(steps.begin(), lower_case());
    }
    return std::make_unique<PairTokenizer>(std::move(pairs), words, std::move(steps), std::move(specials));
  }
  if (type == "Unigram") {
    const Metaspace metaspace = read_metaspace(splitter);
    Unigram unigram = read_unigram(model);
    const uint32_t pad = pad_of([&](const std::string& token) { return unigram.find(token); });
    return std::make_unique<UnigramTokenizer>(std::move(unigram), metaspace, std::move(steps),
                                              StepTokenizer::Specials{added, around.begin, around.end, pad});
  }
  model.fail("type", type, "BPE or Unigram, the models that are supported");
}

std::unique_ptr<Tokenizer> read_clip_vocabulary(const std::filesystem::path& vocab,
                                                const std::filesystem::path& merges_path) {
  const std::string file = shown(vocab);
  const auto vocabulary = read_vocabulary(read_json(vocab, limits), file);
  const TokenizerSettings settings = read_tokenizer_settings(vocab.parent_path());
  const std::string begin = settings.begin.value_or("<|startoftext|>"),
                    end = settings.end.value_or("<|endoftext|>"), unknown = settings.unknown.value_or(end),
                    pad = settings.pad.value_or(end);
  const auto number = [&](const std::string& token) {
    if (const auto found = vocabulary.find(token); found != vocabulary.end()) return found->second;
    const auto other = std::ranges::find(settings.added, token, &AddedToken::content);
    if (other != settings.added.end()) return other->id;
    throw Error(ErrorCode::bad_file, file + ": found no token " + in_quotes(token) + ", expected one");
  };
  std::vector<AddedToken> added = settings.added;
  for (const std::string& token : {begin, end, unknown, pad}) {
    if (std::ranges::find(added, token, &AddedToken::content) == added.end()) {
      added.push_back({.content = token, .id = number(token)});
    }
  }
  return std::make_unique<PairTokenizer>(
      BytePairs(vocabulary, read_merge_lines(merges_path), "</w>", unknown, shown(merges_path)),
      PairWords::clip, clip_steps(),
      StepTokenizer::Specials{std::move(added), number(begin), number(end), number(pad)});
}

}  // namespace vitrine
