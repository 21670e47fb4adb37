#include "journal/apply.h"

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/planted.h"
#include "journal/entry.h"

namespace erda::journal {

namespace {

constexpr std::array<std::byte, 64 << 10> kZeroBytes{};  // A larger range is zeroed without a write.
constexpr uint64_t kPageBytes = 4096;                    // Of the kernel's cache of the file.
// A part of a stream with this many bytes is joined before it is written. So the memory for that is bounded.
constexpr uint64_t kJoinedBytes = 4 << 20;
// One call writes ranges up to this length.
constexpr uint64_t kCallBytes = Writeback::kPieceBytes;
constexpr size_t kPiecesMax = 1024;  // Of one call: IOV_MAX of Linux.

Status Malformed() { return {Code::kCorruption, "a part of a stream has a malformed entry"}; }

// A range of the file and its bytes. Null: zeroes.
struct Range {
  uint64_t offset = 0;
  uint64_t size = 0;
  const std::byte* bytes = nullptr;

  [[nodiscard]] uint64_t end() const { return offset + size; }
};

// Ranges in the order in which a stream has them. Of the bytes that several name, the last ones count.
class LastBytes {
 public:
  void Add(const Range& range) { ranges_.push_back(range); }
  // Calls visit(const Range&) for parts of the ranges that do not overlap, in the order of their offsets. Then none is
  // left.
  template <class Visit>
  void Take(Visit&& visit) {
    std::map<uint64_t, Range> last;  // By offset.
    for (auto range = ranges_.rbegin(); range != ranges_.rend(); ++range) AddNew(*range, &last);
    ranges_.clear();
    for (const auto& [offset, range] : last) visit(range);
  }

 private:
  // Adds those parts of the range that `last` does not have.
  static void AddNew(const Range& range, std::map<uint64_t, Range>* last) {
    uint64_t at = range.offset;
    auto next = last->upper_bound(at);
    if (next != last->begin()) at = std::max(at, std::prev(next)->second.end());
    while (at < range.end()) {
      const uint64_t end = next == last->end() ? range.end() : std::min(range.end(), next->first);
      const std::byte* const bytes = range.bytes == nullptr ? nullptr : range.bytes + (at - range.offset);
      if (at < end) last->emplace_hint(next, at, Range{at, end - at, bytes});
      if (next == last->end()) return;
      at = next->second.end();
      ++next;
    }
  }

  std::vector<Range> ranges_;
};

// Writes ranges to a file, with few calls. Ranges that follow each other go into one call. So do ranges with small gaps
// between them: the file's own bytes are written to the gaps. Only pages that get other bytes anyway are written so.
class JoinedWrites {
 public:
  // `writeback` may be null.
  JoinedWrites(int fd, Writeback* writeback) : fd_(fd), writeback_(writeback) {}

  [[nodiscard]] const Status& status() const { return status_; }
  // Takes a range whose bytes stay where they are until Finish. REQUIRES: it begins where the last one ends, or later.
  void Add(const Range& range) {
    // A large range of zeroes becomes one where the file has room and no bytes: most file systems can do that. Nothing
    // is written for it then.
    if (range.bytes == nullptr && range.size >= kZeroBytes.size() && ZeroRange(range)) return;
    for (uint64_t at = 0; at < range.size;) {
      const uint64_t size =
          range.bytes == nullptr ? std::min<uint64_t>(range.size - at, kZeroBytes.size()) : range.size;
      AddPiece({range.offset + at, size, range.bytes == nullptr ? kZeroBytes.data() : range.bytes});
      at += size;
    }
  }
  // Writes all that was taken, unless an earlier write failed.
  void Finish() {
    if (has_gaps_ && status_.ok()) FillGaps();
    Write();
    pieces_.clear();
    has_gaps_ = false;
  }

