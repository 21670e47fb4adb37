// Applies a part of a stream to a pool. At a restart this is the image, for the checkpointer it is the pool file, and
// for a mirror its own pool.
//
// A part is applied in the order of its entries. Applying it again, over bytes of any moments since, gives the same
// bytes: each byte that an entry of the part names gets its last value, and no other byte changes (J1).
//
// The bytes may come from a disk and be anything. At the first malformed entry the functions stop and return
// kCorruption; the entries before it are applied. They own nothing, and any thread may call them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "erda/status.h"
#include "journal/writeback.h"
#include "nvm/writer.h"

namespace erda::journal {

// REQUIRES: the stream does not lie in the pool.
Status ApplyToMemory(std::span<const std::byte> stream, std::span<std::byte> pool);

// Stores into the pool of a mirror, with a fence where the stream has one, and one at the end. So at each moment the
// mirror's pool is one that a power cut of the primary's pool could have left. Aligned words are stored whole. An entry
// that begins before `lowest` counts as malformed. After kCorruption the last entries are not fenced. REQUIRES: nobody
// else writes to the bytes of the stream's shard.
Status ApplyToPool(std::span<const std::byte> stream, nvm::Writer& writer, uint64_t lowest = 0);

// Writes to a file that is a pool of this size, at the offsets of the entries. Entries that are near each other in the
// pool go into one write, with the last bytes of each place. The bytes between them are those that the file has, and
// nothing else of the pool (J6). Does not sync; tells `writeback`, if it is not null, of what it writes. If a call
// fails, returns its error and writes nothing more. The file then has some of the part; only applying all of it again
// mends that. REQUIRES: nobody else writes between the entries.
Status ApplyToFile(std::span<const std::byte> stream, int fd, uint64_t pool_size, Writeback* writeback = nullptr);

}  // namespace erda::journal
