// Random numbers as a pure function of a key and a counter (Philox 4x32 with 10 rounds, Salmon et al.,
// "Parallel random numbers: as easy as 1, 2, 3", 2011): the same on every machine, in any order.
#pragma once

#include <array>
#include <cstdint>

namespace vitrine {

struct Philox {
  using Block = std::array<uint32_t, 4>;
  using Key = std::array<uint32_t, 2>;

  static constexpr Block block(Block counter, Key key) {
    for (int round = 0; round < 10; ++round) {
      const uint64_t a = uint64_t{0xD2511F53u} * counter[0], b = uint64_t{0xCD9E8D57u} * counter[2];
      counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(b),
                 static_cast<uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(a)};
      key = {key[0] + 0x9E3779B9u, key[1] + 0xBB67AE85u};
    }
    return counter;
  }
};

// One stream of random numbers: element i is the same whoever asks, and in whatever order.
class RandomStream {
 public:
  constexpr RandomStream(uint64_t seed, uint64_t stream)
      : key_{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)}, stream_(stream) {}

  constexpr Philox::Block block(uint64_t i) const {
    return Philox::block({static_cast<uint32_t>(i), static_cast<uint32_t>(i >> 32),
                          static_cast<uint32_t>(stream_), static_cast<uint32_t>(stream_ >> 32)},
                         key_);
  }

 private:
  Philox::Key key_;
  uint64_t stream_;
};

// The centre of the word's 2^-32 wide slot: never 0, never 1.
constexpr double uniform_from(uint32_t word) { return (static_cast<double>(word) + 0.5) * 0x1p-32; }

// The standard normal quantile of p in (0, 1), accurate to about 1e-15. Only +, -, *, / and sqrt are
// used, which IEEE 754 rounds alike everywhere, so that the bits don't depend on the math library.
double normal_quantile(double p);

}  // namespace vitrine
