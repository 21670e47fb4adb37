#include "sim/history.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/random.h"

namespace erda::sim {

size_t History::Begin(uint32_t client, uint32_t key, Action action, uint64_t value, bool placed,
                      std::optional<uint64_t> expects) {
  Record record;
  record.client = client;
  record.key = key;
  record.action = action;
  record.value = value;
  record.placed = placed;
  record.expects = expects;
  record.begin = ++events_;
  records_.push_back(record);
  return records_.size() - 1;
}

void History::End(size_t record, Code code, uint64_t value) {
  records_[record].end = ++events_;
  records_[record].code = code;
  if (records_[record].action == Action::kGet) records_[record].value = value;
}

void History::Cut() { End(Begin(Record::kNature, Record::kAllKeys, Action::kCut), Code::kOk); }

// A get that found the value, and another one that found it damaged.
void History::Damage(uint32_t key, uint64_t value) {
  End(Begin(Record::kNature, key, Action::kGet), Code::kOk, value);
  End(Begin(Record::kNature, key, Action::kPut, Record::kDamaged), Code::kOk);
}

std::vector<Record> History::OfKey(uint32_t key) const {
  std::vector<Record> of_key;
  std::copy_if(records_.begin(), records_.end(), std::back_inserter(of_key),
               [key](const Record& record) { return record.key == key || record.action == Action::kCut; });
  return of_key;
}

uint64_t History::Hash() const {
  uint64_t hash = 0;
  for (const Record& r : records_) {
    const auto action = static_cast<uint64_t>(r.action);
    const auto code = static_cast<uint64_t>(r.code);
    for (const uint64_t n : {uint64_t{r.client}, uint64_t{r.key}, action, r.value, r.begin, r.end, code}) {
      hash = Random::Mix(hash + 1) ^ n;
    }
  }
  return hash;
}

std::string History::Violation() const {
  std::set<uint32_t> keys;
  for (const Record& record : records_) {
    if (record.action != Action::kCut) keys.insert(record.key);
  }
  for (const uint32_t key : keys) {
    const auto of_key = OfKey(key);
    if (IsLinearizable(of_key)) continue;
    const auto few = Shrink(of_key);
    std::string text = "key " + std::to_string(key) + " is not linearizable; " + std::to_string(few.size()) +
                       " of its " + std::to_string(of_key.size()) + " records are enough to see it:\n";
    for (const Record& record : few) text += "  " + ToText(record) + "\n";
    return text;
  }
  return {};
}

std::string ToText(const Record& r) {
  const std::string end = r.end == Record::kNever ? "never" : std::to_string(r.end);
  const std::string when = "[" + std::to_string(r.begin) + ", " + end + "] ";
  if (r.action == Action::kCut) return when + "the power goes";
  if (r.action == Action::kExpire) return when + std::to_string(r.value) + " expires";
  if (r.action == Action::kPut && r.value == Record::kDamaged) return when + "the value is damaged";
  if (r.client == Record::kNature) return when + "the medium holds " + std::to_string(r.value);
  constexpr const char* kActions[] = {"get", "put", "delete"};
  std::string text = when + "client " + std::to_string(r.client) + " " + kActions[static_cast<size_t>(r.action)];
  if (r.action == Action::kPut || (r.action == Action::kGet && r.code == Code::kOk))
    text += " " + std::to_string(r.value);
  if (r.expects) text += " for " + std::to_string(*r.expects);
  if (r.placed) text += " (placed)";
  return text + ": " + std::string(CodeName(r.code));
}

namespace {

// The effect of a record on one copy of the key.
struct Act {
  enum class Kind : uint8_t {
    kRead,     // Reads `value`, which may be absence.
    kReadNot,  // Reads any value but `value`.
    kWrite,
    kErase,    // Removes the present value.
    kEraseIf,  // Removes the present value, if there is one.
    kExpire,   // From now on `value` counts as absence.
    kCut       // Goes back to the last value that stays, or to a later one.
  };
  Kind kind = Kind::kRead;
  uint64_t value = Record::kAbsent;
  uint64_t begin = 0;
  uint64_t end = Record::kNever;
  bool must = true;                   // It takes effect, between begin and end.
  bool stays = true;                  // No cut undoes it.
  std::optional<uint64_t> expects{};  // The value that the key must have just before.
  std::optional<uint64_t> behind{};   // The value that must be written before: see Turns.
};

std::optional<Act> ActOf(const Record& r) {
  const bool damaged = r.code == Code::kCorruption && r.action != Action::kPut;
  const bool known = r.code == Code::kOk || r.code == Code::kNotFound || damaged;
  const bool unknown = r.code == Code::kUnavailable || r.code == Code::kTimeout || r.code == Code::kCorruption;
  Act act{Act::Kind::kRead, r.value, r.begin, known ? r.end : Record::kNever, known, !r.placed, r.expects, {}};
  if (r.code == Code::kConflict) {
    return Act{Act::Kind::kReadNot, r.expects.value_or(Record::kNever), r.begin, r.end, true, true, {}, {}};
  }
  if (damaged) {
    act.value = Record::kDamaged;
    return act;
  }
  switch (r.action) {
    case Action::kGet:
      if (r.code == Code::kNotFound) act.value = Record::kAbsent;
      return known ? std::optional(act) : std::nullopt;
    case Action::kPut:
      act.kind = Act::Kind::kWrite;
      break;
    case Action::kCut:
      act.kind = Act::Kind::kCut;
      break;
    case Action::kExpire:
      act.kind = Act::Kind::kExpire;
      break;
    case Action::kDelete:
      act.value = Record::kAbsent;
      if (r.code == Code::kNotFound) return act;
      act.kind = known ? Act::Kind::kErase : Act::Kind::kEraseIf;
      break;
  }
  return known || unknown ? std::optional(act) : std::nullopt;
}

// Tries each act that can come next, depth first, and never twice from the same state. An expiry is an act that changes
// no value: from then on its value counts as absence, also after a cut brings it back. Acts that need not come make the
// search long. But few choices make a difference: each put writes a different value, and a put without an end may come
// at any time.
class Search {
 public:
  explicit Search(std::vector<Act> acts) : acts_(std::move(acts)), done_((acts_.size() + 63) / 64) {
    // Acts that must come first are tried first. Acts that need not come are tried last, and among them last the acts
    // that can come at any time.
    const auto turn = [](const Act& act) { return std::tuple(act.end, !act.expects, act.begin); };
    std::sort(acts_.begin(), acts_.end(), [&](const Act& a, const Act& b) { return turn(a) < turn(b); });
    for (size_t i = 0; i < acts_.size(); ++i) {
      const Act& act = acts_[i];
      if (act.kind == Act::Kind::kRead) ++reads_left_[act.value];
      if (act.kind == Act::Kind::kCut) ++cuts_left_;
      if (act.expects) reads_left_[*act.expects] += 0;
      if (act.kind == Act::Kind::kExpire) lives_[act.value].expiry = i;
    }
    std::map<uint64_t, size_t> writes;  // by value
    for (size_t i = 0; i < acts_.size(); ++i) {
      if (acts_[i].kind != Act::Kind::kWrite) continue;
      const auto life = lives_.find(acts_[i].value);
      if (life != lives_.end()) life->second.put = i;
      writes[acts_[i].value] = i;
    }
    for (const Act& act : acts_) behind_.push_back(act.behind ? writes.at(*act.behind) : kNone);
  }

