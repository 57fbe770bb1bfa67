#include "tests/support/turns.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/interfaces/catch_interfaces_capture.hpp>
#include <charconv>
#include <cstdlib>
#include <utility>

namespace vitrine::test {
namespace {

std::optional<uint64_t> number(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

Turn turn_of_environment() {
  const char* given = std::getenv("VITRINE_TEST_TURN");
  if (!given) return {};
  const std::optional<Turn> turn = parse_turn(given);
  if (!turn) FAIL("VITRINE_TEST_TURN=" << given << " is not N/OF, as in 3/8");
  return *turn;
}

const Turn& turn() {
  static const Turn of_environment = turn_of_environment();
  return of_environment;
}

std::string running_test() { return Catch::getResultCapture().getCurrentTestName(); }

// FNV-1a.
uint64_t hash_of(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char letter : text) hash = (hash ^ static_cast<uint8_t>(letter)) * 0x100000001b3u;
  return hash ^ hash >> 32;
}

int within = 0;

}  // namespace

std::optional<Turn> parse_turn(std::string_view text) {
  const size_t slash = text.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const std::optional<uint64_t> n = number(text.substr(0, slash)), of = number(text.substr(slash + 1));
  if (!n || !of || *of == 0) return std::nullopt;
  return Turn{*n % *of, *of};
}

bool takes(const Turn& turn, size_t index, size_t count) {
  const size_t of = std::clamp<size_t>(count, 1, turn.of);
  return index % of == turn.number % of;
}

bool takes(const Turn& turn, std::string_view name) { return hash_of(name) % turn.of == turn.number; }

bool in_turn(std::string_view what) {
  return within > 0 || takes(turn(), running_test() + ": " + std::string(what));
}

bool in_turn(size_t index, size_t count) { return within > 0 || takes(turn(), index, count); }

WithinTurn::WithinTurn() { ++within; }
WithinTurn::~WithinTurn() { --within; }

bool takes_turns() { return turn().of > 1; }

void skip_until_turn(uint64_t of) {
  // Not all such tests in the same turn.
  if (takes_turns() && (hash_of(running_test()) + turn().number) % of != 0)
    SKIP("its turn comes another time (VITRINE_TEST_TURN)");
}

bool FirstOfTest::operator()() {
  const std::string running = running_test();
  return std::exchange(last_, running) != running;
}

}  // namespace vitrine::test
