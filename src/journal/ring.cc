#include "journal/ring.h"

#include <algorithm>
#include <cassert>
#include <string>
#include <utility>

namespace erda::journal {

namespace {

Status WriteCopy(Disk& disk, const RingPart& part, const CheckpointBlock& checkpoint, std::span<std::byte> buffer) {
  const auto block = buffer.first(Disk::kBlock);
  EncodeCheckpoint(checkpoint, block);
  return disk.Write(part.offset + checkpoint.generation % kFirstRecordBlock * Disk::kBlock, block);
}

}  // namespace

Ring::Ring(Disk& disk, const RingPart& part, const RingIdentity& identity, const CheckpointBlock& checkpoint)
    : disk_(&disk),
      part_(part),
      identity_(identity),
      checkpoint_(checkpoint),
      space_(part.blocks(), checkpoint.first_block),
      held_(checkpoint.place),
      end_(checkpoint.place),
      buffer_(std::min(kRecordBlocksMax, part.blocks() - kFirstRecordBlock) * Disk::kBlock) {}

Status Ring::Format(Disk& disk, const RingPart& part, const RingIdentity& identity) {
  assert(part.blocks() > kFirstRecordBlock);
  const AlignedBuffer buffer(Disk::kBlock);
  CheckpointBlock checkpoint = FirstCheckpoint(identity);
  for (uint64_t copy = 0; copy < kFirstRecordBlock; ++copy, ++checkpoint.generation) {
    if (auto status = WriteCopy(disk, part, checkpoint, buffer.bytes()); !status.ok()) return status;
  }
  return disk.Flush();
}

// Flushes before it reads. Another process may have died after a write and before its flush. The reader would see that
// write in the disk's cache, and rely on it, and a later power cut could take it.
Result<Ring> Ring::Open(Disk& disk, const RingPart& part, const RingIdentity& identity, const Visit& visit) {
  if (auto status = disk.Flush(); !status.ok()) return status;
  const AlignedBuffer copies(kFirstRecordBlock * Disk::kBlock);
  if (auto status = disk.Read(part.offset, copies.bytes()); !status.ok()) return status;
  const auto checkpoint = FindCheckpoint(copies.bytes(), identity, part.blocks());
  if (!checkpoint) {
    return Status(Code::kCorruption, "the ring of shard " + std::to_string(identity.shard) +
                                         " is damaged: it has no valid checkpoint (" +
                                         CheckpointFaults(copies.bytes(), identity, part.blocks()) + ")");
  }
  Ring ring(disk, part, identity, *checkpoint);
  if (auto status = ring.Replay(visit); !status.ok()) return status;
  return ring;
}

Status Ring::Replay(const Visit& visit) {
  RecordReader reader(*disk_, part_, identity_);
  Expected expected{checkpoint_.place, checkpoint_.place_epoch, checkpoint_.epoch};
  for (;;) {
    const auto found = reader.Next(space_, expected);
    if (!found.ok()) return found.status();
    if (!found->has_value()) break;
    const auto& [block, blocks, record] = **found;
    if (auto status = visit(record); !status.ok()) return status;
    space_.Take(blocks, {block, record.end(), record.epoch});
    expected.place = record.end();
    expected.epoch_min = record.epoch;
  }
  held_ = end_ = expected.place;
  return {};
}

// The stream keeps all bytes that were held. So a record that was written when more was held shows a loss. It need not
// be live, and the checkpoint may be an older one.
Status Ring::CheckEnd() const {
  RecordReader reader(*disk_, part_, identity_);
  const auto found = reader.FindBeyond(end_, epoch());
  if (!found.ok()) return found.status();
  if (!found->has_value()) return {};
  const Record& record = (*found)->record;
  const std::string at = "the ring of shard " + std::to_string(identity_.shard) +
                         " is damaged: its records end at place " + std::to_string(end_) + " in epoch " +
                         std::to_string(epoch()) + ", and the one in block " + std::to_string((*found)->block) +
                         " says that ";
  if (record.epoch > epoch()) return {Code::kCorruption, at + "epoch " + std::to_string(record.epoch) + " has begun"};
  return {Code::kCorruption, at + "the disk held the stream up to place " + std::to_string(record.held)};
}

// The epoch is durable before any record has it. Otherwise a second cut could let it begin twice, with two streams.
Status Ring::BeginEpoch(Place place) {
  if (!failure_.ok()) return failure_;
  assert(held_ == end_ && (place == end_ || (place > end_ && checkpoint_.place == end_)));
  CheckpointBlock next = checkpoint_;
  ++next.epoch;
  next.has_front = 0;
  // No record ended at a later place. Those that stand there begin in this epoch.
  if (place > end_) {
    next.place = place;
    next.place_epoch = next.epoch;
    next.first_block = space_.next();
  }
  if (auto status = WriteBothCheckpoints(next); !status.ok()) return status;
  held_ = end_ = place;
  return {};
}

Status Ring::NameFront() {
  if (!failure_.ok()) return failure_;
  CheckpointBlock next = checkpoint_;
  next.has_front = 1;
  return WriteBothCheckpoints(next);
}

Status Ring::Append(Place from, Parts bytes, uint64_t time_us) {
  if (auto status = Write(from, bytes, time_us); !status.ok()) return status;
  return Flush();
}

Status Ring::Write(Place from, Parts bytes, uint64_t time_us) {
  if (!failure_.ok()) return failure_;
  assert(from == end_);
  uint64_t size = 0;
  for (const auto part : bytes) size += part.size();
  if (size == 0 || size > kRecordBytesMax) {
    return {Code::kInternal, "a record cannot have " + std::to_string(size) + " bytes of a stream"};
  }
  const uint64_t blocks = RecordBlocks(size);
  const auto block = space_.Find(blocks);
  if (!block) {
    return {Code::kResourceExhausted, "the ring of shard " + std::to_string(identity_.shard) +
                                          " has no room for a record of " + std::to_string(size) +
                                          " bytes before the next checkpoint"};
  }
  const auto record = EncodeRecord(identity_, {from, held_, epoch(), time_us, {}}, bytes, buffer_.bytes());
  space_.Take(blocks, {*block, from + size, epoch()});
  if (auto status = disk_->Write(part_.offset + *block * Disk::kBlock, record); !status.ok()) {
    return Fail(std::move(status));
  }
  bytes_written_ += record.size();
  end_ = from + size;
  return {};
}

Status Ring::Flush() {
  if (!failure_.ok()) return failure_;
  if (auto status = disk_->Flush(); !status.ok()) return Fail(std::move(status));
  ++flushes_;
  held_ = end_;
  return {};
}

Status Ring::Checkpoint(Place place) {
  if (!failure_.ok()) return failure_;
  if (place == checkpoint_.place) return {};
  const auto beginning = space_.After(place);
  if (place > held_ || !beginning) {
    return {Code::kInternal, "place " + std::to_string(place) + " is not the end of a record that the ring of shard " +
                                 std::to_string(identity_.shard) + " holds"};
  }
  CheckpointBlock next = checkpoint_;
  next.place = place;
  next.place_epoch = beginning->place_epoch;
  next.first_block = beginning->first_block;
  if (auto status = WriteCheckpoint(next); !status.ok()) return status;
  space_.Free(place);
  return {};
}

uint64_t Ring::Room() const {
  const uint64_t blocks = space_.LongestFree();
  return blocks == 0 ? 0 : RecordRoom(blocks);
}

Status Ring::WriteCheckpoint(CheckpointBlock checkpoint) {
  ++checkpoint.generation;
  if (auto status = WriteCopy(*disk_, part_, checkpoint, buffer_.bytes()); !status.ok()) return Fail(std::move(status));
  bytes_written_ += Disk::kBlock;
  if (auto status = Flush(); !status.ok()) return status;
  checkpoint_ = checkpoint;
  return {};
}

// Damage to one copy must not bring back what was there before: records may be acknowledged because of the new one.
Status Ring::WriteBothCheckpoints(CheckpointBlock checkpoint) {
  for (int copy = 0; copy < 2; ++copy) {
    if (auto status = WriteCheckpoint(checkpoint); !status.ok()) return status;
    checkpoint = checkpoint_;
  }
  return {};
}

Status Ring::Fail(Status status) {
  failure_ = std::move(status);
  return failure_;
}

}  // namespace erda::journal