  // Returns true if an order of the remaining acts exists.
  bool Succeeds() {
    std::vector<size_t> reads;
    const bool found = TakeReads(&reads) || TryEach();
    for (const size_t i : reads) Undo(i);
    return found;
  }

 private:
  static constexpr size_t kNone = SIZE_MAX;
  // The put and the expiry of a value.
  struct Life {
    size_t put = kNone;
    size_t expiry = kNone;
  };

  [[nodiscard]] bool Done(size_t i) const { return (done_[i / 64] >> (i % 64) & 1) != 0; }
  void Flip(size_t i) { done_[i / 64] ^= uint64_t{1} << (i % 64); }
  void Do(size_t i) {
    Flip(i);
    if (acts_[i].kind == Act::Kind::kRead) --reads_left_[acts_[i].value];
  }
  void Undo(size_t i) {
    Flip(i);
    if (acts_[i].kind == Act::Kind::kRead) ++reads_left_[acts_[i].value];
  }

  // Returns true if the act can come next: it begins before the horizon, and the act that it follows has come.
  [[nodiscard]] bool CanCome(size_t i, uint64_t horizon) const {
    return !Done(i) && acts_[i].begin < horizon && (behind_[i] == kNone || Done(behind_[i]));
  }

  // Returns the first end among acts that must come. An act that begins later cannot come now. The acts are sorted by
  // end.
  [[nodiscard]] uint64_t Horizon() const {
    for (size_t i = 0; i < acts_.size(); ++i) {
      if (acts_[i].must && !Done(i)) return acts_[i].end;
    }
    return 0;
  }

