// Writes new versions of keys into the log, and adds them to the batch of puts that are published together.
//
// Owns only the order of these steps. Requires: key and value are within the format's limits, and the value fits in a
// segment. key_hash is the key's, and belongs to this shard. The shard may answer a put once the batch is published.
// The shard's thread calls it.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "erda/client.h"
#include "format/geometry.h"
#include "format/hello.h"
#include "index/index.h"
#include "log/shard_log.h"
#include "nvm/writer.h"
#include "server/control/counters.h"
#include "server/pool/version_numbers.h"
#include "server/versions/all_published.h"
#include "server/versions/growth.h"
#include "server/versions/judging.h"
#include "server/versions/new_version.h"
#include "server/versions/outcome.h"
#include "server/versions/publish_batch.h"
#include "server/versions/reservations.h"
#include "server/versions/settling.h"

namespace erda::server {

class Puts {
 public:
  Puts(nvm::Writer& nvm, const format::Geometry& geometry, index::Index& index, log::ShardLog& log, Counters& counters,
       VersionNumbers& numbers, Reservations& reservations, Settling& settling, PublishBatch& batch, Growth& growth,
       uint32_t reservations_per_session)
      : nvm_(nvm),
        geometry_(geometry),
        index_(index),
        log_(log),
        counters_(counters),
        numbers_(numbers),
        reservations_(reservations),
        settling_(settling),
        batch_(batch),
        growth_(growth),
        reservations_per_session_(reservations_per_session) {}

  // Puts a value that came with the request. deadline: by the shard's clock; 0: the value has none.
  Outcome PutInline(std::string_view key, uint64_t key_hash, std::span<const std::byte> value, Ack ack,
                    uint64_t deadline = 0);
  // Gives the session a place for the value. flush: the method by which the session makes its values persistent.
  Outcome Reserve(std::string_view key, uint64_t key_hash, uint32_t value_size, Ack ack, SessionId session,
                  format::FlushMethod flush, uint64_t deadline = 0);
  // Adds `delta` to the key's value of 8 bytes; an absent value counts as 0. Requires: `present` is the result of Judge
  // in this step, and not undecided.
  Outcome Increment(std::string_view key, uint64_t key_hash, const Present& present, int64_t delta, Ack ack);

  // Takes an index slot and a number for the version, and makes its header. Also reserves space, unless version->space
  // is set. The caller writes the object and adds the version to the batch. flags: the flags of the object's header.
  // Requires: version->deadline is set.
  Outcome Prepare(std::string_view key, uint64_t key_hash, uint32_t value_size, uint8_t flags, NewVersion* version);

 private:
  Outcome PrepareHere(std::string_view key, uint64_t key_hash, uint32_t value_size, uint8_t flags, NewVersion* version);
  // Takes an index slot for the version of a key that has no entry, as *found says. If the key has an entry all the
  // same, changes *found instead. Returns the reason if there is no slot. Not inline: most puts replace a version.
  [[gnu::noinline]] format::Reason TakeOtherSlot(std::string_view key, uint64_t key_hash, Found* found,
                                                 NewVersion* version);

  // Returns true if the session, which had as many reservations as it may have, may have another one.
  bool FreeReservation(AllPublished, SessionId session);

  nvm::Writer& nvm_;
  const format::Geometry& geometry_;
  index::Index& index_;
  log::ShardLog& log_;
  Counters& counters_;
  VersionNumbers& numbers_;
  Reservations& reservations_;
  Settling& settling_;
  PublishBatch& batch_;
  Growth& growth_;
  const uint32_t reservations_per_session_;
};

// Returns the flags of an object's header for a put with this acknowledgement.
constexpr uint8_t FlagsOf(Ack ack, bool flushed_by_read = false) {
  if (ack != Ack::kPersisted) return 0;
  return flushed_by_read ? format::ObjectHeader::kPersistedFlag | format::ObjectHeader::kFlushedByReadFlag
                         : format::ObjectHeader::kPersistedFlag;
}

}  // namespace erda::server
