// The meaning of an input of the fuzzer of journals: it chooses one of a few pools with a journal, and changes to their
// files. A change can bring the checksum along, of a header, a checkpoint block or a record. The encoding is that of
// input.h:
//
//   byte 0   which pool
//   byte 1   what is done with it (journal.cc)
//   then     changes of 16 bytes: place (1), operation (1), 0 (2), index (4), value (8)
#pragma once

#include <cstdint>
#include <span>

#include "fuzz/journal_files.h"

namespace erda::fuzz {

enum class JournalPool : uint8_t {
  kClosed,  // Closed cleanly.
  kCut,     // The power was cut. The ring has some records that the pool file lacks.
  kKilled,  // The server was killed, and left its image. The stream there goes beyond the ring's end.
  kRound,   // As kCut, and the ring has begun again at its start several times.
  kShards,  // As kCut, with two shards.
  kCount
};

// Where a change is made. An image that is not there has no places: kImageHeader is kCheckpoint then, and so on.
enum class JournalPlace : uint8_t {
  kHeader,        // A word of a header of the journal's file.
  kCheckpoint,    // A word of a checkpoint block.
  kRecordHeader,  // A word of a record's header.
  kEntry,         // A word of an entry of the stream, in a record.
  kRecordBytes,   // Any other word of a record.
  kSuperblock,    // A word of a superblock in the pool file.
  kJournal,       // Any word of the journal.
  kPoolFile,      // Any word of the pool file.
  kImageHeader,   // A word of the image's header.
  kStreamHeader,  // A word of the header of a stream.
  kStream,        // A word of a stream.
  kImage,         // Any word of the image's pool.
  kEnd,           // Where a file ends: it is cut short.
  kCount
};
inline constexpr uint8_t kJournalPlaces = static_cast<uint8_t>(JournalPlace::kCount);

struct JournalInput {
  JournalFiles files;
  uint8_t todo = 0;
  size_t changes = 0;
  // No checksum shows a change: a record got a correct one, or the change is in a stream in memory, which has none.
  bool hidden = false;
  // A word is just below the end of the numbers that a journal has. A server that goes on from there passes that end,
  // and the next server finds an impossible number. A real stream takes 29 years to it.
  bool near_end = false;
};
[[nodiscard]] JournalInput DecodeJournal(std::span<const uint8_t> bytes);

// The value that each key of each pool has, but for one key that was deleted.
[[nodiscard]] std::string JournaledValueOf(int key);

}  // namespace erda::fuzz
