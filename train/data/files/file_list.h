// The names of millions of files: a few bytes beside the letters of each.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "train/data/files/index_store.h"

namespace vitrine {

class FileList {
 public:
  uint64_t size() const { return places_.size(); }
  void add(std::string_view name);
  // Puts those from `first` on into the order of their names.
  void sort_from(uint64_t first);
  std::string_view operator[](uint64_t i) const;
  // Gives back what was taken in advance.
  void shrink();

  void write(IndexWriter& writer) const;
  // False where it isn't a list; then this is empty.
  bool read(IndexReader& reader);

 private:
  // Four bytes a name say where it is in its part: a part ends before it has as many bytes.
  struct Part {
    uint64_t first = 0, begin = 0;  // its first file, and where its letters begin
  };
  const Part& part_of(uint64_t i) const;

  std::string letters_;  // of all names, each with a zero behind it
  std::vector<uint32_t> places_;
  std::vector<Part> parts_;
};

}  // namespace vitrine