  // Returns the value that a get finds.
  [[nodiscard]] uint64_t Present() const {
    if (lives_.empty()) return value_;
    const auto life = lives_.find(value_);
    return life != lives_.end() && Done(life->second.expiry) ? Record::kAbsent : value_;
  }
  // Returns true if the value was put, and no read of it is left.
  [[nodiscard]] bool CanExpire(const Act& act) const {
    const size_t put = lives_.at(act.value).put;
    return put != kNone && Done(put) && !IsMissed(act.value);
  }
  // Returns true if the value cannot come back, not even by a cut.
  [[nodiscard]] bool IsPast(const Act& expiry) const {
    return expiry.value != value_ && !std::binary_search(undo_.begin(), undo_.end(), expiry.value);
  }

  // A read that fits now gains nothing by waiting, and neither does an expiry that changes nothing. Returns true if no
  // act is left that must come.
  bool TakeReads(std::vector<size_t>* reads) {
    for (;;) {
      const uint64_t horizon = Horizon();
      if (horizon == 0) return true;
      const size_t before = reads->size();
      for (size_t i = 0; i < acts_.size(); ++i) {
        const Act& act = acts_[i];
        if (!CanCome(i, horizon)) continue;
        const bool expires = act.kind == Act::Kind::kExpire && IsPast(act) && CanExpire(act);
        if (!expires && (!IsRead(act) || !Reads(act))) continue;
        Do(i);
        reads->push_back(i);
      }
      if (reads->size() == before) return false;
    }
  }

  bool TryEach() {
    if (cuts_left_ == 0 && IsMissed(value_)) return false;
    std::string here(reinterpret_cast<const char*>(done_.data()), done_.size() * sizeof(uint64_t));
    here.append(reinterpret_cast<const char*>(&value_), sizeof(value_));
    here.append(reinterpret_cast<const char*>(undo_.data()), undo_.size() * sizeof(uint64_t));
    if (!been_.insert(std::move(here)).second) return false;
    const uint64_t horizon = Horizon();
    bool tried_erase_if = false;
    bool tried_unread = false;
    bool tried_expired = false;
    const uint64_t first_to_expire = FirstToExpire(horizon);
    for (size_t i = 0; i < acts_.size(); ++i) {
      const Act& act = acts_[i];
      if (!CanCome(i, horizon) || IsRead(act)) continue;
      if (!Fits(act)) continue;
      if (act.kind == Act::Kind::kCut) {
        if (TryCut(i)) return true;
        continue;
      }
      if (act.kind == Act::Kind::kExpire) {
        if (IsPast(act) || !CanExpire(act)) continue;
        if (!act.must && (act.value != value_ || !IsNoneWanted(horizon))) continue;
        Do(i);
        const bool found = Succeeds();
        Undo(i);
        if (found) return true;
        continue;
      }
      if (Present() == Record::kAbsent && act.kind != Act::Kind::kWrite) continue;
      if (act.kind == Act::Kind::kEraseIf) {
        // Needed only if a next act finds or wants absence. One such erase is as good as another.
        if (tried_erase_if || !IsNoneWanted(horizon)) continue;
        tried_erase_if = true;
      } else if (!act.must && !reads_left_.contains(act.value)) {
        // A put whose value no read returns, and whose outcome is unknown. It is needed only if a next act deletes its
        // value, or has a condition that fails by it. One such put is as good as another.
        const bool deleted = Present() == Record::kAbsent && IsAbsentNext(Act::Kind::kErase, horizon);
        const size_t expiry = ExpiryNext(act.value, horizon);
        if (expiry != kNone && !tried_expired && IsNoneWanted(horizon)) {
          // Or its value must expire at once.
          tried_expired = true;
          Do(expiry);
          const bool found = TryWrite(i);
          Undo(expiry);
          if (found) return true;
        }
        // Or its condition holds only before the present value expires, and something finds the key present later.
        const bool cannot_wait = act.expects && ExpiryNext(value_, horizon) != kNone;
        if (!(deleted || cannot_wait || IsNotNext(horizon))) continue;
        // But one that can still expire makes way for absence later. The first one to do so is as good as another.
        if (CanStillExpire(act.value) ? act.value != first_to_expire : std::exchange(tried_unread, true)) continue;
      }
      if (TryWrite(i)) return true;
    }
    return false;
  }

