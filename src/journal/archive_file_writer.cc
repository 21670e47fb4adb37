#include "journal/archive_file_writer.h"

#include <zstd.h>

#include <cassert>
#include <cstring>
#include <new>
#include <utility>

#include "base/file_io.h"
#include "journal/archive_folder.h"

namespace erda::journal {

namespace {

// Fast: the archive must keep up with the disk of the journal.
constexpr int kCompressionLevel = 1;

}  // namespace

ArchiveFileWriter::ArchiveFileWriter(std::unique_ptr<NewFile> file, const ArchiveHeader& header)
    : file_(std::move(file)), header_(header) {}

Result<ArchiveFileWriter> ArchiveFileWriter::Begin(const std::string& folder, const RingIdentity& identity,
                                                   uint64_t epoch, Place first) {
  auto file = NewFile::Create(ArchiveFolder::PathOf(folder, identity.shard, first),
                              ArchiveFolder::TemporaryPathOf(folder, identity.shard));
  if (!file.ok()) return file.status();
  ArchiveHeader header{};
  header.magic = kArchiveMagic;
  header.format_version = kFormatVersion;
  header.uuid = identity.uuid;
  header.secret = identity.secret;
  header.shard = identity.shard;
  header.first = first;
  header.end = first;
  header.epoch = epoch;
  header.file_bytes = sizeof(header);
  return ArchiveFileWriter(*std::move(file), header);
}

Status ArchiveFileWriter::Add(Parts bytes, uint64_t time_us) {
  uint64_t size = 0;
  for (const auto part : bytes) {
    bytes_.insert(bytes_.end(), part.begin(), part.end());
    size += part.size();
  }
  assert(size > 0 && size <= kRecordBytesMax);
  pieces_.push_back({size, time_us});
  if (header_.end == header_.first) header_.first_us = time_us;
  header_.last_us = time_us;
  header_.end += size;
  return bytes_.size() >= kFrameBytes || pieces_.size() == kFramePiecesMax ? WriteFrame() : Status();
}

Status ArchiveFileWriter::WriteFrame() {
  const auto pieces = std::as_bytes(std::span(pieces_));
  std::vector<std::byte> plain(pieces.begin(), pieces.end());
  plain.insert(plain.end(), bytes_.begin(), bytes_.end());
  std::vector<std::byte> frame(sizeof(FrameHeader) + ZSTD_compressBound(plain.size()));
  const auto room = std::span(frame).subspan(sizeof(FrameHeader));
  const size_t packed = ZSTD_compress(room.data(), room.size(), plain.data(), plain.size(), kCompressionLevel);
  if (ZSTD_isError(packed) != 0) throw std::bad_alloc();  // There is no other reason.
  FrameHeader header{};
  header.magic = kFrameMagic;
  header.pieces = static_cast<uint32_t>(pieces_.size());
  header.from = header_.end - bytes_.size();
  header.bytes = static_cast<uint32_t>(bytes_.size());
  header.packed = static_cast<uint32_t>(packed);
  header.crc = FrameCrc(header, room.first(packed));
  std::memcpy(frame.data(), &header, sizeof(header));
  const auto whole = std::span(frame).first(sizeof(header) + packed);
  if (auto status = WriteRange(file_->fd(), "archive file " + file_->path(), header_.file_bytes, whole); !status.ok()) {
    return status;
  }
  header_.file_bytes += whole.size();
  ++header_.frames;
  pieces_.clear();
  bytes_.clear();
  return {};
}

Status ArchiveFileWriter::Finish() {
  if (!pieces_.empty()) {
    if (auto status = WriteFrame(); !status.ok()) return status;
  }
  assert(header_.frames > 0);
  header_.crc = ArchiveHeaderCrc(header_);
  Status status = WriteRange(file_->fd(), "archive file " + file_->path(), 0, BytesOf(header_));
  return status.ok() ? file_->Keep() : status;
}

}  // namespace erda::journal
