#include "model/files/safetensors_header.h"

#include <array>
#include <optional>
#include <utility>

#include "runtime/util/error.h"
#include "runtime/util/json.h"
#include "runtime/util/overflow.h"
#include "runtime/util/text.h"

namespace vitrine {
namespace {

constexpr std::string_view metadata_key = "__metadata__";
constexpr size_t highest_rank = 32;

// What the table of a file may take. The format allows a header of 100 MB; real ones hold a few
// hundred kilobytes, and a hostile one must not make us take memory by the size of its own.
constexpr size_t table_budget = size_t{16} << 20;

class HeaderReader final : public JsonEvents {
 public:
  HeaderReader(uint64_t data_bytes, const std::string& file) : data_bytes_(data_bytes), file_(file) {}

  SafetensorsHeader take() { return std::move(header_); }

  void begin_object() override {
    if (at_ == At::outside) {
      at_ = At::file;
    } else if (at_ == At::file && name_ == metadata_key) {
      at_ = At::metadata;
    } else if (at_ == At::file) {
      at_ = At::tensor;
      tensor_ = {};
      tensor_.name = name_;
      has_.fill(false);
    } else {
      refuse("an object");
    }
  }

  void key(const std::string& name) override {
    if (at_ == At::file) {
      if (name == metadata_key && std::exchange(has_metadata_, true))
        fail("\"__metadata__\" stands in it twice");
      name_ = name;
    } else if (at_ == At::metadata) {
      if (header_.metadata.contains(name)) fail("\"__metadata__\" has the key " + in_quotes(name) + " twice");
      metadata_name_ = name;
    } else {
      field_ = 0;
      while (field_ < fields.size() && fields[field_] != name) ++field_;
      if (field_ == fields.size()) {
        fail(tensor() + " has the field " + in_quotes(name) +
             ", expected dtype, shape and data_offsets only");
      }
      if (std::exchange(has_[field_], true)) fail(tensor() + " has the field " + in_quotes(name) + " twice");
    }
  }

  void end_object() override {
    if (at_ == At::tensor) finish_tensor();
    at_ = at_ == At::file ? At::outside : At::file;
  }

  void begin_array() override {
    if (at_ == At::tensor && field_ == shape) {
      at_ = At::shape;
    } else if (at_ == At::tensor && field_ == offsets) {
      at_ = At::offsets;
      offset_count_ = 0;
    } else {
      refuse("an array");
    }
  }

  void end_array() override {
    if (at_ == At::offsets && offset_count_ != 2) fail_offset_count();
    at_ = At::tensor;
  }

  void string(const std::string& value) override {
    if (at_ == At::metadata) {
      charge(metadata_name_.size() + value.size() + map_entry);
      header_.metadata.emplace(metadata_name_, value);
    } else if (at_ == At::tensor && field_ == dtype) {
      const std::optional<FileDType> known = file_dtype_named(value);
      if (!known) fail(tensor() + " is of the unknown dtype " + in_quotes(value));
      tensor_.dtype = *known;
    } else {
      refuse("the string " + in_quotes(value, 40));
    }
  }

  void unsigned_integer(uint64_t value) override {
    if (at_ == At::shape) {
      if (tensor_.shape.size() == highest_rank) {
        fail(tensor() + " has more than " + std::to_string(highest_rank) + " dimensions");
      }
      tensor_.shape.push_back(value);
    } else if (at_ == At::offsets) {
      if (offset_count_ == 2) fail_offset_count();
      (offset_count_++ == 0 ? tensor_.begin : tensor_.end) = value;
    } else {
      refuse("the number " + std::to_string(value));
    }
  }

  void null() override { refuse("null"); }
  void boolean(bool value) override { refuse(value ? "true" : "false"); }
  void negative_integer(int64_t value) override { refuse("the negative number " + std::to_string(value)); }
  void real(double) override { refuse("a fraction or a number past 64 bits"); }

 private:
  enum class At { outside, file, metadata, tensor, shape, offsets };
  enum Field : size_t { dtype, shape, offsets };
  static constexpr std::array<std::string_view, 3> fields{"dtype", "shape", "data_offsets"};
  static constexpr size_t map_entry = 128;  // about what a node with two strings takes

  [[noreturn]] void fail(const std::string& what) const {
    throw Error(ErrorCode::bad_file, file_ + ": " + what);
  }