  bool TryWrite(size_t i) {
    const Act& act = acts_[i];
    if (act.stays && (IsMissed(value_) || IsMissed(undo_))) return false;
    const uint64_t before = value_;
    std::vector<uint64_t> undo_before = undo_;
    Do(i);
    value_ = act.value;
    if (act.stays || cuts_left_ == 0) {
      undo_.clear();
    } else {
      undo_.insert(std::lower_bound(undo_.begin(), undo_.end(), before), before);
    }
    const bool found = Succeeds();
    value_ = before;
    undo_ = std::move(undo_before);
    Undo(i);
    return found;
  }

  // No later cut undoes the value that a cut leaves.
  bool TryCut(size_t i) {
    std::vector<uint64_t> values = std::exchange(undo_, {});
    const uint64_t before = value_;
    bool found = false;
    Do(i);
    --cuts_left_;
    const auto lost = [&](uint64_t kept) {
      return (kept != before && IsMissed(before)) ||
             std::any_of(values.begin(), values.end(), [&](uint64_t v) { return v != kept && IsMissed(v); });
    };
    for (size_t k = 0; k <= values.size() && !found; ++k) {
      value_ = k == 0 ? before : values[k - 1];
      if (!lost(value_)) found = Succeeds();
    }
    ++cuts_left_;
    Undo(i);
    value_ = before;
    undo_ = std::move(values);
    return found;
  }

  // Returns true if a read of this value is left. A value that is gone for good never comes back. Absence and damage
  // do.
  [[nodiscard]] bool IsMissed(uint64_t value) const {
    if (value == Record::kDamaged) return false;
    const auto left = reads_left_.find(value);
    return value != Record::kAbsent && left != reads_left_.end() && left->second > 0;
  }
  [[nodiscard]] bool IsMissed(std::span<const uint64_t> values) const {
    return std::any_of(values.begin(), values.end(), [this](uint64_t value) { return IsMissed(value); });
  }

  [[nodiscard]] static bool IsRead(const Act& act) {
    return act.kind == Act::Kind::kRead || act.kind == Act::Kind::kReadNot;
  }
  // Returns true if the read fits the present value.
  [[nodiscard]] bool Reads(const Act& act) const {
    if (act.kind == Act::Kind::kRead) return act.value == Present();
    return act.value != Present() || value_ == Record::kDamaged;
  }

  // Returns true if the act's condition holds now. Decay leaves the version of the damaged value, or none that can be
  // read. So then any condition may hold.
  [[nodiscard]] bool Fits(const Act& act) const {
    return !act.expects || *act.expects == Present() || value_ == Record::kDamaged;
  }

