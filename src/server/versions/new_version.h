// A version that a request is about to publish: its place in index and log, and its header. Free functions make the
// header and write it. The shard's thread calls them.
#pragma once

#include <cstdint>
#include <string_view>

#include "format/object.h"
#include "index/index.h"
#include "log/shard_log.h"
#include "nvm/writer.h"

namespace erda::server {

struct NewVersion {
  index::Slot slot = 0;
  bool replaces = false;  // the slot's entry is the key's, so one store publishes the version
  uint32_t head = 0;
  log::ShardLog::Space space;
  uint64_t deadline = 0;
  format::ObjectHeader header{};
};

// Fills in version->header, and returns the generation of the version's region. previous: a log address. Requires:
// version->head, ->space and ->deadline are set.
uint32_t MakeHeader(const log::ShardLog& log, NewVersion* version, format::ObjectKind kind, std::string_view key,
                    uint64_t key_hash, uint32_t value_size, uint8_t flags, uint64_t number, uint32_t previous);

// Writes header, deadline and key to the version's space, and the checksum if it is not null. (I3) Does not flush: the
// caller makes these bytes persistent together with the ones that it writes.
void WriteHeaderAndKey(nvm::Writer& nvm, const NewVersion& version, std::string_view key, const uint32_t* checksum);

}  // namespace erda::server
