#include "server/versions/publish_batch.h"

namespace erda::server {

using format::EntryWord;

PublishBatch::PublishBatch(nvm::Writer& nvm, index::Index& index, Reservations& reservations, Settling& settling)
    : nvm_(nvm), index_(index), reservations_(reservations), settling_(settling) {
  puts_.reserve(kPutsMax);
  claims_.reserve(kPutsMax);
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

bool PublishBatch::Has(uint64_t key_hash) const {
  return std::any_of(puts_.begin(), puts_.end(),
                     [&](const Put& put) { return put.version.header.key_hash == key_hash; });
}

void PublishBatch::AddPut(const NewVersion& version, const std::optional<Reservation>& reservation) {
  puts_.emplace_back(version, reservation);
  Claim claim{version.slot, std::nullopt};
  if (!version.replaces) claim.home = index_.layout().HomeOf(version.header.key_hash);
  claims_.push_back(claim);
}

void PublishBatch::PublishAndSettle() {
  if (!settling_.is_due()) return PublishPuts();
  const Settling::Flushed flushed = settling_.FlushDue();
  if (!puts_.empty()) PublishPuts();
  settling_.SettleFlushed(flushed);
}

void PublishBatch::PublishPuts() {
  for (const auto& [version, reservation, change] : puts_) {
    if (version.replaces) continue;
    if (!index_.WordAt(version.slot).empty()) index_.Free(version.slot);
    index_.Describe(version.slot, version.header.key_hash, SpaceOf(version.header));
  }
  // (I3) Pairs with the flushes before Add. Now the objects that the entries will name are persistent, and so is the
  // meta of each new entry.
  if (!Planted(Flaw::kPublishedUnfenced)) nvm_.Fence();
  for (Put& put : puts_) StoreEntry(&put);
  // Pairs with the flushes of StoreEntry. Unsettled entries are persistent before a reader can see them settled, and
  // before a client gets an answer.
  if (!Planted(Flaw::kEntryNotFlushed)) nvm_.Fence();
  for (const auto& [version, reservation, change] : puts_) {
    if (reservation) {
      reservations_.Begin(*reservation);
    } else {
      index_.SettlePublished(version.slot, change);  // (I2)
    }
  }
  puts_.clear();
  claims_.clear();
}

void PublishBatch::StoreEntry(Put* put) {
  const NewVersion& version = put->version;
  const EntryWord before = version.replaces ? index_.WordAt(version.slot) : EntryWord();
  const EntryWord word = (Planted(Flaw::kAlwaysFlips) ? before.Settled() : before).Published(version.space.address);
  if (version.replaces) index_.StoreSizeHint(version.slot, SpaceOf(version.header));
  if (!put->reservation) {
    put->change = {version.head, before, word};
    index_.Publish(version.slot, put->change);
  } else if (version.replaces) {
    index_.StoreWordLazily(version.slot, word);
  } else {
    index_.Enter(version.slot, word);
  }
}

}  // namespace erda::server
