// Writes one file of an archive (archive_format.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "erda/status.h"
#include "journal/archive_format.h"
#include "journal/identity.h"
#include "journal/new_file.h"
#include "journal/record.h"

namespace erda::journal {

// Owns the file, which counts only after Finish. One thread at a time calls it. After an error the file is given up.
class ArchiveFileWriter {
 public:
  // Begins a file in this folder. Its first byte is at place `first` of the stream.
  static Result<ArchiveFileWriter> Begin(const std::string& folder, const RingIdentity& identity, uint64_t epoch,
                                         Place first);

  // Adds bytes of the stream, which follow those before. REQUIRES: they are 1 to kRecordBytesMax bytes of whole
  // entries, and the time is not before that of an earlier piece.
  Status Add(Parts bytes, uint64_t time_us);
  // The file is durable on return, under its name. REQUIRES: something was added.
  Status Finish();

  [[nodiscard]] Place end() const { return header_.end; }
  [[nodiscard]] uint64_t epoch() const { return header_.epoch; }
  // Returns the bytes of the stream in the file.
  [[nodiscard]] uint64_t bytes() const { return header_.end - header_.first; }
  [[nodiscard]] uint64_t file_bytes() const { return header_.file_bytes; }

 private:
  ArchiveFileWriter(std::unique_ptr<NewFile> file, const ArchiveHeader& header);
  Status WriteFrame();

  std::unique_ptr<NewFile> file_;
  ArchiveHeader header_;
  // The frame that is being filled.
  std::vector<ArchivePiece> pieces_;
  std::vector<std::byte> bytes_;
};

}  // namespace erda::journal
