// The operations of clients on one store. The checker tells whether one copy of the store, which does one operation at
// a time, could have given the same answers: linearizability. It checks each key separately, by the search of Wing and
// Gong with a memory of visited states.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "erda/status.h"

namespace erda::sim {

// kCut: a power cut, which may undo puts with kPlaced, the last ones first. kExpire: a value's deadline. From then on a
// key with this value counts as absent, also if an undone put brings the value back.
enum class Action : uint8_t { kGet, kPut, kDelete, kCut, kExpire };

// One operation. Each put writes a different value. kAbsent stands for no value.
struct Record {
  static constexpr uint64_t kAbsent = 0;
  static constexpr uint64_t kNever = UINT64_MAX;
  static constexpr uint64_t kDamaged = UINT64_MAX - 1;  // Damage as a value, which a get shows by kCorruption.
  static constexpr uint32_t kAllKeys = UINT32_MAX;      // The key of a cut.
  static constexpr uint32_t kNature = UINT32_MAX;       // The client of cuts and of damage.

  uint32_t client = 0;
  uint32_t key = 0;
  Action action = Action::kGet;
  uint64_t value = kAbsent;  // The value that was put, that the get returned, or that expires.
  uint64_t begin = 0;        // Numbers of events: no two begins or ends of a history have the same.
  uint64_t end = kNever;     // The moment at which the caller learned the outcome.
  // Known outcomes are kOk and kNotFound. With kUnavailable or kTimeout, a put or delete may have taken effect at any
  // time since its begin, may do so later, or never. With kCorruption, a get or delete found the value damaged, and a
  // put counts as with kUnavailable. With any other code, the operation never takes effect.
  Code code = Code::kUnavailable;
  bool placed = false;  // True for a put with kPlaced.
  // A put or delete has this value as a condition: the key has it just before. kConflict tells that the key had another
  // one. An expiry without an end may come at any time, or never.
  std::optional<uint64_t> expects{};
};

class History {
 public:
  // Returns the number of the new record.
  size_t Begin(uint32_t client, uint32_t key, Action action, uint64_t value = Record::kAbsent, bool placed = false,
               std::optional<uint64_t> expects = std::nullopt);
  void End(size_t record, Code code, uint64_t value = Record::kAbsent);

  // Records a power cut.
  void Cut();
  // Records that the settled value of a key was damaged on the medium.
  void Damage(uint32_t key, uint64_t value);

  [[nodiscard]] std::span<const Record> records() const { return records_; }
  [[nodiscard]] std::vector<Record> OfKey(uint32_t key) const;  // with the cuts
  [[nodiscard]] uint64_t Hash() const;
  // Returns the first key whose records are not linearizable, with a few of them as text. Returns nothing if all are.
  [[nodiscard]] std::string Violation() const;

 private:
  std::vector<Record> records_;
  uint64_t events_ = 0;
};

// Returns true if an order exists in which one copy of the key gives the same answers. The key is absent at first.
// Operations of one client on one key take effect in the order in which they began. Of puts that were under way
// together, that holds for those with a known outcome.
[[nodiscard]] bool IsLinearizable(std::span<const Record> of_one_key);

// Returns fewer of the records that are not linearizable either. If a record stays, the write whose value it saw stays,
// too. Requires: the records are not linearizable.
[[nodiscard]] std::vector<Record> Shrink(std::vector<Record> of_one_key);

[[nodiscard]] std::string ToText(const Record& record);

// An increment by 1 of one key that was absent at first. No other operations write the key.
struct Count {
  uint64_t begin = 0;  // numbers of events, as in a Record
  uint64_t end = Record::kNever;
  int64_t sum = 0;
  Code code = Code::kUnavailable;  // as the code of a put
};
// Returns the reason why these increments cannot lead to `last`, the value in the end. Returns nothing if they can.
[[nodiscard]] std::string CountsViolation(std::span<const Count> counts, int64_t last);

}  // namespace erda::sim