  // Returns true if an act for which `meant` returns true can come next.
  template <class Meant>
  [[nodiscard]] bool IsNext(uint64_t horizon, Meant&& meant) const {
    for (size_t i = 0; i < acts_.size(); ++i) {
      if (CanCome(i, horizon) && meant(acts_[i])) return true;
    }
    return false;
  }
  // Returns true if a next act must find a value other than the present one.
  [[nodiscard]] bool IsNotNext(uint64_t horizon) const {
    return IsNext(horizon, [&](const Act& act) { return act.kind == Act::Kind::kReadNot && act.value == Present(); });
  }
  // Returns true if a next act finds or wants absence, or must find another value.
  [[nodiscard]] bool IsNoneWanted(uint64_t horizon) const {
    return IsAbsentNext(Act::Kind::kRead, horizon) || IsAbsenceNext(horizon) || IsNotNext(horizon);
  }
  // Returns the expiry of the value if it can come next.
  [[nodiscard]] size_t ExpiryNext(uint64_t value, uint64_t horizon) const {
    const auto life = lives_.find(value);
    if (life == lives_.end()) return kNone;
    const size_t expiry = life->second.expiry;
    return CanCome(expiry, horizon) ? expiry : kNone;
  }
  // Returns true if the value has an expiry that has not come yet.
  [[nodiscard]] bool CanStillExpire(uint64_t value) const {
    const auto life = lives_.find(value);
    return life != lives_.end() && !Done(life->second.expiry);
  }
  // Of the values that can come next and that no read returns, returns the one with the earliest expiry. Returns
  // absence if none of them can still expire.
  [[nodiscard]] uint64_t FirstToExpire(uint64_t horizon) const {
    uint64_t first = Record::kAbsent;
    uint64_t earliest = Record::kNever;
    for (const auto& [value, life] : lives_) {
      if (life.put == kNone || Done(life.expiry) || !CanCome(life.put, horizon)) continue;
      const Act& put = acts_[life.put];
      if (put.must || reads_left_.contains(value) || !Fits(put) || acts_[life.expiry].begin >= earliest) continue;
      earliest = acts_[life.expiry].begin;
      first = value;
    }
    return first;
  }
  // Returns true if a next write wants absence as its condition.
  [[nodiscard]] bool IsAbsenceNext(uint64_t horizon) const {
    return IsNext(horizon, [](const Act& act) { return act.expects == Record::kAbsent; });
  }
  // Returns true if a next act of this kind has absence as its value.
  [[nodiscard]] bool IsAbsentNext(Act::Kind kind, uint64_t horizon) const {
    return IsNext(horizon, [&](const Act& act) { return act.kind == kind && act.value == Record::kAbsent; });
  }

  std::vector<Act> acts_;
  std::vector<size_t> behind_;  // By act: the one that must come before it.
  std::vector<uint64_t> done_;  // bits, by act
  uint64_t value_ = Record::kAbsent;
  std::vector<uint64_t> undo_;  // values that a cut can bring back: the last one that stays, and later ones; sorted
  uint64_t cuts_left_ = 0;
  std::unordered_map<uint64_t, uint64_t> reads_left_;  // by value. It has an entry for each value that any record read
  std::unordered_set<std::string> been_;
  std::unordered_map<uint64_t, Life> lives_;
};

// The order of one client's operations on the key. Each takes effect after the one before it has ended. But puts
// without a condition may be under way together. Of those with a known outcome, each takes effect after the one before
// it.
class Turns {
 public:
  // Narrows the act of the client's next record.
  void Take(const Record& record, std::optional<Act>& act) {
    const bool is_plain = record.action == Action::kPut && !record.expects && record.client != Record::kNature;
    if (!is_plain || !are_plain_) {
      begin_ = end_;
      last_.reset();
    }
    are_plain_ = is_plain;
    if (record.end != Record::kNever) end_ = std::max(end_, record.end);
    if (!act) return;
    act->begin = std::max(act->begin, begin_);
    if (!is_plain) return;
    act->behind = last_;
    if (act->must) last_ = act->value;
  }

