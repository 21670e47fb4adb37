#include "server/versions/publish_batch.h"

namespace erda::server {

using format::EntryWord;

PublishBatch::PublishBatch(nvm::Writer& nvm, index::Index& index, ExpiryClock& clock, Reservations& reservations,
                           Settling& settling)
    : nvm_(nvm), index_(index), clock_(clock), reservations_(reservations), settling_(settling) {
  puts_.reserve(kPutsMax);
  claims_.reserve(kPutsMax);
  reserved_.reserve(kPutsMax);
}

bool PublishBatch::LooksClaimed(uint64_t key_hash, const Found& found) const {
  const auto slot = found.entry ? found.entry : found.damaged;
  const Slot home = index_.layout().HomeOf(key_hash);
  return std::any_of(claims_.begin(), claims_.end(), [&](const Claim& other) {
    if (slot == other.slot) return true;
    if (found.entry || !other.home) return false;
    const bool near = std::max(home, *other.home) - std::min(home, *other.home) < format::kNeighbourhood;
    return near || index_.layout().NeighbourhoodOf(key_hash).Has(other.slot);  // may be far from the other home
  });
}

void PublishBatch::AddHold(const NewVersion& version) {
  Reservation reservation = ReservationOf(version, kNoSession);
  reservation.awaits_hold = true;
  reserved_.push_back(reservation);
}

void PublishBatch::JudgedBy(uint64_t deadline) {
  clock_.StandBefore(deadline);
  if (puts_.back().is_reserved) {
    reserved_.back().judged_deadline = deadline;
  } else {
    judged_.push_back(deadline);
  }
}

void PublishBatch::PublishAndSettle() {
  const Settling::Flushed flushed = settling_.FlushDue();
  if (!puts_.empty()) PublishPuts();
  settling_.SettleFlushed(flushed);
}

void PublishBatch::PublishPuts() {
  for (const Put& put : puts_) {
    if (!put.version.replaces) DescribeEntry(put);
  }
  // (I3) Pairs with the flushes before Add. Now the objects that the entries will name are persistent, and so is the
  // meta of each new entry.
  if (!Planted(Flaw::kPublishedUnfenced)) nvm_.Fence();
  // (I2) The index fences after all of these stores, before it settles an entry.
  index_.Publish([this](index::Publishing& publishing) {
    for (const Put& put : puts_) StoreEntry(put, publishing);
  });
  for (const Reservation& reservation : reserved_) {
    const InFlight::Id id = reservations_.Begin(reservation);
    if (reservation.awaits_hold) settling_.AwaitHold(id);
  }
  if (settling_.holds_later()) [[unlikely]]
    OvertakeOlder();
  if (!judged_.empty()) [[unlikely]] {
    for (const uint64_t deadline : judged_) clock_.LetGo(deadline);
    judged_.clear();
  }
  puts_.clear();
  claims_.clear();
  reserved_.clear();
}

void PublishBatch::OvertakeOlder() {
  for (const Put& put : puts_) {
    if (!put.is_reserved) reservations_.Overtake(put.version.header.key_hash, put.version.header.version);
  }
}

void PublishBatch::DescribeEntry(const Put& put) {
  const NewVersion& version = put.version;
  if (!index_.WordAt(version.slot).empty()) index_.Free(version.slot);
  index_.Describe(version.slot, version.header.key_hash, put.bytes);
}

void PublishBatch::StoreEntry(const Put& put, index::Publishing& publishing) {
  const NewVersion& version = put.version;
  const EntryWord before = version.replaces ? index_.WordAt(version.slot) : EntryWord();
  const EntryWord word = (Planted(Flaw::kAlwaysFlips) ? before.Settled() : before).Published(version.space.address);
  if (version.replaces) index_.StoreSizeHint(version.slot, put.bytes);
  if (!put.is_reserved) [[likely]] {
    // The entry is as the put found it, unless the medium has damaged the word since.
    const uint64_t left_at = before == version.left ? version.left_at : 0;
    publishing.Store(version.slot, {version.head, before, word, left_at, version.left_bytes, put.bytes});
  } else if (version.replaces) {
    index_.StoreWordLazily(version.slot, word);
  } else {
    index_.Enter(version.slot, word);
  }
}

}  // namespace erda::server
