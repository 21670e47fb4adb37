#include "journal/ring_view.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <utility>

#include "base/bytes.h"
#include "base/file_io.h"
#include "base/unique_fd.h"
#include "journal/aligned_buffer.h"
#include "journal/checkpoint_block.h"
#include "journal/ring.h"

namespace erda::journal {

namespace {

constexpr int kLookTries = 100;

// A file that another process may write to.
class ViewedDisk final : public Disk {
 public:
  ViewedDisk(std::string path, UniqueFd fd, uint64_t size) : path_(std::move(path)), fd_(std::move(fd)), size_(size) {}

  Status Read(uint64_t offset, std::span<std::byte> to) override {
    return ReadRange(fd_.get(), "journal " + path_, offset, to);
  }
  Status Write(uint64_t /*offset*/, std::span<const std::byte> /*from*/) override {
    return {Code::kInternal, "journal " + path_ + " is open for reading only"};
  }
  // Nothing was written.
  Status Flush() override { return {}; }
  [[nodiscard]] uint64_t size() const override { return size_; }

 private:
  const std::string path_;
  const UniqueFd fd_;
  const uint64_t size_;
};

}  // namespace

RingView::RingView(std::unique_ptr<Disk> disk, const RingFileHeader& header)
    : disk_(std::move(disk)), header_(header) {}

Result<RingView> RingView::Open(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat info {};
  if (!fd || ::fstat(fd.get(), &info) != 0) return ErrnoStatus("cannot open journal " + path);
  const uint64_t size = AlignDown(static_cast<uint64_t>(info.st_size), Disk::kBlock);
  auto disk = std::make_unique<ViewedDisk>(path, std::move(fd), size);
  const auto header = FindRingFileHeader(*disk, path);
  if (!header.ok()) return header.status();
  return RingView(std::move(disk), *header);
}

// The server uses no block again before a checkpoint says that it may. So the records that a look has followed were
// those of the ring if the checkpoint is still the same afterwards.
Result<RingView::Ends> RingView::Look(uint32_t shard) {
  const RingPart part = RingPartOf(header_, shard);
  const AlignedBuffer copies(kFirstRecordBlock * Disk::kBlock);
  for (int i = 1; i <= kLookTries; ++i) {
    const auto ring = Ring::Open(*disk_, part, identity(shard), [](const Record& /*record*/) { return Status(); });
    // The server may be writing one copy of the checkpoint after the other.
    if (!ring.ok() && i < kLookTries && ring.status().code() == Code::kCorruption) continue;
    if (!ring.ok()) return ring.status();
    if (auto status = disk_->Read(part.offset, copies.bytes()); !status.ok()) return status;
    const auto now = FindCheckpoint(copies.bytes(), identity(shard), part.blocks());
    if (now && now->place == ring->checkpoint() && now->epoch == ring->epoch()) {
      return Ends{ring->checkpoint(), ring->end(), ring->epoch()};
    }
  }
  return Status(Code::kUnavailable, "the ring of shard " + std::to_string(shard) +
                                        " changes too fast to be looked at; try again when fewer clients put");
}

}  // namespace erda::journal
