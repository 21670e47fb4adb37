#include "tools/shared/dump_file.h"

#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>

#include "base/bytes.h"
#include "base/crc32c.h"

namespace erda::tools {

namespace {

uint32_t CrcOf(const DumpHeader& header) { return Crc32c(0, BytesOf(header).first(offsetof(DumpHeader, crc))); }

uint32_t CrcOf(const RecordHeader& header, std::string_view key, std::string_view value) {
  const uint32_t crc = Crc32c(0, BytesOf(header).subspan(sizeof(header.crc)));
  return Crc32c(Crc32c(crc, AsBytes(key)), AsBytes(value));
}

Status Damaged(std::string_view what) { return {Code::kCorruption, fmt::format("the dump is damaged: {}", what)}; }

}  // namespace

// --- Writing

Status DumpWriter::Begin() {
  DumpHeader header{};
  DumpHeader::kMagic.copy(header.magic, sizeof(header.magic));
  header.version = DumpHeader::kVersion;
  header.crc = CrcOf(header);
  return Write(AsString(BytesOf(header)));
}

Status DumpWriter::Add(std::string_view key, std::string_view value, uint64_t deadline) {
  RecordHeader header{};
  header.kind = static_cast<uint8_t>(RecordKind::kKey);
  header.key_size = static_cast<uint16_t>(key.size());
  header.value_size = static_cast<uint32_t>(value.size());
  header.deadline = deadline;
  auto status = Record(header, key, value);
  if (status.ok()) ++number_;
  return status;
}

Status DumpWriter::End(uint64_t damaged) {
  RecordHeader header{};
  header.kind = static_cast<uint8_t>(RecordKind::kEnd);
  header.deadline = damaged;
  return Record(header, {}, {});
}

Status DumpWriter::Record(RecordHeader header, std::string_view key, std::string_view value) {
  header.number = number_;
  header.crc = CrcOf(header, key, value);
  if (auto status = Write(AsString(BytesOf(header))); !status.ok()) return status;
  if (auto status = Write(key); !status.ok()) return status;
  return Write(value);
}

Status DumpWriter::Write(std::string_view bytes) {
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_) != bytes.size()) {
    return {Code::kInternal, fmt::format("cannot write the dump: {}", std::strerror(errno))};
  }
  bytes_ += bytes.size();
  return {};
}

// --- Reading

Status DumpReader::Read(void* to, size_t size, std::string_view what) {
  const size_t got = std::fread(to, 1, size, file_);
  bytes_ += got;
  if (got == size) return {};
  if (std::ferror(file_) != 0) {
    return {Code::kInternal, fmt::format("cannot read the dump: {}", std::strerror(errno))};
  }
  return Damaged(fmt::format("it ends in {}, after {} keys", what, number_));
}

Status DumpReader::Read(std::string* to, size_t size, std::string_view what) {
  constexpr size_t kPiece = size_t{1} << 20;
  while (to->size() < size) {
    const size_t at = to->size();
    const size_t piece = std::min(size - at, kPiece);
    to->resize(at + piece);
    if (auto status = Read(to->data() + at, piece, what); !status.ok()) return status;
  }
  return {};
}

Status DumpReader::Begin() {
  DumpHeader header{};
  if (auto status = Read(&header, sizeof(header), "its header"); !status.ok()) return status;
  if (std::string_view(header.magic, sizeof(header.magic)) != DumpHeader::kMagic) {
    return {Code::kCorruption, "this file is not a dump of erda-cli"};
  }
  if (header.crc != CrcOf(header)) return Damaged("its header does not verify");
  if (header.version != DumpHeader::kVersion) {
    return {Code::kCorruption, fmt::format("the dump has version {}, and this program reads only version {}",
                                           header.version, DumpHeader::kVersion)};
  }
  return {};
}

Result<std::optional<DumpRecord>> DumpReader::Next() {
  const std::string what = fmt::format("record {}", number_);
  RecordHeader header{};
  if (auto status = Read(&header, sizeof(header), what); !status.ok()) return status;
  if (header.key_size > kDumpKeyBytesMax || header.value_size > kDumpValueBytesMax) {
    return Damaged(what + " does not verify");
  }
  DumpRecord record;
  record.deadline = header.deadline;
  if (auto status = Read(&record.key, header.key_size, what); !status.ok()) return status;
  if (auto status = Read(&record.value, header.value_size, what); !status.ok()) return status;
  if (header.crc != CrcOf(header, record.key, record.value)) return Damaged(what + " does not verify");
  if (header.number != number_) {
    return Damaged(fmt::format("record {} stands in the place of record {}", header.number, number_));
  }
  if (header.kind == static_cast<uint8_t>(RecordKind::kEnd)) {
    damaged_ = header.deadline;
    if (std::fgetc(file_) != EOF) return Damaged("there are more bytes after its end");
    return std::optional<DumpRecord>();
  }
  if (header.kind != static_cast<uint8_t>(RecordKind::kKey)) return Damaged(what + " is of an unknown kind");
  ++number_;
  return std::optional<DumpRecord>(std::move(record));
}

}  // namespace erda::tools
