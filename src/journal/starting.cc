#include "journal/starting.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/file_io.h"
#include "base/server_time.h"
#include "journal/apply.h"
#include "journal/stream.h"
#include "nvm/pool_file.h"

namespace erda::journal {

namespace {

// The most memory that one shard's stream gets.
constexpr uint64_t kStreamMemoryMax = 64 << 20;

// A stream's memory is not more than half of its ring. A checkpoint is due when one of the two is half full.
uint64_t StreamCapacity(const RingFileHeader& header) {
  return std::min(std::bit_floor(header.part_bytes / 2), kStreamMemoryMax);
}

}  // namespace

ImageShape Starting::Shape() const {
  const format::Geometry& geometry = parts_.superblock.geometry;
  return {parts_.superblock.uuid, geometry.pool_size, geometry.shards, StreamCapacity(parts_.rings.header()),
          parts_.options.memory};
}

Result<Starting::Started> Starting::Run() {
  auto started = FindImage();
  return started.status().code() == Code::kNotFound ? MakeImage() : std::move(started);
}

// --- With the image of an earlier process

Result<Starting::Started> Starting::FindImage() {
  // Then the file has all of the pool. Its server was killed before it could remove the image, or never served.
  if (parts_.clean) {
    Status status = Image::Remove(parts_.options.memory, parts_.superblock.uuid);
    return status.ok() ? Status(Code::kNotFound) : status;
  }
  auto image = Image::Open(Shape());
  if (!image.ok()) return image.status();
  // An earlier process may have died before a superblock was on the disk. The next mark relies on the older copy.
  if (auto status = parts_.file.Sync(); !status.ok()) return status;
  auto rings = OpenRings([this](uint32_t shard, const Record& record) {
    if (parts_.archiver != nullptr) parts_.archiver->Note(shard, record);
    return Status();
  });
  if (!rings.ok()) return rings.status();
  if (auto status = TakeFront(*rings); !status.ok()) return status;
  const auto older = IsOlder(**image, *rings);
  if (!older.ok()) return older.status();
  // A server that ran since, with another folder for its image, has begun an epoch. All that was acknowledged is on the
  // disk, so this image is not needed.
  if (*older) {
    Status status = (*image)->Remove();
    return status.ok() ? Status(Code::kNotFound) : status;
  }
  if (auto status = NameFront(&*rings); !status.ok()) return status;
  if (auto status = BeginArchive(*rings, nullptr); !status.ok()) return status;
  return Started{*std::move(image), *std::move(rings), {.had_image = true}};
}

Result<bool> Starting::IsOlder(Image& image, const std::vector<Ring>& rings) {
  const Secret& secret = parts_.rings.header().secret;
  bool older = false;
  for (uint32_t shard = 0; shard < rings.size(); ++shard) {
    const Ring& ring = rings[shard];
    if (ring.has_front()) {
      if (auto status = parts_.front->CheckEpoch(shard, ring.epoch()); !status.ok()) return status;
    }
    const auto stream = Stream::Open(image.StreamMemory(shard), parts_.superblock.uuid, shard);
    if (!stream.ok()) return stream.status();
    const RingLife life = stream->life();
    const bool fits = life == RingLife{secret, ring.epoch()} && stream->released() <= ring.checkpoint() &&
                      ring.end() <= stream->end() &&
                      (!ring.has_front() || parts_.front->part(shard).end() <= stream->end());
    older |= life.secret == secret && life.epoch < ring.epoch();
    if (!fits && !older) {
      return Status(Code::kInvalidArgument,
                    "the image of pool " + parts_.options.pool + " in " + parts_.options.memory +
                        " is of another journal than " + parts_.options.journal +
                        ", or of a later state of it. If that is meant, remove the two files of the image; then the "
                        "server goes on with what the disk has");
    }
  }
  return older;
}

// --- Without

// The file first. Then the checkpoints say that the rings have nothing more. After a power cut meanwhile, the next
// start does the same again (J1).
Result<Starting::Started> Starting::MakeImage() {
  const uint64_t size = parts_.superblock.geometry.pool_size;
  const int fd = parts_.file.fd();
  JournalStart how;
  const Visit apply = [&](uint32_t shard, const Record& record) {
    how.bytes_applied += record.bytes.size();
    if (auto status = ApplyToFile(record.bytes, fd, size); !status.ok()) return status;
    if (parts_.archiver != nullptr) parts_.archiver->Store(shard, record);
    return Status();
  };
  auto rings = OpenRings(apply);
  if (!rings.ok()) return rings.status();
  for (const Ring& ring : *rings) {
    if (auto status = ring.CheckEnd(); !status.ok()) return InJournal(status);
  }
  if (auto status = TakeFront(*rings); !status.ok()) return status;
  std::vector<Place> ends;
  for (uint32_t shard = 0; shard < rings->size(); ++shard) {
    const auto end = VisitFront((*rings)[shard], shard, apply);
    if (!end.ok()) return end.status();
    ends.push_back(*end);
  }
  if (auto status = parts_.file.Sync(); !status.ok()) return status;
  // Before the checkpoints below: after them only the archive has these records.
  if (auto status = BeginArchive(*rings, &ends); !status.ok()) return status;
  auto image = Image::Create(Shape());
  if (!image.ok()) return image.status();
  const std::span<std::byte> bytes = (*image)->pool().view().bytes;
  if (auto status = ReadRange(fd, "pool " + parts_.options.pool, 0, bytes); !status.ok()) return status;
  for (uint32_t shard = 0; shard < rings->size(); ++shard) {
    Ring& ring = (*rings)[shard];
    if (auto status = ring.Checkpoint(ring.end()); !status.ok()) return status;
    if (auto status = ring.BeginEpoch(ends[shard]); !status.ok()) return status;
    const auto stream = Stream::Format((*image)->StreamMemory(shard), parts_.superblock.uuid, shard, ring.end(),
                                       {parts_.rings.header().secret, ring.epoch()});
    if (!stream.ok()) return stream.status();
  }
  if (auto status = NameFront(&*rings); !status.ok()) return status;
  (*image)->MarkReady();
  return Started{*std::move(image), *std::move(rings), how};
}

// --- Rings, front and archive

Result<std::vector<Ring>> Starting::OpenRings(const Visit& visit) {
  std::vector<Ring> rings;
  for (uint32_t shard = 0; shard < parts_.superblock.geometry.shards; ++shard) {
    auto ring = Ring::Open(parts_.rings.disk(), parts_.rings.part(shard), parts_.rings.identity(shard),
                           [&visit, shard](const Record& record) { return visit(shard, record); });
    if (!ring.ok()) return InJournal(ring.status());
    rings.push_back(*std::move(ring));
  }
  return rings;
}

// A pool that was closed cleanly needs no front. It may have been made blank since.
Status Starting::TakeFront(const std::vector<Ring>& rings) {
  const bool needed = !parts_.clean && std::ranges::any_of(rings, &Ring::has_front);
  if (parts_.front != nullptr) return parts_.front->Take(parts_.rings.identities(), needed);
  if (!needed) return {};
  return nvm::InPath(parts_.options.pool, Code::kInvalidArgument,
                     "has a front, a small NVM that may have its newest bytes; name it, or the server would lose them");
}

// First each part is made for the ring's epoch. Then the ring names it, before it holds anything that the disk does
// not.
Status Starting::NameFront(std::vector<Ring>* rings) {
  if (parts_.front == nullptr) return {};
  for (uint32_t shard = 0; shard < rings->size(); ++shard) {
    Ring& ring = (*rings)[shard];
    if (ring.has_front()) continue;
    parts_.front->Format(parts_.rings.identity(shard), ring.epoch(), ring.end());
    if (auto status = ring.NameFront(); !status.ok()) return status;
  }
  return {};
}

Result<Place> Starting::VisitFront(const Ring& ring, uint32_t shard, const Visit& visit) {
  if (parts_.front == nullptr || parts_.clean || !ring.has_front()) return ring.end();
  const auto found = parts_.front->AfterRing(shard, ring.epoch(), ring.end());
  if (!found.ok()) return InJournal(found.status());
  Place at = ring.end();
  for (std::span<const std::byte> bytes = *found; !bytes.empty();) {
    const uint64_t size = WholeEntries(bytes, kRecordBytesMax);
    if (size == 0) {
      return InJournal({Code::kCorruption, "the front has no whole entry at place " + std::to_string(at)});
    }
    // Nobody knows when the bytes came: after the last record, and before now.
    const Record record{at, ring.end(), ring.epoch(), ServerTime::WallMicros(), bytes.first(size)};
    if (auto status = visit(shard, record); !status.ok()) return status;
    bytes = bytes.subspan(size);
    at += size;
  }
  return at;
}

Status Starting::BeginArchive(const std::vector<Ring>& rings, const std::vector<Place>* ends) {
  if (parts_.archiver == nullptr) return {};
  for (uint32_t shard = 0; shard < rings.size(); ++shard) {
    const Place end = ends == nullptr ? rings[shard].end() : (*ends)[shard];
    Status status = parts_.archiver->Begin(shard, rings[shard].checkpoint(), end, ends != nullptr);
    if (!status.ok()) return status;
  }
  return {};
}

}  // namespace erda::journal
