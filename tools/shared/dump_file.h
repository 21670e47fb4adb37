// The file of a dump, which erda-cli dump writes and load reads (docs/dump.md), once each, from front to end.
//
//   byte 0            8         12        16
//   +----------------+---------+---------+
//   | "ERDADUMP"     | version | crc     |      the header; its crc covers the 12 bytes before it
//   +----------------+---------+---------+
//
//   byte 0     4      5    6          8            12    16        24          32
//   +---------+------+----+----------+------------+-----+---------+-----------+-----------+-------------+
//   | crc     | kind | 0  | key size | value size | 0   | number  | deadline  | key ...   | value ...   |
//   +---------+------+----+----------+------------+-----+---------+-----------+-----------+-------------+
//
// After the header come the records, one after the other. The fields of a record:
// - crc: CRC32C of all bytes after it in the record.
// - kind: 1 for a key, 2 for the end.
// - number: how many records stand before this one. So a missing record is noticed.
// - deadline: when the value expires, in milliseconds of Unix time by the server's clock; 0: never.
// The last record is the end. It has neither key nor value, and its deadline is the number of damaged keys that the
// dump does not have. Numbers are little endian.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>

#include "erda/status.h"

namespace erda::tools {

struct DumpHeader {
  static constexpr std::string_view kMagic = "ERDADUMP";
  static constexpr uint32_t kVersion = 1;

  char magic[8];
  uint32_t version;
  uint32_t crc;
};
static_assert(sizeof(DumpHeader) == 16);

enum class RecordKind : uint8_t { kKey = 1, kEnd = 2 };

struct RecordHeader {
  uint32_t crc;
  uint8_t kind;
  uint8_t zero;
  uint16_t key_size;
  uint32_t value_size;
  uint32_t zeros;
  uint64_t number;
  uint64_t deadline;
};
static_assert(sizeof(RecordHeader) == 32);

// No pool has a larger key or value. A record with a larger size is damaged, and the reader takes no memory for it.
inline constexpr uint32_t kDumpKeyBytesMax = 1024;
inline constexpr uint32_t kDumpValueBytesMax = 256 << 20;

struct DumpRecord {
  std::string key;
  std::string value;
  uint64_t deadline = 0;
};

class DumpWriter {
 public:
  // The caller keeps the file.
  explicit DumpWriter(std::FILE* file) : file_(file) {}
  Status Begin();
  Status Add(std::string_view key, std::string_view value, uint64_t deadline);
  Status End(uint64_t damaged);
  [[nodiscard]] uint64_t keys() const { return number_; }
  [[nodiscard]] uint64_t bytes() const { return bytes_; }

 private:
  Status Record(RecordHeader header, std::string_view key, std::string_view value);
  Status Write(std::string_view bytes);

  std::FILE* file_;
  uint64_t number_ = 0;
  uint64_t bytes_ = 0;
};

class DumpReader {
 public:
  explicit DumpReader(std::FILE* file) : file_(file) {}
  Status Begin();
  // Returns the next key, or nothing at the end record, after which the file ends. kCorruption: the file is damaged.
  Result<std::optional<DumpRecord>> Next();
  [[nodiscard]] uint64_t keys() const { return number_; }
  [[nodiscard]] uint64_t bytes() const { return bytes_; }
  // After the end record: the number of damaged keys that the dump does not have.
  [[nodiscard]] uint64_t damaged() const { return damaged_; }

 private:
  // Reads all bytes, or fails with a message that describes `what` is missing.
  Status Read(void* to, size_t size, std::string_view what);
  // The same. Takes no memory for bytes that the file does not have.
  Status Read(std::string* to, size_t size, std::string_view what);

  std::FILE* file_;
  uint64_t number_ = 0;
  uint64_t bytes_ = 0;
  uint64_t damaged_ = 0;
};

}  // namespace erda::tools