 private:
  void AddPiece(const Range& piece) {
    if (!pieces_.empty() && !CanJoin(piece)) Finish();
    has_gaps_ |= !pieces_.empty() && piece.offset != end();
    pieces_.push_back(piece);
  }
  [[nodiscard]] uint64_t begin() const { return pieces_.front().offset; }
  [[nodiscard]] uint64_t end() const { return pieces_.back().end(); }
  [[nodiscard]] bool CanJoin(const Range& piece) const {
    if (piece.end() - begin() > kCallBytes) return false;
    if (!has_gaps_ && piece.offset == end()) return pieces_.size() < kPiecesMax;
    return piece.offset / kPageBytes <= (end() - 1) / kPageBytes + 1;
  }
  // Makes one piece of all, with the bytes of the file in the gaps.
  void FillGaps() {
    joined_.resize(end() - begin());
    for (size_t got = 0; got < joined_.size();) {
      const ssize_t read = ::pread(fd_, joined_.data() + got, joined_.size() - got, static_cast<off_t>(begin() + got));
      if (read < 0 && errno == EINTR) continue;
      if (read <= 0) return Fail("read", joined_.size(), begin(), read < 0 ? errno : EIO);
      got += static_cast<size_t>(read);
    }
    for (const Range& piece : pieces_) std::memcpy(joined_.data() + (piece.offset - begin()), piece.bytes, piece.size);
    pieces_ = {{begin(), joined_.size(), joined_.data()}};
  }
  void Write() {
    iovecs_.clear();
    for (const Range& piece : pieces_)  // pwritev only reads.
      iovecs_.push_back({const_cast<std::byte*>(piece.bytes), piece.size});
    std::span<iovec> left = iovecs_;
    uint64_t at = pieces_.empty() ? 0 : begin();
    while (status_.ok() && !left.empty()) {
      const ssize_t written = ::pwritev(fd_, left.data(), static_cast<int>(left.size()), static_cast<off_t>(at));
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) return Fail("write", end() - at, at, written < 0 ? errno : EIO);
      at += static_cast<uint64_t>(written);
      if (writeback_ != nullptr) writeback_->Wrote(static_cast<uint64_t>(written));
      left = Without(left, static_cast<size_t>(written));
    }
  }
  void Fail(const char* what, uint64_t bytes, uint64_t offset, int error) {
    status_ = ErrnoStatus("cannot " + std::string(what) + " " + std::to_string(bytes) + " bytes at offset " +
                              std::to_string(offset) + " of the pool file",
                          error);
  }
  // Returns false if the file system cannot do that, or has no room for it. Then the zeroes are written: the file has
  // room for that in any case.
  bool ZeroRange(const Range& range) {
    constexpr int kMode = FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE;
    while (status_.ok() && zeroes_ranges_) {
      if (::fallocate(fd_, kMode, static_cast<off_t>(range.offset), static_cast<off_t>(range.size)) == 0) return true;
      zeroes_ranges_ = errno == EINTR;
    }
    return !status_.ok();
  }
  // A write may take only a part: a signal or a full disk ends it.
  static std::span<iovec> Without(std::span<iovec> pieces, size_t written) {
    while (!pieces.empty() && written >= pieces.front().iov_len) {
      written -= pieces.front().iov_len;
      pieces = pieces.subspan(1);
    }
    if (written > 0) {
      pieces.front().iov_base = static_cast<std::byte*>(pieces.front().iov_base) + written;
      pieces.front().iov_len -= written;
    }
    return pieces;
  }

  const int fd_;
  Writeback* const writeback_;
  Status status_;
  bool zeroes_ranges_ = true;  // The file system has not refused it.
  bool has_gaps_ = false;
  std::vector<Range> pieces_;  // In order. One call writes them.
  std::vector<iovec> iovecs_;
  std::vector<std::byte> joined_;
};

}  // namespace

Status ApplyToMemory(std::span<const std::byte> stream, std::span<std::byte> pool) {
  const bool whole = ForEachEntry(stream, pool.size(), [pool](const Entry& entry) {
    std::byte* const to = pool.data() + entry.offset;
    if (entry.kind == EntryKind::kZeroes) {
      std::memset(to, 0, entry.size);
    } else {
      std::memcpy(to, entry.bytes.data(), entry.size);
    }
  });
  return whole ? Status() : Malformed();
}

Status ApplyToPool(std::span<const std::byte> stream, nvm::Writer& writer, uint64_t lowest) {
  bool allowed = true;
  const bool whole = ForEachEntry(stream, writer.pool().size(), [&](const Entry& entry) {
    allowed &= entry.offset >= lowest;
    if (!allowed) return;
    // Pairs with the fence of the shard: the bytes that follow it lead to bytes before it.
    if (entry.fenced && !Planted(Flaw::kAppliesUnfenced)) writer.Fence();
    if (entry.kind == EntryKind::kZeroes) return writer.ZeroOut(entry.offset, entry.size);
    writer.WriteWords(entry.offset, entry.bytes);
    writer.Flush(entry.offset, entry.size);
  });
  if (!whole || !allowed) return Malformed();
  // Before the answer to the primary.
  writer.Fence();
  return {};
}

Status ApplyToFile(std::span<const std::byte> stream, int fd, uint64_t pool_size, Writeback* writeback) {
  LastBytes last;
  JoinedWrites writes(fd, writeback);
  uint64_t taken = 0;
  const auto write = [&] {
    last.Take([&](const Range& range) { writes.Add(range); });
    writes.Finish();
    taken = 0;
  };
  const bool whole = ForEachEntry(stream, pool_size, [&](const Entry& entry) {
    last.Add({entry.offset, entry.size, entry.kind == EntryKind::kZeroes ? nullptr : entry.bytes.data()});
    taken += entry.space;
    if (taken >= kJoinedBytes) write();
  });
  write();
  if (!writes.status().ok()) return writes.status();
  return whole ? Status() : Malformed();
}

}  // namespace erda::journal
