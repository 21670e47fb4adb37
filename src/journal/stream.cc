#include "journal/stream.h"

#include <bit>
#include <cassert>
#include <cstring>
#include <string>

#include "base/bytes.h"

namespace erda::journal {

namespace {

Status OfShard(uint32_t shard, Code code, const std::string& what) {
  return {code, "the stream of shard " + std::to_string(shard) + ": " + what};
}

bool HasCapacity(std::span<const std::byte> memory) {
  return memory.size() >= Stream::kHeaderBytes && Stream::IsCapacity(memory.size() - Stream::kHeaderBytes);
}

Status WrongSize(std::span<const std::byte> memory, uint32_t shard) {
  return OfShard(shard, Code::kInvalidArgument,
                 "memory of " + std::to_string(memory.size()) + " bytes has no header and area of " +
                     std::to_string(Stream::kCapacityMin) + " bytes or a larger power of two");
}

}  // namespace

bool Stream::IsCapacity(uint64_t bytes) {
  return std::has_single_bit(bytes) && bytes >= kCapacityMin && bytes <= kCapacityMax;
}

Stream::Stream(std::span<std::byte> memory, uint64_t capacity)
    : header_(reinterpret_cast<StreamHeader*>(memory.data())),
      area_(memory.data() + kHeaderBytes),
      capacity_(capacity) {}

Result<Stream> Stream::Format(std::span<std::byte> memory, const Uuid& uuid, uint32_t shard, Place first,
                              const RingLife& life) {
  if (!HasCapacity(memory)) return WrongSize(memory, shard);
  if (first % kEntryAlignment != 0) {
    return OfShard(shard, Code::kInvalidArgument,
                   "cannot begin at place " + std::to_string(first) + ", between multiples of 16");
  }
  StreamHeader header{};
  header.magic = kStreamMagic;
  header.version = kStreamVersion;
  header.shard = shard;
  header.uuid = uuid;
  header.capacity = memory.size() - kHeaderBytes;
  header.secret = life.secret;
  header.epoch = life.epoch;
  header.end = first;
  header.released = first;
  std::memset(memory.data(), 0, kHeaderBytes);
  std::memcpy(memory.data(), &header, sizeof(header));
  return Stream(memory, header.capacity);
}

Result<Stream> Stream::Open(std::span<std::byte> memory, const Uuid& uuid, uint32_t shard) {
  if (!HasCapacity(memory)) return WrongSize(memory, shard);
  const auto header = LoadAs<StreamHeader>(memory);
  if (header.magic != kStreamMagic) return OfShard(shard, Code::kCorruption, "the memory does not begin as a stream");
  if (header.version != kStreamVersion) {
    return OfShard(shard, Code::kInvalidArgument,
                   "has version " + std::to_string(header.version) + ", and this program knows version " +
                       std::to_string(kStreamVersion));
  }
  if (header.uuid != uuid) return OfShard(shard, Code::kInvalidArgument, "belongs to another pool");
  if (header.shard != shard) {
    return OfShard(shard, Code::kInvalidArgument, "the memory has shard " + std::to_string(header.shard));
  }
  const uint64_t capacity = memory.size() - kHeaderBytes;
  if (header.capacity != capacity) {
    return OfShard(shard, Code::kInvalidArgument,
                   "has an area of " + std::to_string(header.capacity) + " bytes, not the " + std::to_string(capacity) +
                       " of its memory");
  }
  const bool aligned = header.end % kEntryAlignment == 0 && header.released % kEntryAlignment == 0;
  if (!aligned || header.released > header.end || header.end - header.released > capacity) {
    return OfShard(shard, Code::kCorruption,
                   "its places are damaged: it is released up to " + std::to_string(header.released) +
                       ", and ends at " + std::to_string(header.end));
  }
  return Stream(memory, capacity);
}

Stream::Space Stream::Take(uint64_t size) {
  // Only this thread stores the end.
  const Place end = Word(header_->end).load(std::memory_order_relaxed);
  const uint64_t until_end_of_area = capacity_ - InArea(end);
  const uint64_t filler = size <= until_end_of_area ? 0 : until_end_of_area;
  // released() pairs with Release: the disk's thread has read what this thread is about to overwrite.
  if (capacity_ - (end - released()) < filler + size) return {};
  // The end does not count the filler yet. So it counts it together with the entry after it.
  if (filler > 0) WriteFiller(area_ + InArea(end), filler);
  const Place begin = end + filler;
  return {area_ + InArea(begin), begin + size};
}

bool Stream::Append(uint64_t offset, std::span<const std::byte> bytes, bool fenced) {
  const Space space = Take(EntrySpace(bytes.size()));
  if (space.at == nullptr) return false;
  WriteBytes(space.at, offset, bytes, fenced);
  Publish(space.end);
  return true;
}

bool Stream::AppendZeroes(uint64_t offset, uint64_t size, bool fenced) {
  const Space space = Take(kZeroesSpace);
  if (space.at == nullptr) return false;
  WriteZeroes(space.at, offset, size, fenced);
  Publish(space.end);
  return true;
}

std::array<std::span<const std::byte>, 2> Stream::Bytes(Place from, Place to) const {
  assert(from <= to && to - from <= capacity_);
  const std::span<const std::byte> area(area_, capacity_);
  const uint64_t begin = InArea(from);
  const uint64_t first = std::min(to - from, capacity_ - begin);
  return {area.subspan(begin, first), area.first(to - from - first)};
}

Place Stream::Cut(Place from, uint64_t most) const {
  assert(most >= kEntrySpaceMax);
  const Place end = this->end();
  if (end - from <= most) return end;
  Place at = from;
  while (true) {
    const Place next = AfterEntryAt(at);
    if (next - from > most) return at;
    at = next;
  }
}

bool Stream::IsBetweenEntries(Place from, Place place) const {
  Place at = from;
  while (at < place) at = AfterEntryAt(at);
  return at == place;
}

Place Stream::AfterEntryAt(Place place) const {
  return place + EntrySpace(LoadAs<EntryHeader>({area_ + InArea(place), sizeof(EntryHeader)}).size);
}

}  // namespace erda::journal
