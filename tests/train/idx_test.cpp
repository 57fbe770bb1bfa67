#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include "tests/train/sample_files.h"

namespace vitrine::test {
namespace {

constexpr const char *pictures = "train-images-idx3-ubyte", *labels = "train-labels-idx1-ubyte";

// A folder with a training set of seven 5 x 3 pictures, of which a test replaces what it wants to.
struct Folder : TemporaryFolder {
  Folder() {
    file(pictures, idx_pictures(7, 5, 3));
    file(labels, idx_labels(7));
  }
};

void check_seven(const Dataset& dataset) {
  CHECK(dataset.count() == 7);
  CHECK(dataset.shape() == SampleShape{1, 5, 3});
  CHECK(dataset.classes() == 7);
  CHECK(dataset.class_names().empty());
  for (uint32_t i = 0; i < 7; ++i) {
    CHECK(dataset.label(i) == i);
    CHECK(has_pattern(dataset, i, i));
  }
}

}  // namespace

TEST_CASE("IDX files are read, plain and compressed, under all the names that they have") {
  const std::string between = GENERATE("-", "."), place = GENERATE("", "raw/"), end = GENERATE("", ".gz");
  const bool compressed = GENERATE(false, true);  // judged by the content, not by the name
  const TemporaryFolder folder;
  const auto write = [&](const std::string& name, const std::string& content) {
    folder.file(place + name + end, compressed ? gzipped(content) : content);
  };
  write("train-images" + between + "idx3-ubyte", idx_pictures(7, 5, 3));
  write("train-labels" + between + "idx1-ubyte", idx_labels(7));
  write("t10k-images" + between + "idx3-ubyte", idx_pictures(2, 5, 3));
  write("t10k-labels" + between + "idx1-ubyte", idx_labels(2));
  check_seven(*open_dataset(folder.path(), Split::train));
  const auto test = open_dataset(folder.path(), Split::test, {.shape = {1, 5, 3}, .classes = 10});
  CHECK(test->count() == 2);
  CHECK(test->classes() == 10);
}

TEST_CASE("a gzip file may be several, one after the other") {
  const Folder folder;
  const std::string content = idx_pictures(7, 5, 3);
  folder.file(pictures,
              gzipped(content.substr(0, 9)) + gzipped(content.substr(9, 40)) + gzipped(content.substr(49)));
  check_seven(*open_dataset(folder.path(), Split::train));
}

TEST_CASE("IDX files that break the format's rules are refused with what was found and expected") {
  const Folder folder;
  const std::string good = idx_pictures(7, 5, 3);
  const auto with_pictures = [&](const std::string& content) {
    folder.file(pictures, content);
    return refusal_of(folder);
  };
  const auto with_labels = [&](const std::string& content, const DatasetOptions& options = {}) {
    folder.file(pictures, good);
    folder.file(labels, content);
    return refusal_of(folder, Split::train, options);
  };
  CHECK(with_pictures("") == "/train-images-idx3-ubyte: found 0 bytes, expected 16");
  CHECK(with_pictures(good.substr(0, 15)) == "/train-images-idx3-ubyte: found 15 bytes, expected 16");
  CHECK(with_pictures(good.substr(0, 120)) == "/train-images-idx3-ubyte: found 120 bytes, expected 121");
  CHECK(with_pictures(good + "x") == "/train-images-idx3-ubyte: found 122 bytes, expected 121");
  CHECK(
      with_pictures(idx_labels(7) + "01234567") ==
      "/train-images-idx3-ubyte: found the first four bytes 0x00000801, expected 0x00000803 of IDX pictures");
  CHECK(with_pictures(idx_pictures(0, 5, 3)) ==
        "/train-images-idx3-ubyte: found 0 pictures of 5 x 3 pixels, expected some, with sides from 1 to "
        "32768");
  CHECK(with_pictures(idx_pictures(7, 0, 3))
            .starts_with("/train-images-idx3-ubyte: found 7 pictures of 0 x 3"));
  // 7 times 2^31 times 2^31 would be a small number in 64 bits.
  CHECK(with_pictures(big_endian(0x803) + big_endian(8) + big_endian(1u << 31) + big_endian(1u << 31))
            .starts_with("/train-images-idx3-ubyte: found 8 pictures of 2147483648 x 2147483648"));
  CHECK(with_pictures(idx_pictures(6, 5, 3)) ==
        "/train-labels-idx1-ubyte: found 7 labels, expected 6, one for each picture of " +
            (folder / pictures).string());

  CHECK(with_labels(idx_labels(7).substr(0, 14)) == "/train-labels-idx1-ubyte: found 14 bytes, expected 15");
  CHECK(with_labels(good) ==
        "/train-labels-idx1-ubyte: found the first four bytes 0x00000803, expected 0x00000801 of IDX labels");
  CHECK(with_labels(idx_labels(8)).starts_with("/train-labels-idx1-ubyte: found 8 labels, expected 7"));
  CHECK(with_labels(idx_labels(7), {.classes = 5}) ==
        "/train-labels-idx1-ubyte: found label 6 of picture 6, expected one from 0 to 4");
  CHECK(with_labels(idx_labels(7), {.shape = {3, 32, 32}}) ==
        "/train-images-idx3-ubyte: found pictures of 1 x 5 x 3 (channels, height, width), expected the "
        "model's 3 x 32 x 32");
}

TEST_CASE("half of a data set is named") {
  const Folder folder;
  CHECK(refusal_of(folder, Split::test) ==
        ": found train-images-idx3-ubyte but no t10k-images-idx3-ubyte, expected both, plain or with .gz");
  std::filesystem::remove(folder / labels);
  CHECK(refusal_of(folder) ==
        ": found train-images-idx3-ubyte but no train-labels-idx1-ubyte, expected both, plain or with .gz");
  std::filesystem::remove(folder / pictures);
  CHECK(refusal_of(folder).starts_with(": found no data set, expected MNIST's files"));
  std::filesystem::create_directory(folder / pictures);
  folder.file(labels, idx_labels(7));
  CHECK(refusal_of(folder) ==
        "cannot read " + (folder / pictures).string() + ": it is a folder, expected a file");
}

TEST_CASE("gzip files that break their rules are refused") {
  const Folder folder;
  const std::string content = idx_pictures(7, 5, 3), good = gzipped(content);
  const auto refusal = [&](const std::string& file) {
    folder.file(pictures, file);
    return refusal_of(folder);
  };
  CHECK(refusal(good) == "opened");
  CHECK(refusal(good + "trailing") ==
        "/train-images-idx3-ubyte: found 8 bytes after the compressed data, expected a whole gzip file");
  CHECK(refusal(gzipped(content.substr(0, 10))) ==
        "/train-images-idx3-ubyte: found 10 bytes in the gzip file, expected 16");
  CHECK(refusal(gzipped(content.substr(0, 100))) ==
        "/train-images-idx3-ubyte: found 100 bytes in the gzip file, expected 121");
  CHECK(refusal(gzipped(content + "x")) ==
        "/train-images-idx3-ubyte: found more bytes in the gzip file, expected 121");
  std::string wrong_checksum = good;
  wrong_checksum[good.size() - 8] ^= 1;
  CHECK(refusal(wrong_checksum) ==
        "/train-images-idx3-ubyte: found incorrect data check, expected a whole gzip file");
  // Nothing a file of this size can become, and nothing that memory may be taken for.
  const std::string header = big_endian(0x803) + big_endian(7) + big_endian(1 << 15) + big_endian(1 << 15);
  const std::string liar = gzipped(header);
  CHECK(refusal(liar) ==
        "/train-images-idx3-ubyte: found " + std::to_string(liar.size()) +
            " compressed bytes, expected those of 7516192784, as its header says, which is more "
            "than they can become");
}

// The ratio that is allowed must not refuse what gzip really makes of pictures without a pixel set.
TEST_CASE("a very well compressed file is read") {
  const Folder folder;
  const uint32_t side = 4096;
  folder.file(pictures, gzipped(big_endian(0x803) + big_endian(1) + big_endian(side) + big_endian(side) +
                                std::string(size_t{side} * side, '\0')));
  folder.file(labels, idx_labels(1));
  const auto dataset = open_dataset(folder.path(), Split::train);
  CHECK(pixels_of(*dataset, 0) == std::vector<uint8_t>(size_t{side} * side));
}

TEST_CASE("an IDX file that is cut anywhere is refused, and so is one with a flipped bit in its header") {
  const Folder folder;
  const bool compressed = GENERATE(false, true);
  const char* name = GENERATE(pictures, labels);
  const std::string content = name == pictures ? idx_pictures(7, 5, 3) : idx_labels(7);
  const std::string good = compressed ? gzipped(content) : content;
  for (size_t length = 0; length < good.size(); ++length) {
    folder.file(name, good.substr(0, length));
    CAPTURE(length, name, compressed);
    CHECK(refusal_of(folder).find("found") != std::string::npos);
  }
  // A bit of gzip's own header (its time, its flags) may be flipped without harm; nothing may crash.
  for (size_t bit = 0; bit < 8 * good.size(); ++bit) {
    std::string flipped = good;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ 1 << bit % 8);
    folder.file(name, flipped);
    const std::string said = refusal_of(folder);
    CAPTURE(bit, name, compressed, said);
    CHECK((said == "opened" || said.find("found") != std::string::npos));
    const size_t header_bits = name == pictures ? 128 : 64;
    if (!compressed && bit < header_bits) CHECK(said != "opened");
  }
}

}  // namespace vitrine::test
