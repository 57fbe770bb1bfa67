#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include "tests/train/sample_files.h"

namespace vitrine::test {
namespace {

constexpr const char* names = "airplane\nautomobile\nbird\ncat\ndeer\ndog\nfrog\nhorse\nship\ntruck\n\n";

// Five training files with 3, 4, 5, 6 and 7 pictures, numbered through.
void write_training_files(const TemporaryFolder& folder, const std::string& place = "") {
  uint32_t first = 0;
  for (uint32_t i = 1; i <= 5; ++i) {
    folder.file(place + "data_batch_" + std::to_string(i) + ".bin", cifar_records(i + 2, first));
    first += i + 2;
  }
}

}  // namespace

TEST_CASE("CIFAR-10's files are read in order, with the names of the classes") {
  const std::string place = GENERATE("", "cifar-10-batches-bin/");
  const TemporaryFolder folder;
  write_training_files(folder, place);
  folder.file(place + "test_batch.bin", cifar_records(2));
  folder.file(place + "batches.meta.txt", names);
  const auto train = open_dataset(folder.path(), Split::train);
  CHECK(train->count() == 25);
  CHECK(train->shape() == SampleShape{3, 32, 32});
  CHECK(train->classes() == 10);
  REQUIRE(train->class_names().size() == 10);
  CHECK(train->class_names()[9] == "truck");
  for (uint32_t i = 0; i < 25; ++i) {
    CHECK(train->label(i) == i % 10);
    CHECK(has_pattern(*train, i, i));
  }
  CHECK(open_dataset(folder.path(), Split::test)->count() == 2);
  CHECK(open_dataset(folder.path(), Split::test, {.classes = 100})->class_names().empty());
}

TEST_CASE("CIFAR-10 files that break the format's rules are refused with what was found and expected") {
  const TemporaryFolder folder;
  write_training_files(folder);
  CHECK(refusal_of(folder) == "opened");
  CHECK(refusal_of(folder, Split::test) ==
        ": found no test_batch.bin, expected it beside the other files of CIFAR-10's binary version");
  CHECK(refusal_of(folder, Split::train, {.shape = {1, 28, 28}}).find("the model's 1 x 28 x 28") !=
        std::string::npos);
  CHECK(refusal_of(folder, Split::train, {.classes = 4}) ==
        "/data_batch_2.bin: found label 4 of picture 1, expected one from 0 to 3");
  folder.file("batches.meta.txt", "one\ntwo\n");
  CHECK(refusal_of(folder) ==
        "/batches.meta.txt: found 2 lines, expected ten lines with a class's name each");
  folder.file("batches.meta.txt", std::string(names).replace(3, 1, "\x1b"));
  CHECK(refusal_of(folder) ==
        "/batches.meta.txt: found the line \"air\\x1blane\", expected ten lines with a class's name each");
  folder.file("batches.meta.txt", std::string(5000, '\n'));
  CHECK(refusal_of(folder) ==
        "/batches.meta.txt: found 5000 bytes, expected ten lines with a class's name each");
  folder.file("batches.meta.txt", names);
  std::string wrong_label = cifar_records(3);
  wrong_label[3073] = 10;
  folder.file("data_batch_3.bin", wrong_label);
  CHECK(refusal_of(folder) == "/data_batch_3.bin: found label 10 of picture 1, expected one from 0 to 9");
  std::filesystem::remove(folder / "data_batch_3.bin");
  CHECK(refusal_of(folder) ==
        ": found no data_batch_3.bin, expected it beside the other files of CIFAR-10's binary version");
}

TEST_CASE("a CIFAR-10 file that is cut within a picture is refused") {
  const TemporaryFolder folder;
  write_training_files(folder);
  const std::string good = cifar_records(2);
  for (size_t length = 0; length < good.size(); length += length < 20 ? 1 : 61) {
    folder.file("data_batch_4.bin", good.substr(0, length));
    CAPTURE(length);
    CHECK(refusal_of(folder) ==
          "/data_batch_4.bin: found " + std::to_string(length) +
              " bytes, expected a multiple of 3073, for each picture a label and 3 x 32 x "
              "32 pixels");
  }
}

}  // namespace vitrine::test
