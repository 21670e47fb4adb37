// The chunks of the log that clients fill themselves, and the puts whose values stand in them (docs/protocol.md, "Put,
// delegated").
//
// Owns: the table of chunks. Requires: as Puts. What ends a chunk publishes the waiting puts first. The shard's thread
// calls it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "erda/client.h"
#include "format/geometry.h"
#include "log/shard_log.h"
#include "nvm/writer.h"
#include "server/chunk_table.h"
#include "server/counters.h"
#include "server/outcome.h"
#include "server/publish_batch.h"
#include "server/puts.h"
#include "server/version_numbers.h"

namespace erda::server {

class Delegating {
 public:
  using Address = format::LogAddress;

  Delegating(nvm::Writer& nvm, const format::Geometry& geometry, log::ShardLog& log, Counters& counters,
             VersionNumbers& numbers, PublishBatch& batch, Puts& puts)
      : nvm_(nvm),
        geometry_(geometry),
        log_(log),
        counters_(counters),
        numbers_(numbers),
        batch_(batch),
        puts_(puts),
        chunks_(log, geometry) {}

  // Gives the session a chunk of the log: of `wanted` bytes, or of `least` if there are no more. kNoChunk: it may have
  // none now. windowed: its client writes there through a window, and the chunk ends when that is closed.
  Outcome Delegate(uint32_t head, uint64_t least, uint64_t wanted, SessionId session, bool windowed = false);
  // Puts a value that the session has placed, for an object at `address` of one of its chunks. Requests come in the
  // order of their objects. kNoChunk: it has no such chunk any more. nullopt: the value is not there, or it is not
  // where the next object begins. It broke the protocol.
  std::optional<Outcome> Put(std::string_view key, uint64_t key_hash, uint32_t value_size, uint32_t value_crc, Ack ack,
                             Address address, SessionId session, uint64_t deadline = 0);
  // The session writes no more into the chunk there whose header has this version.
  void GiveBack(uint32_t head, Address address, uint64_t version, SessionId session) {
    chunks_.GiveBack(batch_.Publish(), head, address, version, session);
  }
  // Counts an idle moment: chunks that were not used for some of them are taken back.
  void Age() {
    if (chunks_.delegates()) chunks_.Age(batch_.Publish());
  }
  // Cleaning is short of space: chunks where nothing else is appended any more are taken back.
  void TakeBack() {
    if (chunks_.open() > 0) chunks_.TakeBackFull(batch_.Publish());
  }
  [[nodiscard]] ChunkTable& chunks() { return chunks_; }
  [[nodiscard]] const ChunkTable& chunks() const { return chunks_; }

 private:
  nvm::Writer& nvm_;
  const format::Geometry& geometry_;
  log::ShardLog& log_;
  Counters& counters_;
  VersionNumbers& numbers_;
  PublishBatch& batch_;
  Puts& puts_;
  ChunkTable chunks_;
};

}  // namespace erda::server
