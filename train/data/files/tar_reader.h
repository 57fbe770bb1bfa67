// The members of a tar archive, as POSIX (ustar, pax) and GNU write them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "train/data/files/byte_file.h"

namespace vitrine {

struct TarMember {
  std::string name;               // with its folders
  uint64_t offset = 0, size = 0;  // of its bytes, in the archive
};

// Tells `take` every regular file in the archive, in its order. Nothing is unpacked. Error(bad_file) for an
// archive that is cut off, and for members that aren't just bytes: links, devices, sparse files.
void read_tar(const ByteFile& file, FileWindow& window, const std::function<void(const TarMember&)>& take);

// What the header before a member's bytes calls it: the end of a long name may be missing.
std::string tar_member_name(const ByteFile& file, uint64_t offset);

}  // namespace vitrine
