#include "server/versions/judging.h"

#include "base/planted.h"
#include "server/versions/find_key.h"

namespace erda::server {

using format::EntryWord;
using format::IndexEntry;
using format::LogAddress;
using format::ObjectState;
using format::ObjectView;
using index::Slot;

// (I13) The newest version is settled, or the judgement waits for it. A version that its client is still writing may
// become whole at any time, and its put may be acknowledged without the shard. Then that put came before a put that
// would be published now, and after the settled version.
Present Judging::Judge(std::string_view key, uint64_t key_hash) {
  Found found = FindKey(index_, log_, key, key_hash);
  if (batch_.IsClaimed(key_hash, found) && !Planted(Flaw::kJudgesUnpublished)) {
    found = FindKey(batch_.Publish(), index_, log_, key, key_hash);
  }
  for (;; found = FindKey(index_, log_, key, key_hash)) {
    if (!found.entry) return {found.damaged ? Present::State::kDamaged : Present::State::kAbsent, 0, {}};
    const Slot slot = *found.entry;
    settling_.SettleCurrent(slot, key_hash);
    const EntryWord word = index_.WordAt(slot);
    const uint32_t head = log_.HeadOf(index_.At(slot));
    const bool not_awaited = Planted(Flaw::kConditionNotAwaited) && !word.old_address().none();
    if (word.settled() || not_awaited) {
      const LogAddress address = word.settled() ? word.new_address() : word.old_address();
      const ObjectView view = log_.InspectHeader(head, address);
      if (view.state == ObjectState::kNothing) return {Present::State::kDamaged, 0, {}};
      if (clock_.HasPassed(view.deadline) && !Planted(Flaw::kExpiryIgnored)) return {};
      if (clock_.IsOverdue(view.deadline)) {
        const auto judged = FindJudged(view.deadline);
        if (!judged) continue;
        return *judged;
      }
      return {Present::State::kThere, view.header.version, address, head, 0, 0, view.deadline};
    }
    const InFlight::Id id = taking_back_.FindWriter(slot, key_hash);
    if (id != InFlight::kNone) {
      return UndecidedBy(reservations_.in_flight().At(id));
    }
    taking_back_.TakeBackAbandoned(slot, key_hash);
  }
}

// Its value may have arrived without a message.
std::optional<Present> Judging::FindJudged(uint64_t deadline) {
  (void)batch_.Publish();
  if (clock_.next_judged() > deadline) return std::nullopt;
  settling_.SweepKey(batch_.Publish(), FirstJudged().key_hash);
  if (clock_.next_judged() > deadline) return std::nullopt;
  return FirstJudged();
}

Present Judging::FirstJudged() const {
  Present first;
  reservations_.in_flight().ForEach([&](InFlight::Id /*id*/, const Reservation& judged) {
    if (judged.judged_deadline == clock_.next_judged()) first = UndecidedBy(judged);
  });
  return first;
}

bool Judging::AwaitsMedium(const Present& present) const {
  const InFlight::Id id = reservations_.in_flight().Find(present.key_hash, present.head, present.address);
  return id != InFlight::kNone && reservations_.in_flight().At(id).awaits_hold;
}

bool Judging::AwaitsWriter(const Present& present) const {
  const InFlight& in_flight = reservations_.in_flight();
  const InFlight::Id id = in_flight.Find(present.key_hash, present.head, present.address);
  if (!IsUndecided(present) || present.writer == kNoSession) return false;
  return in_flight.At(id).session == present.writer && !in_flight.At(id).awaits_hold;
}

bool Judging::IsUndecided(const Present& present) const {
  const InFlight& in_flight = reservations_.in_flight();
  const InFlight::Id id = in_flight.Find(present.key_hash, present.head, present.address);
  if (id == InFlight::kNone || in_flight.At(id).version != present.version || in_flight.At(id).settled) return false;
  if (in_flight.At(id).awaits_hold) return true;
  const auto slot = index_.Find(present.key_hash, [&](Slot /*slot*/, const IndexEntry& entry) {
    return entry.entry_word().new_address() == present.address;
  });
  return slot.has_value();
}

}  // namespace erda::server
