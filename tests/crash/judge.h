// Whether a store has kept what its clients' records say that it must have kept.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "crash/records.h"

namespace erda::crash {

enum class Death : uint8_t {
  kProcess,  // of servers and clients, at any time and any number of them: every acknowledged put stays
  kPower,    // of the server's machine, at the end: a put with kPlaced may be undone, back to an older whole version
};

// Of one pool, that was empty at first. Knows what each key held at the end of the round before.
class Judge {
 public:
  explicit Judge(uint32_t keys) : held_(keys, sim::Record::kAbsent) {}

  // What else happened now, in this round, for the history that a failure shows.
  void Note(const std::string& what);

  // The next round: what its clients did, and what was read of each key when they had all ended and the server had been
  // started again, so that nothing was in flight. Empty, or what is wrong, with the history of the key.
  [[nodiscard]] std::string Check(std::span<const Operation> done, std::span<const Operation> reads, Death death);

 private:
  struct Wrong {
    std::string what;                    // empty: nothing
    uint64_t end = sim::Record::kNever;  // of the operation that shows it
  };
  [[nodiscard]] Wrong CheckKey(uint32_t key, std::vector<Operation> done, const std::vector<Operation>& reads,
                               Death death);

  std::vector<std::pair<uint64_t, std::string>> notes_;  // of this round, with their times
  std::vector<uint64_t> held_;                           // by key
  std::unordered_map<uint64_t, uint32_t> begun_;         // the key of each put, of all rounds
};

}  // namespace erda::crash
