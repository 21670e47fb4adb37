// One shard's ring: its records on a disk, between two checkpoints' places.
//
//   block 0      1            2                                             the end of the part
//   +------------+------------+--------+-------------------+- - - - - - - -+
//   | checkpoint | checkpoint | record | record            | ...           |
//   | copy A     | copy B     |        |                   |               |
//   +------------+------------+--------+-------------------+- - - - - - - -+
//
// The records follow each other. A record that does not fit before the end begins at block 2 again. A block is used
// again only after a durable checkpoint says that no reader needs it (J4).
//
// The records are a chain. A record belongs to the stream if it begins where the record before it ends, and if its
// epoch is not before that record's epoch. Within one epoch the stream never changes: a writer that has another stream
// from the end on begins an epoch first. So an older record that a cut left after the end never becomes a part of the
// stream (J3).
//
// Owns a buffer for one record, and the part of the disk. Not thread-safe: one thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "erda/status.h"
#include "journal/aligned_buffer.h"
#include "journal/checkpoint_block.h"
#include "journal/disk.h"
#include "journal/identity.h"
#include "journal/place.h"
#include "journal/record.h"
#include "journal/record_reader.h"
#include "journal/ring_space.h"

namespace erda::journal {

class Ring {
 public:
  // Makes an empty ring, of epoch 1, whose stream begins at place 0. Durable on return. REQUIRES: the part ends within
  // the disk and has three blocks at least. The identity's secret is a new one.
  static Status Format(Disk& disk, const RingPart& part, const RingIdentity& identity);

  // Called for each record of the stream, in order. An error ends Open, which returns it.
  using Visit = std::function<Status(const Record& record)>;
  // Reads the stream from the checkpoint on, and leaves a ring that goes on at its end. All that it visits is durable.
  // Returns kCorruption if there is no checkpoint. REQUIRES: the disk outlives the ring, and only this ring writes to
  // the part.
  static Result<Ring> Open(Disk& disk, const RingPart& part, const RingIdentity& identity, const Visit& visit);

  // Returns kCorruption if the ring has lost a part of the stream that was held. Then the end that Open found is the
  // place of the damage, and no torn record. Reads the whole ring. It does not notice damage of records after which
  // none was written. REQUIRES: called after Open, before the first record.
  [[nodiscard]] Status CheckEnd() const;

  // Begins the next epoch, in which the stream goes on at `place`, without a front. Durable on return. REQUIRES: all
  // written records are held, as after Open. The place is end(), or a later one. For a later one, the checkpoint is at
  // end(), and the pool file has the stream up to the place, synced. Call it after Open, before the first record,
  // unless the stream that will follow is the one that the last writer had.
  Status BeginEpoch(Place place);
  // From now on, a front holds bytes of this epoch. Durable on return. Call it after Open, before the first record.
  Status NameFront();
  [[nodiscard]] bool has_front() const { return checkpoint_.has_front != 0; }

  // Writes a record of these bytes, and flushes. It is held on return, and all before it.
  Status Append(Place from, Parts bytes, uint64_t time_us);
  // Writes a record. It is held once Flush has returned ok. Several records may share a flush. Returns
  // kResourceExhausted, and changes nothing, if the record would reach the live part. REQUIRES: from == end(), and
  // there are 1 to kRecordBytesMax bytes.
  Status Write(Place from, Parts bytes, uint64_t time_us);
  Status Flush();

  // Makes the place durable as the checkpoint, and then frees the records before it. Returns kInternal, and changes
  // nothing, if the place is neither the checkpoint nor the end of a record that is held. REQUIRES: the pool file has
  // the stream up to there, synced.
  Status Checkpoint(Place place);

  // After an error of the disk, every call of these functions returns that error and does nothing. No later flush could
  // prove that the records before the error are held.
  [[nodiscard]] const Status& failure() const { return failure_; }

  [[nodiscard]] Place checkpoint() const { return checkpoint_.place; }
  [[nodiscard]] Place held() const { return held_; }
  [[nodiscard]] Place end() const { return end_; }
  [[nodiscard]] uint64_t epoch() const { return checkpoint_.epoch; }
  // Returns the most bytes that the next record can have. 0: no record has room before the next checkpoint.
  [[nodiscard]] uint64_t Room() const;
  // Returns the bytes of the disk that no live record has. A record may need a piece of them without a gap.
  [[nodiscard]] uint64_t free_bytes() const { return space_.free_blocks() * Disk::kBlock; }
  // Returns the bytes of the disk for records.
  [[nodiscard]] uint64_t record_bytes() const { return part_.size - kFirstRecordBlock * Disk::kBlock; }
  // Returns how many bytes of records and checkpoints this object has written since Open, and how often it has flushed.
  [[nodiscard]] uint64_t bytes_written() const { return bytes_written_; }
  [[nodiscard]] uint64_t flushes() const { return flushes_; }

 private:
  Ring(Disk& disk, const RingPart& part, const RingIdentity& identity, const CheckpointBlock& checkpoint);
  Status Replay(const Visit& visit);
  Status WriteCheckpoint(CheckpointBlock checkpoint);
  Status WriteBothCheckpoints(CheckpointBlock checkpoint);
  Status Fail(Status status);

  Disk* disk_;
  RingPart part_;
  RingIdentity identity_;
  CheckpointBlock checkpoint_;  // The durable one.
  RingSpace space_;
  Place held_;
  Place end_;
  uint64_t bytes_written_ = 0;
  uint64_t flushes_ = 0;
  Status failure_;
  AlignedBuffer buffer_;
};

}  // namespace erda::journal
