#include "journal/archive_file_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <zstd.h>

#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/file_io.h"

namespace erda::journal {

namespace {

Status InFile(const std::string& path, Code code, const std::string& what) {
  return {code, "archive file " + path + ": " + what};
}

Status CheckArchiveHeader(const std::string& path, const ArchiveHeader& header, uint64_t size) {
  if (header.magic != kArchiveMagic) {
    return InFile(path, Code::kCorruption, "it is not an archive file of Erda (wrong magic number)");
  }
  if (header.format_version != kFormatVersion) {
    return InFile(path, Code::kInvalidArgument,
                  "it has format version " + std::to_string(header.format_version) +
                      ", and this program reads version " + std::to_string(kFormatVersion));
  }
  if (ArchiveHeaderCrc(header) != header.crc || header.end <= header.first) {
    return InFile(path, Code::kCorruption, "its header is damaged (wrong checksum)");
  }
  if (size != header.file_bytes) {
    return InFile(
        path, Code::kCorruption,
        "it was written with " + std::to_string(header.file_bytes) + " bytes, and now has " + std::to_string(size));
  }
  return {};
}

}  // namespace

ArchiveFileReader::ArchiveFileReader(std::string path, UniqueFd fd, const ArchiveHeader& header)
    : path_(std::move(path)), fd_(std::move(fd)), header_(header) {}

Result<ArchiveFileReader> ArchiveFileReader::Open(const std::string& path) {
  // O_NONBLOCK: a pipe is no archive file, and the open must not wait for it.
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat info {};
  if (!fd || ::fstat(fd.get(), &info) != 0) return ErrnoStatus("cannot open archive file " + path);
  const auto size = static_cast<uint64_t>(info.st_size);
  std::array<std::byte, sizeof(ArchiveHeader)> front{};
  if (!S_ISREG(info.st_mode) || size < front.size()) {
    return InFile(path, Code::kCorruption, "it is not an archive file of Erda (too short)");
  }
  if (auto status = ReadRange(fd.get(), "archive file " + path, 0, front); !status.ok()) return status;
  const auto header = LoadAs<ArchiveHeader>(front);
  if (auto status = CheckArchiveHeader(path, header, size); !status.ok()) return status;
  return ArchiveFileReader(path, std::move(fd), header);
}

Status ArchiveFileReader::Damaged(Place place, const std::string& what) const {
  return InFile(path_, Code::kCorruption, "its frame at place " + std::to_string(place) + " is damaged (" + what + ")");
}

Status ArchiveFileReader::Read(const Visit& visit) const {
  uint64_t offset = sizeof(ArchiveHeader);
  Place place = header_.first;
  for (uint32_t frame = 0; frame < header_.frames; ++frame) {
    if (auto status = ReadFrame(&offset, &place, visit); !status.ok()) return status;
  }
  if (place != header_.end || offset != header_.file_bytes) return Damaged(place, "its frames end elsewhere");
  return {};
}

Status ArchiveFileReader::ReadFrame(uint64_t* offset, Place* place, const Visit& visit) const {
  const std::string name = "archive file " + path_;
  std::array<std::byte, sizeof(FrameHeader)> front{};
  if (header_.file_bytes - *offset < front.size()) return Damaged(*place, "cut short");
  if (auto status = ReadRange(fd_.get(), name, *offset, front); !status.ok()) return status;
  const auto frame = LoadAs<FrameHeader>(front);
  const bool possible = frame.magic == kFrameMagic && frame.from == *place && frame.bytes <= kFrameBytesMax &&
                        frame.pieces <= kFramePiecesMax &&
                        frame.packed <= header_.file_bytes - *offset - sizeof(FrameHeader);
  if (!possible) return Damaged(*place, "impossible header");
  std::vector<std::byte> packed(frame.packed);
  if (auto status = ReadRange(fd_.get(), name, *offset + sizeof(FrameHeader), packed); !status.ok()) return status;
  if (FrameCrc(frame, packed) != frame.crc) return Damaged(*place, "wrong checksum");
  const uint64_t pieces_bytes = frame.pieces * sizeof(ArchivePiece);
  std::vector<std::byte> plain(pieces_bytes + frame.bytes);
  if (ZSTD_decompress(plain.data(), plain.size(), packed.data(), packed.size()) != plain.size()) {
    return Damaged(*place, "it does not unpack");
  }
  auto bytes = std::span<const std::byte>(plain).subspan(pieces_bytes);
  for (uint32_t i = 0; i < frame.pieces; ++i) {
    const auto piece = LoadAs<ArchivePiece>(std::span(plain).subspan(i * sizeof(ArchivePiece)));
    if (piece.bytes > bytes.size()) return Damaged(*place, "its pieces are longer than it");
    if (auto status = visit({*place, piece.time_us, bytes.first(piece.bytes)}); !status.ok()) return status;
    *place += piece.bytes;
    bytes = bytes.subspan(piece.bytes);
  }
  if (!bytes.empty()) return Damaged(*place, "its pieces are shorter than it");
  *offset += sizeof(FrameHeader) + frame.packed;
  return {};
}

}  // namespace erda::journal
