// Where the same tests run on many drivers, what they repeat is shared out among the runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace vitrine::test {

// "N/OF": the Nth of OF turns, of which each runs another part of what tests repeat.
struct Turn {
  uint64_t number = 0, of = 1;
  bool operator==(const Turn&) const = default;
};

// Nothing if it isn't two numbers with a slash between them, the second of them at least 1. N may be any
// number: it is counted round.
std::optional<Turn> parse_turn(std::string_view text);

// Whether the turn takes this one of `count`: every OFth, where there are as many, and one at least where
// there are fewer.
bool takes(const Turn& turn, size_t index, size_t count);
// The same for a name, which one turn of OF takes.
bool takes(const Turn& turn, std::string_view name);

// Whether the turn of VITRINE_TEST_TURN has come for what the running test runs by this name. Each name has
// one of the turns, so that all of them together leave nothing out. Always without that variable; fails the
// test if it makes no sense.
bool in_turn(std::string_view what);

// The same for one of `count` models, pictures or settings that a test goes through.
bool in_turn(size_t index, size_t count);

// While it lives, in_turn says yes: within what has had to wait for its own turn nothing waits once more.
class WithinTurn {
 public:
  WithinTurn();
  ~WithinTurn();
  WithinTurn(const WithinTurn&) = delete;
  WithinTurn& operator=(const WithinTurn&) = delete;
};

// Whether there are several turns. A training or a search that would take a minute on each driver may then be
// shorter, in every turn.
bool takes_turns();

// Skips the running test in all turns but every `of`th: for one whose kernels take a minute to compile.
void skip_until_turn(uint64_t of);

// Whether the running test asks for the first time. What runs a test's cases in turns runs the first one in
// each, and has one of these.
class FirstOfTest {
 public:
  bool operator()();

 private:
  std::string last_;
};

// Those of them whose turn it is.
template <typename T>
std::vector<T> of_turn(const std::vector<T>& all) {
  std::vector<T> some;
  for (size_t i = 0; i < all.size(); ++i) {
    if (in_turn(i, all.size())) some.push_back(all[i]);
  }
  return some;
}

}  // namespace vitrine::test
