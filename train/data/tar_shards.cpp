// WebDataset's shards: tar archives in which KEY.jpg and KEY.cls, one behind the other, are a sample.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "runtime/util/error.h"
#include "runtime/util/json.h"
#include "runtime/util/text.h"
#include "train/data/class_labels.h"
#include "train/data/dataset_kinds.h"
#include "train/data/files/index_store.h"
#include "train/data/files/split_files.h"
#include "train/data/files/tar_reader.h"
#include "train/data/picture_dataset.h"

namespace vitrine {
namespace {

using Path = std::filesystem::path;

constexpr uint32_t most_picture = uint32_t{3} << 29;  // bytes, as for files
constexpr uint64_t most_label = 256, most_json = uint64_t{1} << 20;

// Where the pictures of some shards lie.
struct ShardIndex {
  SpelledLabels labels;
  std::vector<uint64_t> first;    // sample of each shard, and how many there are
  std::vector<uint64_t> offsets;  // of each picture in its shard
  std::vector<uint32_t> sizes;
  uint64_t names = hash_begin;  // a checksum of what the pictures are called and how large they are
};

// "n01/x.seg.png" is the key "n01/x" and the extension "seg.png".
struct MemberName {
  std::string_view key, extension;
  explicit MemberName(std::string_view name) {
    const size_t slash = name.rfind('/'), begin = slash == std::string_view::npos ? 0 : slash + 1;
    const size_t dot = name.find('.', begin);
    if (dot == std::string_view::npos || dot == begin) return;
    key = name.substr(0, dot);
    extension = name.substr(dot + 1);
  }
};

std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return result;
}

// Reads one shard into an index.
class ShardReader {
 public:
  ShardReader(const Path& path, ShardIndex& index) : file_(path), window_(file_), index_(index) {}

  void read() {
    read_tar(file_, window_, [&](const TarMember& member) { add(member); });
    finish();
  }

 private:
  void add(const TarMember& member) {
    const MemberName name(member.name);
    if (name.key.empty()) return;
    if (name.key != key_) {
      finish();
      key_ = std::string(name.key);
    }
    const std::string extension = lower(name.extension);
    const bool is_picture =
        extension == "jpg" || extension == "jpeg" || extension == "png" || extension == "webp";
    std::optional<TarMember>* place = is_picture            ? &picture_
                                      : extension == "cls"  ? &number_
                                      : extension == "json" ? &json_
                                                            : nullptr;
    if (!place) return;
    if (*place) {
      fail("found " + in_quotes(place->value().name) + " and " + in_quotes(member.name) +
           ", expected one of them");
    }
    *place = member;
  }

  void finish() {
    if (picture_ || number_) {
      if (!picture_) fail("found no picture, expected KEY.jpg, .jpeg, .png or .webp beside the label");
      if (!number_ && !json_) fail("found no label, expected KEY.cls or KEY.json beside the picture");
      if (picture_->size > most_picture) {
        fail("the picture has " + std::to_string(picture_->size) + " bytes, expected at most " +
             std::to_string(most_picture));
      }
      index_.labels.add(number_ ? number() : json_label());
      index_.offsets.push_back(picture_->offset);
      index_.sizes.push_back(static_cast<uint32_t>(picture_->size));
      index_.names = hash_of(picture_->name, index_.names);
      index_.names = hash_of(std::as_bytes(std::span(&picture_->size, 1)), index_.names);
    }
    picture_.reset();
    number_.reset();
    json_.reset();
  }

