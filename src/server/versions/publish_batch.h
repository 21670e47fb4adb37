// The puts that a shard has written and not published. They are published together, and share two fences
// (docs/protocol.md, "Publish").
//
// Owns those puts, and the index slots that they claim. Requires: no two puts of a batch are of one key or of one index
// slot. So the caller publishes before a put for which IsClaimed returns true, and when the batch is full. Only this
// class makes an AllPublished. The shard's thread calls it.
//
// Invariants, checked by tests/model and tests/server:
//   (I1) An entry's old address names the newest settled version before the new one, or nothing.
//   (I3) An object's header and key are persistent before an entry names it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/planted.h"
#include "index/index.h"
#include "nvm/writer.h"
#include "server/control/expiry_clock.h"
#include "server/versions/all_published.h"
#include "server/versions/find_key.h"
#include "server/versions/new_version.h"
#include "server/versions/reservations.h"
#include "server/versions/settling.h"

namespace erda::server {

class PublishBatch {
 public:
  PublishBatch(nvm::Writer& nvm, index::Index& index, ExpiryClock& clock, Reservations& reservations,
               Settling& settling);

  [[nodiscard]] bool empty() const { return puts_.empty(); }
  [[nodiscard]] bool is_full() const { return puts_.size() == kPutsMax; }
  // Returns true if a put of the batch may be of this key, or has a slot that a put of this key could take. `found` is
  // the result of FindKey for the key.
  [[nodiscard]] bool IsClaimed(uint64_t key_hash, const Found& found) const {
    return !claims_.empty() && !Planted(Flaw::kSlotTakenTwice) && LooksClaimed(key_hash, found);
  }

  // Adds a put whose value is there. Requires: its object is flushed. The batch is not full, and the put is not
  // claimed.
  void Add(const NewVersion& version) {
    const bool waits = settling_.holds_later() && version.header.persisted();
    AddPut(version, waits);
    if (waits) [[unlikely]]
      AddHold(version);
  }
  // Adds a put whose session has still to write the value. Requires: its header and key are flushed.
  void Add(const NewVersion& version, const Reservation& reservation) {
    AddPut(version, true);
    reserved_.push_back(reservation);
  }
  // The put that was added last was judged by a version with this deadline. The clock stands before it until the put is
  // settled.
  void JudgedBy(uint64_t deadline);
  // Publishes all puts of the batch. With the same fences, settles versions in flight that are due
  // (Settling::FlushDue).
  [[nodiscard]] AllPublished Publish() {
    if (settling_.is_due()) [[unlikely]] {
      PublishAndSettle();
    } else if (!puts_.empty()) {
      PublishPuts();
    }
    return {};
  }
  // (I9) Publishes before a head opens another segment.
  [[nodiscard]] AllPublished PublishBeforeOpening() {
    if (Planted(Flaw::kMarksUnpublished)) return {};
    return Publish();
  }

 private:
  using Slot = index::Slot;

  // A larger batch would save little, and IsClaimed compares each put with all earlier ones.
  static constexpr size_t kPutsMax = 32;

  struct Put {
    NewVersion version;
    uint32_t bytes = 0;        // the space of the version
    bool is_reserved = false;  // it stays unsettled, in flight
  };
  // The part of the index that a put claims. It is not in Put, since IsClaimed reads all claims.
  struct Claim {
    Slot slot = 0;
    std::optional<Slot> home;  // only for a new entry
  };

  [[nodiscard]] bool LooksClaimed(uint64_t key_hash, const Found& found) const;
  void AddPut(const NewVersion& version, bool is_reserved) {
    puts_.push_back({version, static_cast<uint32_t>(SpaceOf(version.header)), is_reserved});
    claims_.push_back({version.slot, std::nullopt});
    if (!version.replaces) [[unlikely]]
      claims_.back().home = index_.layout().HomeOf(version.header.key_hash);
  }
  // Lets the put be in flight, for the shard alone, until the medium holds it. A put with kPlaced need not be: it is
  // settled at once, since a power cut may undo it.
  void AddHold(const NewVersion& version);
  void PublishAndSettle();
  void PublishPuts();
  // On a pool with a journal: tells the versions in flight that puts of the batch are settled which are newer.
  void OvertakeOlder();
  // Describes a new entry. Persistent after the next fence.
  [[gnu::noinline]] void DescribeEntry(const Put& put);
  // Lets the put's entry name the new version, unsettled. Persistent after the next fence.
  void StoreEntry(const Put& put, index::Publishing& publishing);

  nvm::Writer& nvm_;
  index::Index& index_;
  ExpiryClock& clock_;
  Reservations& reservations_;
  Settling& settling_;
  std::vector<uint64_t> judged_;  // The deadlines of JudgedBy, of puts that do not stay in flight.
  std::vector<Put> puts_;
  std::vector<Claim> claims_;          // one for each put
  std::vector<Reservation> reserved_;  // one for each put that stays in flight
};

}  // namespace erda::server
