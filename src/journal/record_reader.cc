#include "journal/record_reader.h"

#include <algorithm>

namespace erda::journal {

namespace {

// Reads that much at once. Most records are shorter.
constexpr uint64_t kBlocksAhead = 512;
static_assert(kBlocksAhead >= kRecordBlocksMax);

}  // namespace

RecordReader::RecordReader(Disk& disk, const RingPart& part, const RingIdentity& identity)
    : disk_(disk),
      part_(part),
      identity_(identity),
      buffer_(std::min<uint64_t>(kBlocksAhead, part.blocks()) * Disk::kBlock) {}

Result<std::optional<RecordReader::Found>> RecordReader::Next(const RingSpace& space, const Expected& expected) {
  auto found = At(space.next(), space, expected);
  if (!found.ok() || found->has_value() || space.next() == kFirstRecordBlock) return found;
  return At(kFirstRecordBlock, space, expected);
}

Result<std::optional<RecordReader::Found>> RecordReader::At(uint64_t block, const RingSpace& space,
                                                            const Expected& expected) {
  const std::optional<Found> none;
  const auto first = Blocks(block, 1);
  if (!first.ok()) return first.status();
  const auto blocks = ExpectedBlocks(*first, identity_, expected);
  // The writer puts a record of that length elsewhere, or nowhere.
  if (!blocks || space.Find(*blocks) != block) return none;
  const auto whole = Blocks(block, *blocks);
  if (!whole.ok()) return whole.status();
  const auto record = ReadRecord(*whole, identity_, expected);
  if (!record) return none;
  return std::optional(Found{block, *blocks, *record});
}

Result<std::optional<RecordReader::Found>> RecordReader::FindBeyond(Place end, uint64_t epoch) {
  for (uint64_t block = kFirstRecordBlock; block < part_.blocks(); ++block) {
    const auto first = Blocks(block, 1);
    if (!first.ok()) return first.status();
    const auto header = LoadAs<RecordHeader>(*first);
    if (header.held <= end && header.epoch <= epoch) continue;
    const Expected any_epoch{header.place, 0, UINT64_MAX};
    const auto blocks = ExpectedBlocks(*first, identity_, any_epoch);
    if (!blocks || *blocks > part_.blocks() - block) continue;
    const auto whole = Blocks(block, *blocks);
    if (!whole.ok()) return whole.status();
    const auto record = ReadRecord(*whole, identity_, any_epoch);
    if (record) return std::optional(Found{block, *blocks, *record});
  }
  return std::optional<Found>();
}

Result<std::span<const std::byte>> RecordReader::Blocks(uint64_t block, uint64_t blocks) {
  if (block < begin_ || block + blocks > end_) {
    const uint64_t end = std::min(block + kBlocksAhead, part_.blocks());
    begin_ = end_ = 0;
    const auto to = buffer_.bytes().first((end - block) * Disk::kBlock);
    if (auto status = disk_.Read(part_.offset + block * Disk::kBlock, to); !status.ok()) return status;
    begin_ = block;
    end_ = end;
  }
  return std::span<const std::byte>(buffer_.bytes().subspan((block - begin_) * Disk::kBlock, blocks * Disk::kBlock));
}

}  // namespace erda::journal
