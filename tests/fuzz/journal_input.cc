#include "fuzz/journal_input.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/test_hash.h"
#include "format/superblock.h"
#include "fuzz/input.h"
#include "journal/checkpoint_block.h"
#include "journal/entry.h"
#include "journal/image_header.h"
#include "journal/record.h"
#include "journal/ring_file.h"

namespace erda::fuzz {

using journal::Disk;
using journal::RecordHeader;

namespace {

constexpr int kDeleted = 3;  // The key that was deleted.
constexpr int kRounds = 3;   // Of puts.
constexpr uint64_t kPartsOffset = 2 * Disk::kBlock;
constexpr size_t kRecordsMax = 48;  // Known of each shard.

// A pool for changes, and the places of its journal's structures.
struct JournalBase {
  JournalFiles files;
  uint32_t shards = 0;
  uint64_t part_bytes = 0;
  std::vector<uint64_t> records;  // Offsets in the journal. The newest come first.
  struct Entry {
    uint64_t at;  // The offset in the journal.
    uint64_t record;
  };
  std::vector<Entry> entries;

  [[nodiscard]] uint64_t PartOffset(uint64_t shard) const { return kPartsOffset + shard * part_bytes; }
  [[nodiscard]] uint64_t StreamMemory() const {
    return (files.streams.size() - journal::kImageHeaderBytes) / std::max(1U, shards);
  }
};

template <class T>
T LoadIn(const std::vector<std::byte>& bytes, uint64_t at) {
  return LoadAs<T>(std::span(bytes).subspan(at, sizeof(T)));
}

// --- The pools

void Must(const Status& status) {
  if (!status.ok()) std::abort();
}

// Makes an empty pool with a journal. Its uuid and its hash seed are the same each time.
void MakeFiles(const JournalFolder& folder, const format::GeometryWish& wish) {
  format::Superblock superblock{};
  superblock.magic = format::kPoolMagic;
  superblock.format_version = format::kJournaledVersion;
  superblock.uuid = kJournaledUuid;
  superblock.hash_seed = kTestHashSeed;
  superblock.generation = 1;
  superblock.clean = 1;
  superblock.journaled = 1;
  superblock.geometry = format::ChooseGeometry(wish).value();
  superblock.crc = format::SuperblockCrc(superblock);
  std::string bytes(superblock.geometry.pool_size, '\0');
  std::memcpy(bytes.data(), &superblock, sizeof(superblock));
  std::ofstream(folder.pool(), std::ios::binary) << bytes;
  const uint64_t size = kPartsOffset + wish.shards * journal::RingFile::kPartBytesMin;
  Must(journal::JournaledPool::CreateJournal(folder.journal(), superblock, size, {.in_memory = true}));
}

// Has the ring get so much that it begins again at its start twice.
void GoRound(PoolServer* server) {
  nvm::Pool& pool = server->pool();
  nvm::Writer writer(pool.OfShard(0));
  constexpr uint64_t kPiece = 32 << 10;
  for (uint64_t bytes = 0; bytes < 2 * journal::RingFile::kPartBytesMin; bytes += kPiece) {
    writer.Persist(pool.size() / 2, kPiece);
    Must(pool.AwaitHeld());
  }
  Must(pool.Sync());
}

JournalFiles MakePool(JournalPool kind) {
  constexpr format::GeometryWish kOne{229376, 1, 16384, 4096, 128};
  constexpr format::GeometryWish kTwo{98304 + 68 * 4096, 2, 4096, 4096, 256, 30};
  const JournalFolder folder;
  MakeFiles(folder, kind == JournalPool::kShards ? kTwo : kOne);
  auto server = PoolServer::Take(journal::JournaledPool::Open(folder.Options()).value()).value();
  for (int round = 0; round < kRounds; ++round) {
    for (int i = 0; i < kKeys; ++i) {
      const std::string key = KeyAt(i);
      const std::string value = ValueOf(key, round, 40 + static_cast<size_t>(i) * 37);
      if (server->Put(key, value).code != Code::kOk) std::abort();
      Must(server->Hold());
    }
    if (round == 0 && kind == JournalPool::kRound) GoRound(server.get());
    if (round == 0) Must(server->pool().Sync());
  }
  server->Delete(KeyAt(kDeleted));
  Must(server->Hold());
  if (kind == JournalPool::kKilled) {
    // The ring may lack this.
    nvm::Writer writer(server->pool().OfShard(0));
    writer.Persist(server->pool().size() / 2, 1000);
  }
  if (kind == JournalPool::kClosed) server->Close();
  server.reset();
  if (kind != JournalPool::kKilled) folder.Reboot();
  return folder.Read();
}

void FindRecords(JournalBase* base) {
  const auto journal = std::span(std::as_const(base->files.journal));
  for (uint32_t shard = 0; shard < base->shards; ++shard) {
    const uint64_t begin = base->PartOffset(shard);
    std::vector<uint64_t> found;
    for (uint64_t at = begin + 2 * Disk::kBlock; at < begin + base->part_bytes; at += Disk::kBlock) {
      if (LoadAs<uint64_t>(journal.subspan(at)) == journal::kRecordMagic) found.push_back(at);
    }
    std::ranges::sort(found, std::greater(),
                      [&](uint64_t at) { return LoadAs<RecordHeader>(journal.subspan(at)).place; });
    if (found.size() > kRecordsMax) found.resize(kRecordsMax);
    base->records.insert(base->records.end(), found.begin(), found.end());
  }
  for (const uint64_t record : base->records) {
    uint64_t at = record + sizeof(RecordHeader);
    auto rest = journal.subspan(at, LoadAs<RecordHeader>(journal.subspan(record)).bytes);
    while (const auto entry = journal::ParseEntry(rest, base->files.pool.size())) {
      base->entries.push_back({at, record});
      at += entry->space;
      rest = rest.subspan(entry->space);
    }
  }
}

JournalBase MakeJournalBase(JournalPool kind) {
  JournalBase base;
  base.files = MakePool(kind);
  const auto header = LoadIn<journal::RingFileHeader>(base.files.journal, 0);
  base.shards = header.shards;
  base.part_bytes = header.part_bytes;
  FindRecords(&base);
  if (base.entries.empty()) std::abort();
  return base;
}

const JournalBase& JournalBaseAt(uint8_t number) {
  constexpr auto kCount = static_cast<size_t>(JournalPool::kCount);
  static const std::array<JournalBase, kCount> bases = {
      MakeJournalBase(JournalPool::kClosed), MakeJournalBase(JournalPool::kCut), MakeJournalBase(JournalPool::kKilled),
      MakeJournalBase(JournalPool::kRound), MakeJournalBase(JournalPool::kShards)};
  return bases.at(number % kCount);
}

// --- The changes

JournalPlace KindOf(const JournalBase& base, const Change& change) {
  const auto kind = static_cast<JournalPlace>(change.place % kJournalPlaces);
  if (!base.files.streams.empty() || kind < JournalPlace::kImageHeader || kind == JournalPlace::kEnd) return kind;
  constexpr auto kMoved = static_cast<uint8_t>(JournalPlace::kImageHeader) - 1;
  return static_cast<JournalPlace>(static_cast<uint8_t>(kind) - kMoved);
}

struct Word {
  std::vector<std::byte>* file;
  uint64_t at;         // Of the word.
  uint64_t structure;  // Where the checksummed structure begins.
};

Word WordOf(const JournalBase& base, const Change& change, JournalPlace kind, JournalFiles* files) {
  const uint64_t word = change.index & 0xff;  // The word in the structure.
  const uint64_t which = change.index >> 8;
  const auto in = [&](std::vector<std::byte>& file, uint64_t begin, uint64_t bytes) {
    return Word{&file, begin + word * 8 % bytes, begin};
  };
  switch (kind) {
    case JournalPlace::kHeader:
      return in(files->journal, which % 2 * Disk::kBlock, sizeof(journal::RingFileHeader));
    case JournalPlace::kCheckpoint:
      return in(files->journal, base.PartOffset(which / 2 % base.shards) + which % 2 * Disk::kBlock,
                sizeof(journal::CheckpointBlock));
    case JournalPlace::kRecordHeader:
      return in(files->journal, base.records[which % base.records.size()], sizeof(RecordHeader));
    case JournalPlace::kEntry: {
      const JournalBase::Entry& entry = base.entries[which % base.entries.size()];
      return {&files->journal, entry.at + word % 3 * 8, entry.record};
    }
    case JournalPlace::kRecordBytes: {
      const uint64_t record = base.records[which % base.records.size()];
      const uint64_t words = LoadIn<RecordHeader>(base.files.journal, record).bytes / 8;
      return {&files->journal, record + sizeof(RecordHeader) + (change.index ^ change.value) % words * 8, record};
    }
    case JournalPlace::kSuperblock:
      return in(files->pool, format::kSuperblockOffsets[which % 2], sizeof(format::Superblock));
    case JournalPlace::kImageHeader:
      return in(files->streams, 0, sizeof(journal::ImageHeader));
    case JournalPlace::kStreamHeader:
      return in(files->streams, journal::kImageHeaderBytes + which % base.shards * base.StreamMemory(),
                sizeof(journal::StreamHeader));
    case JournalPlace::kStream:
      return {&files->streams, journal::kImageHeaderBytes + journal::Stream::kHeaderBytes + change.index % 4096 * 8, 0};
    case JournalPlace::kPoolFile:
      return {&files->pool, change.index % (files->pool.size() / 8) * 8, 0};
    case JournalPlace::kImage:
      return {&files->image, change.index % (files->image.size() / 8) * 8, 0};
    default:
      return {&files->journal, change.index % (files->journal.size() / 8) * 8, 0};
  }
}

uint64_t ChangedWord(const Change& change, const std::vector<std::byte>& file, uint64_t old) {
  const unsigned kind = (change.operation & 0x7f) % 7;
  if (const auto plain = PlainlyChanged(kind, change.value, old)) return *plain;
  switch (kind) {
    case 4:
      return LoadIn<uint64_t>(file, change.value % (file.size() / 8) * 8);
    case 5:  // A small number in the low half.
      return (old & 0xffffffff00000000) | (change.value & 0xffff);
    default:
      return (old & 0xffffffff) | (change.value << 32);
  }
}

// Corrects the checksum of the structure, so that the change gets past the check.
void CorrectChecksum(JournalPlace kind, const Word& place) {
  const auto at = std::span(*place.file).subspan(place.structure);
  const auto store = [&](const auto& header) { std::memcpy(at.data(), &header, sizeof(header)); };
  switch (kind) {
    case JournalPlace::kHeader: {
      auto header = LoadAs<journal::RingFileHeader>(at);
      header.crc = journal::RingFileCrc(header);
      return store(header);
    }
    case JournalPlace::kCheckpoint:
      return journal::EncodeCheckpoint(LoadAs<journal::CheckpointBlock>(at), at.first(Disk::kBlock));
    case JournalPlace::kRecordHeader:
    case JournalPlace::kEntry:
    case JournalPlace::kRecordBytes: {
      auto header = LoadAs<RecordHeader>(at);
      if (header.bytes > at.size() - sizeof(header)) return;
      header.crc = 0;
      header.crc = Crc32c(Crc32c(0, BytesOf(header)), at.subspan(sizeof(header), header.bytes));
      return store(header);
    }
    case JournalPlace::kSuperblock: {
      auto superblock = LoadAs<format::Superblock>(at);
      superblock.crc = format::SuperblockCrc(superblock);
      return store(superblock);
    }
    case JournalPlace::kImageHeader: {
      auto header = LoadAs<journal::ImageHeader>(at);
      header.crc = journal::ImageHeaderCrc(header);
      return store(header);
    }
    default:
      return;
  }
}

}  // namespace

std::string JournaledValueOf(int key) {
  if (key == kDeleted || key >= kKeys) return {};
  return ValueOf(KeyAt(key), kRounds - 1, 40 + static_cast<size_t>(key) * 37);
}

constexpr uint64_t kNearEnd = (uint64_t{1} << 63) - (uint64_t{1} << 40);

JournalInput DecodeJournal(std::span<const uint8_t> bytes) {
  JournalInput input;
  const JournalBase& base = JournalBaseAt(bytes.empty() ? 0 : bytes[0]);
  input.files = base.files;
  if (bytes.size() < kInputHeaderBytes) return input;
  input.todo = bytes[1];
  bytes = bytes.subspan(kInputHeaderBytes);
  std::array<uint64_t, 2> ends = {input.files.journal.size(), input.files.pool.size()};
  for (size_t i = 0; i < kChangesMax && bytes.size() >= kChangeBytes; ++i, bytes = bytes.subspan(kChangeBytes)) {
    const auto change = LoadAs<Change>(std::as_bytes(bytes));
    ++input.changes;
    const JournalPlace kind = KindOf(base, change);
    if (kind == JournalPlace::kEnd) {
      ends.at(change.index % 2) = change.value % (ends.at(change.index % 2) + 1);
      continue;
    }
    const Word place = WordOf(base, change, kind, &input.files);
    const uint64_t word = ChangedWord(change, *place.file, LoadIn<uint64_t>(*place.file, place.at));
    std::memcpy(place.file->data() + place.at, &word, sizeof(word));
    const bool corrects = (change.operation & 0x80) != 0;
    if (corrects) CorrectChecksum(kind, place);
    const bool in_record =
        kind == JournalPlace::kRecordHeader || kind == JournalPlace::kEntry || kind == JournalPlace::kRecordBytes;
    const bool in_stream = kind == JournalPlace::kStreamHeader || kind == JournalPlace::kStream;
    input.hidden |= in_stream || (in_record && corrects);
    input.near_end |= word >= kNearEnd;
  }
  input.files.journal.resize(ends[0]);
  input.files.pool.resize(ends[1]);
  return input;
}

}  // namespace erda::fuzz