 private:
  uint64_t begin_ = 0;            // No operation of this turn took effect before.
  uint64_t end_ = 0;              // All that were begun have ended then.
  bool are_plain_ = false;        // The turn is one of puts without a condition.
  std::optional<uint64_t> last_;  // The last value of the turn that was put for sure.
};

}  // namespace

bool IsLinearizable(std::span<const Record> of_one_key) {
  std::vector<Act> acts;
  std::map<uint32_t, Turns> turns;  // by client
  const bool undone =
      std::any_of(of_one_key.begin(), of_one_key.end(), [](const Record& record) { return record.placed; });
  for (const Record& record : of_one_key) {
    if (record.action == Action::kCut && !undone) continue;
    auto act = ActOf(record);
    if (record.action != Action::kExpire) turns[record.client].Take(record, act);
    if (act) acts.push_back(*act);
  }
  return Search(std::move(acts)).Succeeds();
}

std::string CountsViolation(std::span<const Count> counts, int64_t last) {
  std::map<int64_t, const Count*> by_sum;
  int64_t unknown = 0;
  for (const Count& count : counts) {
    if (count.code == Code::kUnavailable || count.code == Code::kTimeout) ++unknown;
    if (count.code != Code::kOk) continue;
    const auto [it, is_new] = by_sum.emplace(count.sum, &count);
    if (!is_new) return "two increments came to " + std::to_string(count.sum);
  }
  // In the order of sums, no increment ended before an earlier one began.
  uint64_t begun = 0;
  for (const auto& [sum, count] : by_sum) {
    begun = std::max(begun, count->begin);
    if (count->end < begun) return "the increment to " + std::to_string(sum) + " ended before one that came to less";
  }
  const auto done = static_cast<int64_t>(by_sum.size());
  if (!by_sum.empty() && by_sum.rbegin()->first > last) return "an increment came to more than the last value";
  if (last < done || last > done + unknown) {
    return std::to_string(done) + " increments are done and " + std::to_string(unknown) +
           " may be, and the counter is at " + std::to_string(last);
  }
  return {};
}

// A get may go: it only says something about the other records. The same holds for the outcome of a delete. A put or
// delete may go if no remaining record saw its value, and no remaining record may have deleted it. A cut may go if no
// remaining put is placed. Expiries stay, and so do puts that expire.
std::vector<Record> Shrink(std::vector<Record> records) {
  const std::vector<Record> originals = records;
  const auto saw = [&](const Record& write) {
    if (write.action == Action::kCut) {
      return std::any_of(records.begin(), records.end(), [](const Record& r) { return r.placed; });
    }
    const uint64_t left = write.action == Action::kDelete ? Record::kAbsent : write.value;
    return std::any_of(records.begin(), records.end(), [&](const Record& r) {
      if (r.code == Code::kConflict) return r.end > write.begin;  // found another value than it expected
      if (r.expects == left) return true;
      if (r.code == Code::kCorruption && r.action != Action::kPut) return left == Record::kDamaged;
      if (r.code == Code::kNotFound) return left == Record::kAbsent;
      return r.action == Action::kGet && r.code == Code::kOk && r.value == left;
    });
  };
  const auto is_deleted = [&](const Record& put) {  // true if the put's value may have been deleted
    return std::any_of(records.begin(), records.end(), [&](const Record& r) {
      return r.action == Action::kDelete && r.code == Code::kOk && r.end > put.begin;
    });
  };
  const auto expires = [&](const Record& put) {
    return std::any_of(records.begin(), records.end(),
                       [&](const Record& r) { return r.action == Action::kExpire && r.value == put.value; });
  };
  for (Record& record : records) {
    if (record.action != Action::kDelete || record.code != Code::kOk) continue;
    record.code = Code::kUnavailable;
    if (IsLinearizable(records)) record.code = Code::kOk;
  }
  for (size_t before = records.size() + 1; records.size() < before;) {
    before = records.size();
    for (size_t i = records.size(); i-- > 0;) {
      const Record record = records[i];
      if (record.action != Action::kGet && record.code != Code::kConflict && saw(record)) continue;
      if (record.action == Action::kPut && (is_deleted(record) || expires(record))) continue;
      if (record.action == Action::kExpire) continue;
      records.erase(records.begin() + static_cast<ptrdiff_t>(i));
      if (IsLinearizable(records)) records.insert(records.begin() + static_cast<ptrdiff_t>(i), record);
    }
  }
  for (Record& record : records) {
    record =
        *std::find_if(originals.begin(), originals.end(), [&](const Record& r) { return r.begin == record.begin; });
  }
  return records;
}

}  // namespace erda::sim