  std::string tensor() const { return "tensor " + in_quotes(name_); }

  // A value of a kind that has no place where it stands.
  [[noreturn]] void refuse(const std::string& found) const {
    switch (at_) {
      case At::outside:
        fail("the header is " + found + ", expected an object");
      case At::file:
        if (name_ == metadata_key) fail("\"__metadata__\" is " + found + ", expected an object of strings");
        fail(tensor() + " is " + found + ", expected an object with dtype, shape and data_offsets");
      case At::metadata:
        fail("\"__metadata__\" has " + found + " for " + in_quotes(metadata_name_) + ", expected a string");
      case At::tensor:
        fail(tensor() + " has " + found + " for its " + std::string(fields[field_]) + ", expected " +
             (field_ == dtype ? "a string" : "an array of whole numbers"));
      case At::shape:
      case At::offsets:
        fail(tensor() + " has " + found + " in its " + std::string(fields[field_]) +
             ", expected whole numbers");
    }
    fail("the header holds " + found + " where nothing should be");
  }

  [[noreturn]] void fail_offset_count() const {
    fail(tensor() + " has " + (offset_count_ == 2 ? "more than 2" : std::to_string(offset_count_)) +
         " data_offsets, expected 2");
  }

  void charge(size_t bytes) {
    charged_ += bytes;
    if (charged_ > table_budget) {
      fail("names, shapes and metadata take more than " + std::to_string(table_budget >> 20) +
           " MiB, no model needs so much");
    }
  }

  void finish_tensor() {
    for (size_t field = 0; field < fields.size(); ++field) {
      if (!has_[field]) fail(tensor() + " has no " + std::string(fields[field]));
    }
    const uint64_t begin = tensor_.begin;
    const uint64_t end = tensor_.end;
    const std::string range = "[" + std::to_string(begin) + ", " + std::to_string(end) + "]";
    if (end < begin) fail(tensor() + " has the data_offsets " + range + ", which end before they begin");
    if (end > data_bytes_) {
      fail(tensor() + " has the data_offsets " + range + ", but the file has only " +
           std::to_string(data_bytes_) + " bytes of data");
    }
    const std::string what = std::string(name_of(tensor_.dtype)) + " of shape " + shape_text();
    uint64_t bits = 1;
    bool fits = true;
    for (const uint64_t dim : tensor_.shape) fits = fits && multiply(bits, dim);
    if (!fits || !multiply(bits, bits_of(tensor_.dtype)))
      fail(tensor() + " is " + what + ", whose size overflows 64 bits");
    if (bits % 8 != 0) fail(tensor() + " is " + what + ", which does not end at a whole byte");
    if (bits / 8 != end - begin) {
      fail(tensor() + " has " + std::to_string(end - begin) + " bytes, expected " + std::to_string(bits / 8) +
           " for " + what);
    }
    tensor_.shape.shrink_to_fit();
    charge(sizeof(TensorInfo) + tensor_.name.size() + tensor_.shape.size() * sizeof(uint64_t));
    header_.tensors.push_back(std::move(tensor_));
  }

  std::string shape_text() const {
    std::string text = "[";
    for (size_t i = 0; i < tensor_.shape.size(); ++i) {
      text += (i != 0 ? ", " : "") + std::to_string(tensor_.shape[i]);
    }
    return text + "]";
  }

  const uint64_t data_bytes_;
  const std::string& file_;
  SafetensorsHeader header_;

  At at_ = At::outside;
  std::string name_;           // the key in the file's object: a tensor, or __metadata__
  std::string metadata_name_;  // the key in __metadata__
  size_t field_ = dtype;
  std::array<bool, fields.size()> has_{};
  bool has_metadata_ = false;
  int offset_count_ = 0;
  TensorInfo tensor_;
  size_t charged_ = 0;
};

}  // namespace

SafetensorsHeader parse_safetensors_header(std::string_view text, uint64_t data_bytes,
                                           const std::string& file,
                                           const std::function<void(size_t)>& passed) {
  constexpr JsonLimits limits{.bytes = 100'000'000, .depth = 3, .token = size_t{4} << 20};
  HeaderReader reader(data_bytes, file);
  parse_json_events(text, "the header of " + file, reader, limits, passed);
  return reader.take();
}

}  // namespace vitrine
