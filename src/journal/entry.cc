#include "journal/entry.h"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace erda::journal {

namespace {

void WriteHeader(std::byte* to, uint64_t offset, uint64_t size, EntryKind kind, bool fenced = false) {
  const EntryHeader header{offset, static_cast<uint32_t>(size), kind, uint16_t{fenced}};
  std::memcpy(to, &header, sizeof(header));
}

bool LiesIn(uint64_t offset, uint64_t size, uint64_t pool_size) {
  return size > 0 && offset <= pool_size && size <= pool_size - offset;
}

}  // namespace

void WriteBytes(std::byte* to, uint64_t offset, std::span<const std::byte> bytes, bool fenced) {
  assert(!bytes.empty() && bytes.size() <= kEntryBytesMax);
  WriteHeader(to, offset, bytes.size(), EntryKind::kBytes, fenced);
  std::memcpy(to + sizeof(EntryHeader), bytes.data(), bytes.size());
  const uint64_t end = sizeof(EntryHeader) + bytes.size();
  std::memset(to + end, 0, EntrySpace(bytes.size()) - end);
}

void WriteZeroes(std::byte* to, uint64_t offset, uint64_t size, bool fenced) {
  assert(size > 0);
  WriteHeader(to, offset, sizeof(size), EntryKind::kZeroes, fenced);
  const uint64_t words[] = {size, 0};
  static_assert(sizeof(EntryHeader) + sizeof(words) == kZeroesSpace);
  std::memcpy(to + sizeof(EntryHeader), words, sizeof(words));
}

void WriteFiller(std::byte* to, uint64_t space) {
  assert(space >= sizeof(EntryHeader) && space % kEntryAlignment == 0 && space <= kEntrySpaceMax);
  WriteHeader(to, 0, space - sizeof(EntryHeader), EntryKind::kFiller);
  // Old entries would go to the disk a second time, and an archive could compress them less well.
  std::memset(to + sizeof(EntryHeader), 0, space - sizeof(EntryHeader));
}

uint64_t WholeEntries(std::span<const std::byte> stream, uint64_t most) {
  const uint64_t end = std::min(most, stream.size());
  uint64_t at = 0;
  while (end - at >= sizeof(EntryHeader)) {
    const uint64_t space = EntrySpace(LoadAs<EntryHeader>(stream.subspan(at)).size);
    if (space > end - at) break;
    at += space;
  }
  return at;
}

std::optional<Entry> ParseEntry(std::span<const std::byte> stream, uint64_t pool_size) {
  if (stream.size() < sizeof(EntryHeader)) return std::nullopt;
  const auto header = LoadAs<EntryHeader>(stream);
  Entry entry{header.kind, header.offset, header.size, {}, EntrySpace(header.size), header.fence == 1};
  if (header.size > kEntryBytesMax || entry.space > stream.size() || header.fence > 1) return std::nullopt;
  const auto bytes = stream.subspan(sizeof(EntryHeader), header.size);
  if (header.kind == EntryKind::kFiller) {
    if (header.offset != 0 || header.size % kEntryAlignment != 0 || entry.fenced) return std::nullopt;
    entry.size = 0;
    return entry;
  }
  if (header.kind == EntryKind::kBytes) {
    entry.bytes = bytes;
  } else if (header.kind == EntryKind::kZeroes && header.size == sizeof(uint64_t)) {
    entry.size = LoadAs<uint64_t>(bytes);
  } else {
    return std::nullopt;
  }
  const auto padding = stream.first(entry.space).subspan(sizeof(EntryHeader) + header.size);
  const bool padded = std::ranges::all_of(padding, [](std::byte byte) { return byte == std::byte{0}; });
  if (!padded || !LiesIn(entry.offset, entry.size, pool_size)) return std::nullopt;
  return entry;
}

}  // namespace erda::journal
