// Any bytes are a tokenizer (tokenizer.json where they begin as an object, else spiece.model) that makes of
// text as many numbers as were asked for, each below its size, or an Error(bad_file).
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "model/text/tokenizer_settings.h"
#include "runtime/util/error.h"
#include "runtime/util/json.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try {
    std::unique_ptr<vitrine::Tokenizer> tokenizer;
    if (bytes.starts_with('{')) {
      tokenizer = vitrine::parse_tokenizer_json(vitrine::parse_json(bytes, "x.json"), "x.json",
                                                {.pads_right = true, .hides_padding = true});
    } else {
      tokenizer = vitrine::parse_siglip_pieces(bytes, "x.model");
    }
    for (const char* text :
         {"", " ", "A photo of two cats.</s> ab", "\u00e9\u0301\u65e5\u672c \u2581\u2581 \U0001f600 <unk>"}) {
      const auto ids = tokenizer->encode(text, 16);
      if (ids.size() != 16) abort();
      for (const uint32_t id : ids) {
        if (id >= tokenizer->size()) abort();
      }
    }
  } catch (const vitrine::Error& error) {
    if (error.code() != vitrine::ErrorCode::bad_file ||
        std::string(error.what()).find('\n') != std::string::npos)
      abort();
  }
  return 0;
}
