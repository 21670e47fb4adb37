#include "journal/base_copy.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/file_io.h"
#include "base/server_time.h"
#include "format/superblock.h"
#include "journal/disk.h"
#include "journal/new_file.h"
#include "journal/ring_view.h"
#include "nvm/pool_file.h"

namespace erda::journal {

namespace {

constexpr uint64_t kCopyPiece = 1 << 20;
constexpr uint64_t kFrontBytes = format::kShardRecordsOffset;
constexpr int kSuperblockTries = 100;

Status InBase(const std::string& path, Code code, const std::string& what) {
  return {code, "base copy " + path + ": " + what};
}

uint64_t HeaderBytes(uint64_t shards) { return AlignUp(sizeof(BaseHeader) + shards * sizeof(BaseEnds), Disk::kBlock); }

// Copies a range of bytes, piece by piece, and returns their CRC32C. Pieces of zeroes are left out.
Result<uint32_t> CopyRange(int from, const std::string& from_name, uint64_t from_offset, int to,
                           const std::string& to_name, uint64_t to_offset, uint64_t size) {
  std::vector<std::byte> buffer(std::min(kCopyPiece, size));
  uint32_t crc = 0;
  for (uint64_t at = 0; at < size; at += kCopyPiece) {
    const auto piece = std::span(buffer).first(std::min(kCopyPiece, size - at));
    if (auto status = ReadRange(from, from_name, from_offset + at, piece); !status.ok()) return status;
    crc = Crc32c(crc, piece);
    if (IsZero(piece)) continue;
    if (auto status = WriteRange(to, to_name, to_offset + at, piece); !status.ok()) return status;
  }
  return crc;
}

// Returns the superblock that counts. A server may be writing one copy after the other.
Result<format::Superblock> ReadCountingSuperblock(const std::string& path, int fd, uint64_t size) {
  std::vector<std::byte> front(std::min(size, kFrontBytes));
  for (int i = 1;; ++i) {
    if (auto status = ReadRange(fd, "pool " + path, 0, front); !status.ok()) return status;
    const auto found = format::FindSuperblock(front, size);
    if (found.ok()) return found->superblock;
    if (i == kSuperblockTries) return nvm::InPath(path, found.status().code(), std::string(found.status().message()));
  }
}

struct OpenPool {
  UniqueFd fd;
  UniqueFd lock;  // If no server has the pool.
  format::Superblock superblock;
};

Result<OpenPool> OpenPoolFile(const std::string& path) {
  OpenPool pool;
  // Without a server the lock keeps one from starting meanwhile.
  bool created = false;
  auto lock = nvm::OpenLocked(path, 0, &created);
  if (!lock.ok() && lock.status().code() != Code::kUnavailable) return lock.status();
  if (lock.ok()) pool.lock = *std::move(lock);
  pool.fd = UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat info {};
  if (!pool.fd || ::fstat(pool.fd.get(), &info) != 0) return ErrnoStatus("cannot open pool " + path);
  auto superblock = ReadCountingSuperblock(path, pool.fd.get(), static_cast<uint64_t>(info.st_size));
  if (!superblock.ok()) return superblock.status();
  pool.superblock = *superblock;
  if (pool.superblock.journaled == 0) {
    return nvm::InPath(path, Code::kInvalidArgument,
                       "has no journal, and so no archive; copy the file while no server has it open");
  }
  return pool;
}

std::vector<std::byte> EncodeHeader(BaseInfo& info) {
  const auto ends = std::as_bytes(std::span(info.ends));
  const auto encode = [&] {
    const auto front = BytesOf(info.header);
    std::vector<std::byte> bytes(front.begin(), front.end());
    bytes.insert(bytes.end(), ends.begin(), ends.end());
    bytes.resize(info.header.header_bytes);
    return bytes;
  };
  info.header.crc = 0;
  info.header.crc = Crc32c(0, encode());
  return encode();
}

}  // namespace

// The places come from the rings. The pool file has all before a checkpoint, so the copy has all before the one
// that was there first. The checkpointer writes only what the disk holds, so the copy has nothing after the end that
// the ring has last.
Result<BaseInfo> MakeBaseCopy(const std::string& path, const std::string& journal, const std::string& to) {
  const uint64_t begun_us = ServerTime::WallMicros();
  const auto pool = OpenPoolFile(path);
  if (!pool.ok()) return pool.status();
  const format::Superblock& superblock = pool->superblock;
  auto rings = RingView::Open(journal);
  if (!rings.ok()) return rings.status();
  if (rings->header().uuid != superblock.uuid || rings->header().shards != superblock.geometry.shards) {
    return Status(Code::kInvalidArgument, "journal " + journal + ": it belongs to another pool than " + path);
  }
  BaseInfo info{};
  for (uint32_t shard = 0; shard < superblock.geometry.shards; ++shard) {
    const auto ends = rings->Look(shard);
    if (!ends.ok()) return ends.status();
    info.ends.push_back({.from = ends->checkpoint, .end = ends->end});
  }
  auto file = NewFile::Create(to, to + ".new");
  if (!file.ok()) return file.status();
  info.header.magic = kBaseMagic;
  info.header.format_version = kFormatVersion;
  info.header.uuid = superblock.uuid;
  info.header.header_bytes = HeaderBytes(info.ends.size());
  info.header.shards = static_cast<uint32_t>(info.ends.size());
  info.header.pool_size = superblock.geometry.pool_size;
  info.header.begun_us = begun_us;
  info.header.secret = rings->header().secret;
  const std::string name = "base copy " + to;
  const auto crc = CopyRange(pool->fd.get(), "pool " + path, 0, (*file)->fd(), name, info.header.header_bytes,
                             info.header.pool_size);
  if (!crc.ok()) return crc.status();
  info.header.pool_crc = *crc;
  if (::ftruncate((*file)->fd(), static_cast<off_t>(info.header.header_bytes + info.header.pool_size)) != 0) {
    return ErrnoStatus("cannot write " + name);
  }
  for (uint32_t shard = 0; shard < info.header.shards; ++shard) {
    const auto ends = rings->Look(shard);
    if (!ends.ok()) return ends.status();
    info.ends[shard].end = ends->end;
  }
  info.header.ended_us = ServerTime::WallMicros();
  const auto header = EncodeHeader(info);
  if (auto status = WriteRange((*file)->fd(), name, 0, header); !status.ok()) return status;
  if (auto status = (*file)->Keep(); !status.ok()) return status;
  return info;
}

BaseCopy::BaseCopy(std::string path, UniqueFd fd, BaseInfo info)
    : path_(std::move(path)), fd_(std::move(fd)), info_(std::move(info)) {}

Result<BaseCopy> BaseCopy::Open(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat info {};
  if (!fd || ::fstat(fd.get(), &info) != 0) return ErrnoStatus("cannot open base copy " + path);
  const auto size = static_cast<uint64_t>(info.st_size);
  if (size < sizeof(BaseHeader)) return InBase(path, Code::kCorruption, "it is not a base copy of Erda (too short)");
  std::vector<std::byte> front(sizeof(BaseHeader));
  if (auto status = ReadRange(fd.get(), "base copy " + path, 0, front); !status.ok()) return status;
  BaseInfo base{LoadAs<BaseHeader>(front), {}};
  const BaseHeader& header = base.header;
  if (header.magic != kBaseMagic) {
    return InBase(path, Code::kCorruption, "it is not a base copy of Erda (wrong magic number)");
  }
  if (header.format_version != kFormatVersion) {
    return InBase(path, Code::kInvalidArgument,
                  "it has format version " + std::to_string(header.format_version) +
                      ", and this program reads version " + std::to_string(kFormatVersion));
  }
  const bool possible = header.shards > 0 && header.shards <= format::kShardsMax &&
                        header.header_bytes == HeaderBytes(header.shards) && header.header_bytes <= size;
  if (!possible) return InBase(path, Code::kCorruption, "its header is damaged (impossible sizes)");
  front.resize(header.header_bytes);
  if (auto status = ReadRange(fd.get(), "base copy " + path, 0, front); !status.ok()) return status;
  for (uint32_t shard = 0; shard < header.shards; ++shard) {
    base.ends.push_back(LoadAs<BaseEnds>(std::span(front).subspan(sizeof(BaseHeader) + shard * sizeof(BaseEnds))));
  }
  std::memset(front.data() + offsetof(BaseHeader, crc), 0, sizeof(header.crc));
  if (Crc32c(0, front) != header.crc) return InBase(path, Code::kCorruption, "its header is damaged (wrong checksum)");
  if (size != header.header_bytes + header.pool_size) {
    return InBase(path, Code::kCorruption,
                  "it was written with " + std::to_string(header.header_bytes + header.pool_size) +
                      " bytes, and now has " + std::to_string(size));
  }
  return BaseCopy(path, std::move(fd), std::move(base));
}

Status BaseCopy::CopyTo(int fd, const std::string& name) const {
  const auto crc = CopyRange(fd_.get(), "base copy " + path_, header().header_bytes, fd, name, 0, header().pool_size);
  if (!crc.ok()) return crc.status();
  if (*crc != header().pool_crc)
    return InBase(path_, Code::kCorruption, "the pool's bytes are damaged (wrong checksum)");
  return {};
}

}  // namespace erda::journal
