// Judges whether a store has kept the data that the records of its clients say it must keep.
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
  // Servers and clients died, at any time and any number of them. Every acknowledged put stays.
  kProcess,
  // The server's machine lost its power at the end. A put with kPlaced may be undone, back to an older whole version.
  kPower,
};

// Judges one pool that was empty at first. Knows the value of each key at the end of the last round.
class Judge {
 public:
  explicit Judge(uint32_t keys) : held_(keys, sim::Record::kAbsent) {}

  // Notes another event of this round, with its time, for the history that a failure shows.
  void Note(const std::string& what);

  // Judges the next round. `done` has the operations of its clients. `reads` has one get of each key, after all clients
  // had ended and the server had started again, so that nothing was in flight. Returns nothing, or the fault with the
  // history of the key.
  [[nodiscard]] std::string Check(std::span<const Operation> done, std::span<const Operation> reads, Death death);

 private:
  struct Wrong {
    std::string what;                    // empty if nothing is wrong
    uint64_t end = sim::Record::kNever;  // the end of the operation that shows the fault
  };
  [[nodiscard]] Wrong CheckKey(uint32_t key, std::vector<Operation> done, const std::vector<Operation>& reads,
                               Death death);

  std::vector<std::pair<uint64_t, std::string>> notes_;  // the notes of this round, with their times
  std::vector<uint64_t> held_;                           // by key
  std::unordered_map<uint64_t, uint32_t> begun_;         // the key of each put of all rounds
};

}  // namespace erda::crash
