#include "journal/ring_file.h"

#include <cassert>
#include <cstring>
#include <utility>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/crypto.h"
#include "journal/aligned_buffer.h"
#include "journal/ring.h"

namespace erda::journal {

namespace {

constexpr uint64_t kHeaderCopies = 2;
constexpr uint64_t kPartsOffset = kHeaderCopies * Disk::kBlock;
static_assert(RingFile::kPartBytesMin / Disk::kBlock >= kFirstRecordBlock + 2 * kRecordBlocksMax);

std::string Counted(uint64_t n, const char* noun) { return std::to_string(n) + " " + noun + (n == 1 ? "" : "s"); }

// Checks what does not depend on the pool.
Status CheckFileHeader(const RingFileHeader& header, uint64_t file_bytes) {
  if (header.magic != kRingFileMagic) return {Code::kCorruption, "it is not a journal of Erda (wrong magic number)"};
  // The check of the version comes first: another version may compute the checksum in another way.
  if (header.format_version != kFormatVersion) {
    return {Code::kInvalidArgument, "it has format version " + std::to_string(header.format_version) +
                                        ", and this program reads version " + std::to_string(kFormatVersion)};
  }
  if (RingFileCrc(header) != header.crc) return {Code::kCorruption, "its header is damaged (wrong checksum)"};
  if (header.shards == 0 || header.part_bytes < RingFile::kPartBytesMin || header.part_bytes % Disk::kBlock != 0) {
    return {Code::kCorruption, "its header is damaged (impossible sizes)"};
  }
  if ((file_bytes - kPartsOffset) / header.part_bytes < header.shards) {
    return {Code::kCorruption, "it was made with " + Counted(header.shards, "ring") + " of " +
                                   Counted(header.part_bytes, "byte") + ", and now has only " +
                                   Counted(file_bytes, "byte") + ": it was cut short"};
  }
  return {};
}

Status RefuseFile(const std::string& path, Code code, const std::string& what) {
  return {code, "journal " + path + ": " + what};
}

}  // namespace

// The message is about the copy that got further.
Result<RingFileHeader> FindRingFileHeader(Disk& disk, const std::string& path) {
  if (disk.size() < kPartsOffset) {
    return RefuseFile(path, Code::kCorruption,
                      "it is not a journal of Erda (it has less than " + Counted(kPartsOffset, "byte") + ")");
  }
  const AlignedBuffer copies(kPartsOffset);
  if (auto status = disk.Read(0, copies.bytes()); !status.ok()) return status;
  Status worst;
  for (uint64_t copy = 0; copy < kHeaderCopies; ++copy) {
    const auto header = LoadAs<RingFileHeader>(copies.bytes().subspan(copy * Disk::kBlock));
    Status status = CheckFileHeader(header, disk.size());
    if (status.ok()) return header;
    if (worst.ok() || header.magic == kRingFileMagic) worst = std::move(status);
  }
  return RefuseFile(path, worst.code(), std::string(worst.message()));
}

uint32_t RingFileCrc(RingFileHeader header) {
  header.crc = 0;
  return Crc32c(0, BytesOf(header));
}

RingFile::RingFile(std::unique_ptr<FileDisk> disk, const RingFileHeader& header)
    : disk_(std::move(disk)), header_(header) {}

Result<RingFile> RingFile::Create(const std::string& path, const Uuid& uuid, uint32_t shards, uint64_t size,
                                  FileDiskOptions options) {
  assert(shards > 0);
  const uint64_t least = kPartsOffset + shards * kPartBytesMin;
  if (size < least) {
    return RefuseFile(path, Code::kInvalidArgument,
                      Counted(size, "byte") + " are too few for " + Counted(shards, "shard") + "; give it " +
                          std::to_string(least) + " at least");
  }
  RingFileHeader header{};
  header.magic = kRingFileMagic;
  header.format_version = kFormatVersion;
  header.uuid = uuid;
  header.shards = shards;
  header.part_bytes = AlignDown((size - kPartsOffset) / shards, Disk::kBlock);
  FillRandom(std::as_writable_bytes(std::span(header.secret)));
  header.crc = RingFileCrc(header);

  auto disk = FileDisk::Create(path, kPartsOffset + shards * header.part_bytes, options);
  if (!disk.ok()) return disk.status();
  RingFile file(*std::move(disk), header);
  if (auto status = file.Format(); !status.ok()) {
    file.disk_->Remove();
    return status;
  }
  return file;
}

// Writes the header last. So a file with a header has all of its rings.
Status RingFile::Format() const {
  for (uint32_t shard = 0; shard < header_.shards; ++shard) {
    if (auto status = Ring::Format(*disk_, part(shard), identity(shard)); !status.ok()) return status;
  }
  const AlignedBuffer copies(kPartsOffset);
  for (uint64_t copy = 0; copy < kHeaderCopies; ++copy) {
    std::memcpy(copies.bytes().data() + copy * Disk::kBlock, &header_, sizeof(header_));
  }
  if (auto status = disk_->Write(0, copies.bytes()); !status.ok()) return status;
  return disk_->Flush();
}

Result<RingFile> RingFile::Open(const std::string& path, const Uuid& uuid, uint32_t shards, FileDiskOptions options) {
  auto disk = FileDisk::Open(path, options);
  if (!disk.ok()) return disk.status();
  const auto header = FindRingFileHeader(**disk, path);
  if (!header.ok()) return header.status();
  if (header->uuid != uuid) return RefuseFile(path, Code::kInvalidArgument, "it belongs to another pool");
  if (header->shards != shards) {
    return RefuseFile(path, Code::kInvalidArgument,
                      "it belongs to a pool with " + Counted(header->shards, "shard") + ", and this pool has " +
                          std::to_string(shards));
  }
  return RingFile(*std::move(disk), *header);
}

RingPart RingPartOf(const RingFileHeader& header, uint32_t shard) {
  assert(shard < header.shards);
  return {kPartsOffset + shard * header.part_bytes, header.part_bytes};
}

std::vector<RingIdentity> RingFile::identities() const {
  std::vector<RingIdentity> identities;
  for (uint32_t shard = 0; shard < header_.shards; ++shard) identities.push_back(identity(shard));
  return identities;
}

}  // namespace erda::journal
