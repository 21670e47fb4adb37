#include "fuzz/input.h"

#include <array>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/bytes.h"
#include "base/test_hash.h"
#include "format/log_layout.h"
#include "format/pool_index.h"
#include "format/superblock.h"

namespace erda::fuzz {

using format::EntryWord;
using format::Geometry;
using format::LogAddress;

namespace {

struct Crash {};

struct Object {
  uint64_t offset = 0;
  format::Place place{};
};

// A pool for changes, and the places of its structures.
struct Base {
  Image image;
  Geometry geometry{};
  std::vector<Object> objects;
  std::vector<uint64_t> entries;   // offsets of the used entries
  std::vector<uint64_t> segments;  // offsets of all segments in linked regions
};

Image NewPool(const format::GeometryWish& wish, uint64_t grown_to) {
  Geometry geometry = format::ChooseGeometry(wish).value();
  if (grown_to != 0) geometry = format::GrownGeometry(geometry, grown_to).value();
  Image image(geometry.pool_size / sizeof(uint64_t));
  format::Superblock superblock{};
  superblock.magic = format::kPoolMagic;
  superblock.format_version = format::kFormatVersion;
  superblock.uuid = {7, 7, 7};
  superblock.hash_seed = kTestHashSeed;
  superblock.generation = 1;
  superblock.clean = 1;
  superblock.geometry = geometry;
  superblock.crc = format::SuperblockCrc(superblock);
  std::memcpy(image.data(), &superblock, sizeof(superblock));
  return image;
}

void PutAll(PoolServer* server, int rounds) {
  for (int round = 0; round < rounds; ++round) {
    for (int i = 0; i < kKeys; ++i) {
      const std::string key = KeyAt(i);
      if (server->Put(key, ValueOf(key, round, 40 + static_cast<size_t>(i) * 37)).code != Code::kOk) std::abort();
    }
  }
  server->Delete(KeyAt(3));
}

// Leaves puts that ended in every way, and a delete that is cut off.
void LeaveInFlight(PoolServer* server) {
  const auto reserve = [server](int number, size_t landed) {
    const std::string key = KeyAt(number);
    const std::string value = ValueOf(key, 9, 100);
    server->Land(server->Reserve(key, value, 1), value, landed);
  };
  reserve(0, 0);
  reserve(1, 50);
  reserve(1, SIZE_MAX);
  reserve(1, 3);
  reserve(2, SIZE_MAX);
  reserve(3, SIZE_MAX);
  int fences = 2;
  server->memory().before_fence = [&] {
    if (--fences == 0) throw Crash();
  };
  try {
    server->Delete(KeyAt(4));
  } catch (const Crash&) {
  }
  server->memory().before_fence = nullptr;
}

// Puts so much that some objects are in the second layer of the head slots.
void FillALayer(PoolServer* server) {
  for (int i = 0; i < 130; ++i) {
    const std::string key = "filler" + std::to_string(i);
    if (server->Put(key, ValueOf(key, 0, 2000)).code != Code::kOk) std::abort();
  }
}

// Leaves an index that was cut off in the middle of a move.
void LeaveMoving(PoolServer* server) {
  server->memory().before_fence = [server] {
    if (server->Moving(0)) throw Crash();
  };
  try {
    for (int i = 0; i < 128; ++i) server->Put("filler" + std::to_string(i), "x");
  } catch (const Crash&) {
  }
  server->memory().before_fence = nullptr;
}

// Leaves an index that has grown, and that was cut off in the middle of a split.
void LeaveSplitting(PoolServer* server) {
  const auto blocks = [server] {
    return LoadAs<format::ShardRecord>(server->memory().bytes().subspan(format::ShardRecordOffset(0))).blocks;
  };
  server->memory().before_fence = [&, before = blocks()]() mutable {
    if (std::exchange(before, blocks()) != before && format::CheckedWord(before).number() == 6) throw Crash();
  };
  try {
    for (int i = 0; i < 1000; ++i) server->Put("filler" + std::to_string(i), "x");
    std::abort();
  } catch (const Crash&) {
  }
  server->memory().before_fence = nullptr;
}

void Map(Base* base) {
  const auto bytes = std::as_bytes(std::span(base->image));
  const format::Superblock superblock = format::FindSuperblock(bytes).value().superblock;
  base->geometry = superblock.geometry;
  const Geometry& g = base->geometry;
  for (uint32_t region = 0; region < g.regions(); ++region) {
    const format::RegionWord word(LoadAs<uint64_t>(bytes.subspan(format::kRegionTableOffset + region * 8, 8)));
    if (!word.linked()) continue;
    for (uint64_t segment = 0; segment < g.segments_per_region(); ++segment) {
      const uint64_t begin = g.RegionOffset(region) + segment * g.segment_size;
      base->segments.push_back(begin);
      uint64_t at = format::FirstObjectOffset(segment);
      if (segment == 0) at = format::kTombstoneSlotOffset;  // begins with the tombstone slot
      while (at < g.segment_size) {
        const auto address = g.AddressOf(word.SlotIn(g), segment * g.segment_size + at);
        const format::Place place{format::PoolSeed(superblock.uuid), word.HeadIn(g), address, word.generation()};
        const auto view = format::InspectHeader(place, bytes.subspan(begin + at, g.segment_size - at));
        const bool tombstone_slot = segment == 0 && at == format::kTombstoneSlotOffset;
        if (view.state == format::ObjectState::kNothing && !tombstone_slot) break;
        if (view.state != format::ObjectState::kNothing) base->objects.push_back({begin + at, place});
        at = tombstone_slot ? format::FirstObjectOffset(0) : at + SpaceOf(view.header);
      }
    }
  }
  for (uint32_t shard = 0; shard < g.shards; ++shard) {
    const format::PoolIndex index(bytes, g, shard);
    for (uint64_t slot = 0; slot < index.slots(); ++slot) {
      if (index.At(slot).word != 0) base->entries.push_back(index.OffsetOf(slot));
    }
  }
}

Base MakeBase(uint32_t number) {
  // Pools 0 to 2 have one head, and regions of four segments. Pool 3 has two shards with two heads each, of the
  // smallest regions. Pools 4 and 5 have one shard of the smallest regions, and pool 5 was grown.
  constexpr format::GeometryWish kOne{229376, 1, 16384, 4096, 128};
  constexpr format::GeometryWish kTwo{98304 + 68 * 4096, 2, 4096, 4096, 256, 30};
  constexpr format::GeometryWish kGrowing{98304 + 40 * 4096, 1, 4096, 4096, 128};
  const format::GeometryWish& wish = number == 3 ? kTwo : number >= 4 ? kGrowing : kOne;
  auto server = PoolServer::Open(NewPool(wish, number == 5 ? 98304 + 150 * 4096 : 0)).value();
  if (number == 5) FillALayer(server.get());
  PutAll(server.get(), number == 2 || number >= 4 ? 1 : 3);
  if (number == 0) server->Close();
  if (number == 1 || number == 3 || number == 5) LeaveInFlight(server.get());
  if (number == 2) LeaveMoving(server.get());
  if (number == 4) LeaveSplitting(server.get());
  Base base;
  base.image = server->image();
  Map(&base);
  return base;
}

const Base& BaseAt(uint32_t number) {
  static const std::array<Base, kPools> bases = {MakeBase(0), MakeBase(1), MakeBase(2),
                                                 MakeBase(3), MakeBase(4), MakeBase(5)};
  // The corpus was made when there were five pools.
  constexpr uint32_t kGrown = kPools - 1;
  return bases.at(number >= 240 ? kGrown : number < kPools ? number : number % kGrown);
}

// Returns the offset of the word that the change changes.
uint64_t PlaceOf(const Base& base, const Change& change) {
  const Geometry& g = base.geometry;
  const uint64_t word = change.index & 0xff;  // the word in the structure
  const uint64_t which = change.index >> 8;
  switch (change.place % kPlaces) {
    case 0:
      // The corpus was made when a change reached 16 words.
      return format::kSuperblockOffsets[which % 2] + (word >= 240 ? 16 + word % 8 : word % 16) * 8;
    case 1:
      return format::kShardRecordsOffset + which % g.shards * sizeof(format::ShardRecord) + word % 5 * 8;
    case 2:
      return format::kRegionTableOffset + which % g.regions() * 8;
    case 3:
      return g.index_offset + change.index % (g.shards * g.index_slots * 2) * 8;
    case 4:
      return base.entries[which % base.entries.size()] + word % 2 * 8;
    case 5:
      return base.segments[which % base.segments.size()] + word % 4 * 8;
    case 6:
      return base.objects[which % base.objects.size()].offset + word % 8 * 8;
    default:
      return change.index % (g.pool_size / 8) * 8;
  }
}

uint64_t Changed(const Base& base, const Change& change, const Image& image, uint64_t old) {
  const auto object = [&](uint64_t number) { return base.objects[number % base.objects.size()].place.address; };
  const unsigned kind = (change.operation & 0x7f) % 10;
  if (const auto plain = PlainlyChanged(kind, change.value, old)) return *plain;
  switch (kind) {
    case 4:
      return image[change.value % image.size()];
    case 5:  // the word of an entry
      return EntryWord::Make((change.value & 1) != 0, object(change.value >> 2), object(change.value >> 32),
                             (change.value & 2) != 0)
          .raw();
    case 6:  // a small number in the low half
      return (old & 0xffffffff00000000) | (change.value & 0xffff);
    case 7:  // a number of blocks, or another time
      return format::CheckedWord::Of(change.value & 0xff).raw();
    case 8:  // a region word of the index
      return format::RegionWord::OfIndex(static_cast<uint32_t>(old >> 32), static_cast<uint32_t>(change.value & 7))
          .raw();
    default:
      return (old & 0xffffffff) | (change.value << 32);
  }
}

// Corrects the checksum of a changed superblock or object, so that the change gets past the check.
void FixChecksums(const Base& base, const Change& change, Input* input) {
  const auto bytes = std::as_writable_bytes(std::span(input->image));
  if (change.place % kPlaces == 0) {
    const auto at = bytes.subspan(format::kSuperblockOffsets[(change.index >> 8) % 2]);
    auto superblock = LoadAs<format::Superblock>(at);
    superblock.crc = format::SuperblockCrc(superblock);
    std::memcpy(at.data(), &superblock, sizeof(superblock));
  }
  if (change.place % kPlaces == 6) {
    const Object& object = base.objects[(change.index >> 8) % base.objects.size()];
    const auto at = bytes.subspan(object.offset);
    auto header = LoadAs<format::ObjectHeader>(at);
    if (at.size() < format::ObjectBytes(header.label_size(), header.value_size)) return;
    const auto key = AsString(at.subspan(header.key_offset(), header.key_size));
    header.header_crc =
        format::HeaderCrc(object.place, header, key, LoadAs<uint64_t>(at.subspan(format::kLabelOffset)));
    std::memcpy(at.data(), &header, sizeof(header));
    const auto value = at.subspan(format::ValueOffset(header.label_size()), header.value_size);
    const uint32_t checksum = format::ObjectChecksum(header, value);
    std::memcpy(at.data() + format::ChecksumOffset(header.label_size()), &checksum, sizeof(checksum));
    input->forged = true;
  }
}

}  // namespace

std::string KeyAt(int number) { return "key" + std::to_string(number); }

std::string ValueOf(const std::string& key, int version, size_t size) {
  std::string value = key + "#" + std::to_string(version) + "#";
  value.resize(std::max(size, value.size()), '.');
  return value;
}

Input Decode(std::span<const uint8_t> bytes) {
  Input input;
  const Base& base = BaseAt(bytes.empty() ? 0 : bytes[0]);
  input.image = base.image;
  if (bytes.size() < kInputHeaderBytes) return input;
  input.todo = bytes[1];
  bytes = bytes.subspan(kInputHeaderBytes);
  for (size_t i = 0; i < kChangesMax && bytes.size() >= kChangeBytes; ++i, bytes = bytes.subspan(kChangeBytes)) {
    const auto change = LoadAs<Change>(std::as_bytes(bytes));
    ++input.changes;
    uint64_t& word = input.image[PlaceOf(base, change) / sizeof(uint64_t)];
    word = Changed(base, change, input.image, word);
    if ((change.operation & 0x80) != 0) FixChecksums(base, change, &input);
  }
  const auto table =
      std::span(input.image).subspan(format::kRegionTableOffset / sizeof(uint64_t), base.geometry.regions());
  input.other_table =
      !std::equal(table.begin(), table.end(), base.image.begin() + format::kRegionTableOffset / sizeof(uint64_t));
  return input;
}

std::optional<uint64_t> PlainlyChanged(unsigned kind, uint64_t value, uint64_t old) {
  switch (kind) {
    case 0:
      return value;
    case 1:
      return old ^ (uint64_t{1} << value % 64);
    case 2:
      return old + static_cast<uint64_t>(static_cast<int8_t>(value));
    case 3:
      return 0;
    default:
      return {};
  }
}

void Mutate(std::string* input, Random* random, uint8_t places) {
  if (input->size() < kInputHeaderBytes) input->resize(kInputHeaderBytes);
  size_t changes = (input->size() - kInputHeaderBytes) / kChangeBytes;
  input->resize(kInputHeaderBytes + changes * kChangeBytes);
  const auto at = [&](size_t number) { return kInputHeaderBytes + number * kChangeBytes; };
  const uint64_t dice = random->Uniform(10);
  if (dice == 0) {
    (*input)[random->Uniform(2)] = static_cast<char>(random->Next());
  } else if (dice == 1 && changes > 0) {
    input->erase(at(random->Uniform(changes)), kChangeBytes);
  } else if (dice < 7 && changes < kChangesMax) {
    Change change{};
    change.place = static_cast<uint8_t>(random->Uniform(places));
    change.operation = static_cast<uint8_t>(random->Uniform(8) | (random->Chance(0.5) ? 0x80 : 0));
    change.index = static_cast<uint32_t>(random->Next());
    change.value = random->Chance(0.5) ? random->Next() : random->Uniform(300);
    input->append(reinterpret_cast<const char*>(&change), sizeof(change));
  } else if (changes > 0) {
    char& byte = (*input)[at(random->Uniform(changes)) + random->Uniform(kChangeBytes)];
    byte = static_cast<char>(random->Chance(0.5) ? random->Next() : static_cast<uint64_t>(byte) + 1);
  }
}

}  // namespace erda::fuzz