  std::string text_of(const TarMember& member, uint64_t most) {
    if (member.size > most) {
      fail("the label " + in_quotes(member.name) + " has " + std::to_string(member.size) +
           " bytes, expected at most " + std::to_string(most));
    }
    const std::span<const std::byte> bytes = window_.at(member.offset, static_cast<size_t>(member.size));
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  std::string number() {
    std::string text = text_of(*number_, most_label);
    const size_t begin = text.find_first_not_of(" \t\r\n"), end = text.find_last_not_of(" \t\r\n");
    text = begin == std::string::npos ? std::string() : text.substr(begin, end + 1 - begin);
    const std::optional<uint32_t> number = class_number(text);
    if (!number) {
      fail("found the label " + in_quotes(text) + ", expected a number from 0 to " +
           std::to_string(most_classes - 1));
    }
    return std::to_string(*number);
  }

  std::string json_label() {
    const nlohmann::json json =
        parse_json(text_of(*json_, most_json), file_.name() + ", " + in_quotes(json_->name));
    const auto label = json.is_object() ? json.find("label") : json.end();
    if (json.is_object() && label != json.end()) {
      if (label->is_string() && !label->get_ref<const std::string&>().empty())
        return label->get<std::string>();
      if (label->is_number_unsigned() && label->get<uint64_t>() < most_classes)
        return std::to_string(label->get<uint64_t>());
    }
    fail("found no class in " + in_quotes(json_->name) + ", expected \"label\" with a number or a name");
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw Error(ErrorCode::bad_file, file_.name() + ", sample " + in_quotes(key_) + ": " + what);
  }

  const ByteFile file_;
  FileWindow window_;
  ShardIndex& index_;
  std::string key_;
  std::optional<TarMember> picture_, number_, json_;  // of the sample under way
};

bool take_index(const IndexKey& key, ShardIndex& index) {
  const std::optional<std::vector<std::byte>> content = load_index(key);
  if (!content) return false;
  IndexReader reader(*content);
  std::vector<std::string> spellings;
  std::vector<uint32_t> of_samples;
  std::vector<uint64_t> counts(1);
  reader.read(counts);
  if (counts.size() != 2 || counts[0] > content->size()) return false;
  spellings.resize(counts[0]);
  for (std::string& spelling : spellings) reader.read(spelling);
  reader.read(of_samples);
  reader.read(index.first);
  reader.read(index.offsets);
  reader.read(index.sizes);
  index.names = counts[1];
  const size_t count = of_samples.size();
  if (!reader.complete() || index.first.size() != key.stamps.size() + 1 || index.first.front() != 0 ||
      index.first.back() != count || !std::ranges::is_sorted(index.first) || index.offsets.size() != count ||
      index.sizes.size() != count ||
      std::ranges::any_of(of_samples, [&](uint32_t s) { return s >= spellings.size(); })) {
    return false;
  }
  index.labels.set(std::move(spellings), std::move(of_samples));
  return true;
}

void keep_index(const IndexKey& key, const ShardIndex& index) {
  IndexWriter writer;
  const uint64_t counts[] = {index.labels.spellings().size(), index.names};
  writer.numbers(std::span<const uint64_t>(counts));
  for (const std::string& spelling : index.labels.spellings()) writer.text(spelling);
  writer.numbers(std::span<const uint32_t>(index.labels.of_samples()));
  writer.numbers(std::span<const uint64_t>(index.first));
  writer.numbers(std::span<const uint64_t>(index.offsets));
  writer.numbers(std::span<const uint32_t>(index.sizes));
  save_index(key, writer.bytes());
}

ShardIndex index_of(const std::vector<Path>& shards, const std::vector<FileStamp>& stamps,
                    const DatasetOptions& options) {
  IndexKey key{
      .kind = "tar", .path = shards.front(), .stamps = stamps, .settled_seconds = options.settled_seconds};
  for (size_t s = 0; s < shards.size(); ++s) key.stamps[s].number ^= hash_of(shards[s].filename().string());
  if (ShardIndex index; take_index(key, index)) return index;
  ShardIndex index;
  for (const Path& shard : shards) {
    index.first.push_back(index.offsets.size());
    ShardReader(shard, index).read();
  }
  index.first.push_back(index.offsets.size());
  if (index.offsets.size() >= options.least_indexed) keep_index(key, index);
  return index;
}

std::vector<FileStamp> stamps_of(const std::vector<Path>& files) {
  std::vector<FileStamp> stamps;
  for (const Path& file : files) stamps.push_back(stamp_of(file));
  return stamps;
}

class TarShards : public PictureDataset {
 public:
  TarShards(const Path& folder, Split split, std::vector<Path> shards, const DatasetOptions& options)
      : PictureDataset(shown(shards.size() == 1 ? shards.front() : shards.front().parent_path()), options),
        shards_(std::move(shards)),
        stamps_(stamps_of(shards_)) {
    ShardIndex index = index_of(shards_, stamps_, options);
    first_ = std::move(index.first);
    offsets_ = std::move(index.offsets);
    sizes_ = std::move(index.sizes);
    if (sizes_.empty()) {
      throw Error(
          ErrorCode::bad_file,
          name_ + ": found no samples, expected pictures (KEY.jpg) with labels (KEY.cls) in the shards");
    }
    require_countable(name_, sizes_.size());
    // The training set decides: "2" may be a name there.
    std::optional<ShardIndex> train;
    if (split != Split::train) {
      const std::vector<Path> training = split_files(folder, Split::train, ".tar");
      if (!training.empty()) train = index_of(training, stamps_of(training), options);
      if (train && train->sizes.empty()) {
        throw Error(ErrorCode::bad_file, shown(training.front().parent_path()) +
                                             ": found no samples in the training shards, expected some");
      }
    }
    NumberedLabels numbered = number_labels(train ? train->labels : index.labels, index.labels,
                                            options.classes, [&](uint64_t i) { return name_of(i); });
    labels_ = std::move(numbered.labels);
    classes_ = numbered.classes;
    class_names_ = std::move(numbered.class_names);
    identity_ = "shards " + std::to_string(index.names);
  }

 private:
  size_t shard_of(uint64_t i) const {
    return static_cast<size_t>(std::ranges::upper_bound(first_, i) - first_.begin() - 1);
  }

  EncodedPicture encoded(uint64_t i) const override {
    const size_t s = shard_of(i);
    // Opened for each: there may be more shards than a process may have files open.
    const ByteFile shard(shards_[s], stamps_[s]);
    return {.file = shard.read(offsets_[i], sizes_[i]), .name = name_in(shard, i)};
  }
  std::string name_in(const ByteFile& shard, uint64_t i) const {
    return shard.name() + ", " + in_quotes(tar_member_name(shard, offsets_[i]));
  }

  std::string name_of(uint64_t i) const { return name_in(ByteFile(shards_[shard_of(i)]), i); }

  std::vector<Path> shards_;
  std::vector<FileStamp> stamps_;
  std::vector<uint64_t> first_, offsets_;
  std::vector<uint32_t> sizes_;
};

}  // namespace

std::unique_ptr<Dataset> open_tar_shards(const Path& folder, Split split, const DatasetOptions& options) {
  std::vector<Path> shards = wanted_files(folder, split, ".tar", "shards (.tar)");
  if (shards.empty()) return nullptr;
  return std::make_unique<TarShards>(folder, split, std::move(shards), options);
}

}  // namespace vitrine
