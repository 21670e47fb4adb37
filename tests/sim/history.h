// What clients did to one store, and whether one copy of it that does one thing at a time could have answered so:
// linearizability, checked key by key (Wing and Gong's search, with a memory of where it has been).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "erda/status.h"

namespace erda::sim {

// kCut: the power went. Puts with kPlaced may be undone then, the last ones first.
// kExpire: from then on the value that was put is an absent key's, wherever it comes up.
enum class Action : uint8_t { kGet, kPut, kDelete, kCut, kExpire };

// One operation. Every put writes another value; kAbsent stands for none.
struct Record {
  static constexpr uint64_t kAbsent = 0;
  static constexpr uint64_t kNever = UINT64_MAX;
  static constexpr uint64_t kDamaged = UINT64_MAX - 1;  // what decay leaves: as a value, kCorruption shows it
  static constexpr uint32_t kAllKeys = UINT32_MAX;      // of a cut
  static constexpr uint32_t kNature = UINT32_MAX;       // as a client: whoever cuts and damages

  uint32_t client = 0;
  uint32_t key = 0;
  Action action = Action::kGet;
  uint64_t value = kAbsent;  // that was put, that the get returned, or that expires
  uint64_t begin = 0;        // numbers of events: all begins and ends of a history are different
  uint64_t end = kNever;     // when its caller heard of it
  // kOk and kNotFound mean what they say. kUnavailable: a put or delete may have taken effect at any time since its
  // begin, may do so later, or never. Everything else: it never takes effect.
  // kCorruption: a get or delete found the value damaged; a put is as with kUnavailable.
  Code code = Code::kUnavailable;
  bool placed = false;  // a put with kPlaced
  // (An expiry that does not end may come at any time, or never.)
  // Of a put or delete: that this is the key's value just before it, or else kConflict says that it was not.
  std::optional<uint64_t> expects{};
};

class History {
 public:
  // The record's number.
  size_t Begin(uint32_t client, uint32_t key, Action action, uint64_t value = Record::kAbsent, bool placed = false,
               std::optional<uint64_t> expects = std::nullopt);
  void End(size_t record, Code code, uint64_t value = Record::kAbsent);

  // The power goes.
  void Cut();
  // The settled value of a key is damaged on the medium.
  void Damage(uint32_t key, uint64_t value);

  [[nodiscard]] std::span<const Record> records() const { return records_; }
  [[nodiscard]] std::vector<Record> OfKey(uint32_t key) const;  // and the cuts
  [[nodiscard]] uint64_t Hash() const;
  // The first key that nobody could have kept so, with a few of its records as text; empty if there is none.
  [[nodiscard]] std::string Violation() const;

 private:
  std::vector<Record> records_;
  uint64_t events_ = 0;
};

// Whether these records of one key, which was absent at first, can be put into an order. Operations of one client on
// one key take effect in the order they began.
[[nodiscard]] bool IsLinearizable(std::span<const Record> of_one_key);

// As few of the records as are not linearizable either. What a record left saw stays. REQUIRES: they are not.
[[nodiscard]] std::vector<Record> Shrink(std::vector<Record> of_one_key);

[[nodiscard]] std::string ToText(const Record& record);

// What increments by 1 of one key, which was absent at first, came to; nothing else wrote it.
struct Count {
  uint64_t begin = 0;  // numbers of events, as of a Record
  uint64_t end = Record::kNever;
  int64_t sum = 0;
  Code code = Code::kUnavailable;  // as of a put
};
// Why these and the value in the end cannot be; empty if they can.
[[nodiscard]] std::string CountsViolation(std::span<const Count> counts, int64_t last);

}  // namespace erda::sim
