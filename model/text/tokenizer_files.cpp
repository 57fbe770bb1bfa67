// spiece.model, SentencePiece's file, as SigLIP has it.
#include <algorithm>

#include "model/text/protobuf.h"
#include "model/text/tokenizer.h"
#include "model/text/tokenizer_settings.h"
#include "model/text/unicode.h"
#include "runtime/util/error.h"
#include "runtime/util/mapped_file.h"
#include "runtime/util/text.h"

namespace vitrine {
namespace {

// As transformers' SiglipTokenizer: the text is made canonical, then SentencePiece is given it with "<unk>"
// in front, so that it keeps what the text begins with.
class SiglipPieces : public Tokenizer {
 public:
  SiglipPieces(SentencePieceModel model, const TokenizerSettings& settings, const std::string& file)
      : unigram_(std::move(model.pieces), model.unknown, true),
        normalizer_(std::move(model.normalizer)),
        unknown_(settings.unknown.value_or("<unk>")),
        lower_(settings.lower.value_or(true)) {
    if (!normalizer_.remove_extra_whitespaces) {
      throw Error(ErrorCode::bad_file,
                  file + ": found a model that keeps white space as it is, which isn't supported yet");
    }
    space_ = unicode::is_python_space;
    const std::string end = settings.end.value_or("</s>"), pad = settings.pad.value_or("</s>");
    const auto number = [&](const std::string& token) {
      for (const auto& [text, id] : model.reserved) {
        if (text == token) return id;
      }
      if (const uint32_t* id = unigram_.find(token)) return *id;
      throw Error(ErrorCode::bad_file, file + ": found no piece " + in_quotes(token) + ", expected one");
    };
    end_ = number(end);
    pad_ = number(pad);
    for (const std::string& token : {end, pad, unknown_}) {
      if (std::ranges::find(added_, token, &AddedToken::content) == added_.end()) {
        added_.push_back({.content = token, .id = number(token), .lstrip = true, .rstrip = true});
      }
    }
    for (const AddedToken& token : settings.added) {
      if (std::ranges::find(added_, token.content, &AddedToken::content) == added_.end()) {
        added_.push_back(token);
      }
    }
    std::vector<uint32_t> ids;
    unigram_.append(ids, normalizer_(unknown_));
    prefix_ = ids.size();
  }

 protected:
  static constexpr std::string_view space_mark = "\xe2\x96\x81";

  std::string start(std::string_view text) const override {
    std::u32string codes = unicode::decode(text);
    std::ranges::replace(codes, U'\u2581', U' ');
    return std::string(space_mark) + unicode::encode(codes);
  }

  void append(std::vector<uint32_t>& ids, std::string_view text, bool) const override {
    std::u32string codes = unicode::decode(text);
    if (lower_) codes = unicode::python_lower(codes);
    std::erase_if(codes, unicode::is_ascii_punctuation);
    std::u32string canonical;
    for (const char32_t code : codes) {
      if (!unicode::is_python_space(code)) {
        canonical += code;
      } else if (!canonical.empty() && canonical.back() != U' ') {
        canonical += U' ';
      }
    }
    if (canonical.ends_with(U' ')) canonical.pop_back();
    std::vector<uint32_t> all;
    unigram_.append(all, normalizer_(unknown_ + unicode::encode(canonical)));
    const size_t skipped = all.size() >= prefix_ ? prefix_ : 0;
    ids.insert(ids.end(), all.begin() + static_cast<std::ptrdiff_t>(skipped), all.end());
  }

  uint32_t largest() const override { return unigram_.size() - 1; }

 private:
  Unigram unigram_;
  PieceNormalizer normalizer_;
  std::string unknown_;
  bool lower_;
  size_t prefix_ = 0;  // how many pieces the unknown token's own letters are
};

}  // namespace

std::unique_ptr<Tokenizer> parse_siglip_pieces(std::string_view bytes, const std::string& file,
                                               const TokenizerSettings& settings) {
  return std::make_unique<SiglipPieces>(parse_sentencepiece(bytes, file), settings, file);
}

std::unique_ptr<Tokenizer> read_siglip_pieces(const std::filesystem::path& path) {
  const MappedFile file(path);
  return parse_siglip_pieces({reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()},
                             shown(path), read_tokenizer_settings(path.parent_path()));
}

}  // namespace vitrine
