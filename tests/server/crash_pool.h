// NVM that can lose power: two images of one pool. A store changes the volatile image. A word of 8 bytes that was
// flushed and then fenced reaches the durable one. A power cut keeps or loses each word that differs.
//
// NVM flushes whole cache lines. This pool does not: a journal has only the flushed bytes (docs/journal.md).
//
// With streams it is a pool with a journal: the volatile image is the memory, and the durable one is the disk. Or it is
// a mirrored pool: then both images are the primary's NVM.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/random.h"
#include "format/superblock.h"
#include "nvm/pool.h"
#include "server/stream_disk.h"

namespace erda::server {

// Thrown out of a fence: the power is cut, or the process dies.
struct Crash {};

class CrashPool final : public nvm::Pool {
 public:
  using Image = std::vector<uint64_t>;

  explicit CrashPool(uint64_t size) : CrashPool(Image(size / sizeof(uint64_t))) {}
  // Begins with the bytes that a power cut left.
  explicit CrashPool(Image image, nvm::Durability durability = nvm::Durability::kPowerSafe)
      : CrashPool({image, image}, durability) {}
  // The bytes that a process leaves when it ends and the machine stays up. The caches hold its stores.
  struct Images {
    Image cached;
    Image durable;
    std::shared_ptr<StreamDisk> streams{};  // Null: the pool has no journal.
  };
  CrashPool(Images images, nvm::Durability durability)
      : volatile_(std::move(images.cached)), durable_(std::move(images.durable)), streams_(std::move(images.streams)) {
    bytes_ = std::as_writable_bytes(std::span(volatile_));
    durability_ = durability;
    if (streams_ == nullptr) return;
    streams_->Begin(*this, DiskBytes(), [this] {
      if (before_fence) before_fence();
    });
  }
  ~CrashPool() override {
    if (streams_ != nullptr) streams_->End();
  }
  CrashPool(const CrashPool&) = delete;
  CrashPool& operator=(const CrashPool&) = delete;
  [[nodiscard]] nvm::Pool& OfShard(uint32_t shard) override {
    return streams_ == nullptr ? *this : streams_->OfShard(shard);
  }
  // Before the mark of a clean close, which vouches for all shards.
  Status Sync(uint64_t /*offset*/, uint64_t /*size*/) override {
    if (streams_ != nullptr) streams_->HoldAll(DiskBytes());
    return {};
  }
  void HoldSome(Random& random) { streams_->HoldSome(random, DiskBytes()); }
  void HoldAll() { streams_->HoldAll(DiskBytes()); }
  [[nodiscard]] MemoryView view() const override { return {bytes_, -1, -1}; }
  [[nodiscard]] bool created() const override { return false; }
  // A pool that can lose words has no page cache. With a page cache, only processes die, and no machine.
  [[nodiscard]] format::BootId boot() const override {
    return durability_ == nvm::Durability::kPowerSafe ? format::kNoBoot : format::BootId{1};
  }
  [[nodiscard]] bool is_device() const override { return true; }  // the device exists, with its size
  void RemoveIfCreated() override {}
  Status Widen(uint64_t /*kept*/, uint64_t size) override {
    const auto all = std::as_writable_bytes(std::span(volatile_));
    if (size > all.size()) return {Code::kInvalidArgument, "it has " + std::to_string(all.size()) + " bytes"};
    bytes_ = all.first(size);
    return {};
  }

  // Requires: nothing stores here any more. For each line that was flushed and not fenced, kept() tells whether it
  // reached the medium.
  template <class Kept>
  [[nodiscard]] Images AfterProcessEnd(Kept&& kept) {
    for (const Line& line : pending_) {
      if (kept()) std::memcpy(durable_.data() + line.first, line.words.data(), line.bytes());
    }
    pending_.clear();
    if (streams_ != nullptr) streams_->End();
    return {std::move(volatile_), std::move(durable_), std::exchange(streams_, nullptr)};
  }

  // Called before each fence takes effect. Each point at which a power cut makes a difference lies between two fences.
  std::function<void()> before_fence;

  // A completed Read has brought a NIC's bytes there to the medium, past the caches of the CPU.
  void ReadBack(uint64_t offset, uint64_t size) { MakeDurable(offset, bytes_.subspan(offset, size)); }

  [[nodiscard]] bool IsDurable(uint64_t offset, uint64_t size) const {
    return std::memcmp(bytes_.data() + offset, std::as_bytes(std::span(durable_)).data() + offset, size) == 0;
  }
  // All that was flushed was fenced since.
  [[nodiscard]] bool is_fenced() const { return pending_.empty(); }
  // Returns true if the disk of a pool with a journal will get more bytes there.
  [[nodiscard]] bool WillWrite(uint64_t offset, uint64_t size) const {
    return streams_ != nullptr && streams_->WillWrite(offset, size);
  }
  // The medium decays: it has these bytes from now on. So do the caches and the lines on their way.
  void Damage(uint64_t offset, std::span<const std::byte> with) {
    std::memcpy(bytes_.data() + offset, with.data(), with.size());
    MakeDurable(offset, with);
  }

  // Makes all stores durable, also those that a test made itself.
  void EverythingIsDurable() { durable_ = volatile_; }

  // Returns the pool after a power cut now. Each word that is not durable is kept with the chance `kept`.
  [[nodiscard]] Image AfterPowerCut(Random& random, double kept) const {
    return AfterPowerCut([&] { return random.Chance(kept); });
  }
  // Asks kept() for each word in turn: first for the flushed ones, then for the others in the order of their addresses.
  template <class Kept>
  [[nodiscard]] Image AfterPowerCut(Kept&& kept) const {
    Image image = durable_;
    for (const Line& line : pending_) {
      for (size_t i = 0; i < line.count; ++i) {
        if (image[line.first + i] != line.words[i] && kept()) image[line.first + i] = line.words[i];
      }
    }
    for (size_t i = 0; i < image.size(); ++i) {
      if (image[i] != volatile_[i] && kept()) image[i] = volatile_[i];
    }
    return image;
  }
  // The process dies, and the machine stays up. The process's stores are in the caches, and lines that it began to
  // write back may never reach the medium.
  void ProcessDies() {
    before_fence = nullptr;
    pending_.clear();
  }

 private:
  static constexpr size_t kWords = kCacheLine / sizeof(uint64_t);
  // The flushed words of a cache line.
  struct Line {
    size_t first = 0;
    size_t count = 0;
    std::array<uint64_t, kWords> words;

    [[nodiscard]] size_t bytes() const { return count * sizeof(uint64_t); }
  };

  [[nodiscard]] std::span<std::byte> DiskBytes() { return std::as_writable_bytes(std::span(durable_)); }

  // Stores the bytes on the medium, and in the lines that are on their way there.
  void MakeDurable(uint64_t offset, std::span<const std::byte> bytes) {
    std::memcpy(std::as_writable_bytes(std::span(durable_)).data() + offset, bytes.data(), bytes.size());
    for (Line& line : pending_) {
      const uint64_t first = line.first * sizeof(uint64_t);
      const uint64_t from = std::max(first, offset);
      const uint64_t to = std::min(first + line.bytes(), offset + bytes.size());
      if (from < to) {
        std::memcpy(std::as_writable_bytes(std::span(line.words)).data() + (from - first), &bytes[from - offset],
                    to - from);
      }
    }
  }

  void FlushRange(const std::byte* begin, size_t size) override {
    const auto offset = static_cast<uint64_t>(begin - bytes_.data());
    // Only a shard's own pool flushes into a stream. The superblock is not in the streams.
    if (streams_ != nullptr && !streams_->mirrored() && offset >= format::kShardRecordsOffset) return;
    const uint64_t end = AlignUp(offset + size, sizeof(uint64_t)) / sizeof(uint64_t);
    for (uint64_t first = offset / sizeof(uint64_t); first < end;) {
      Line line;
      line.first = first;
      line.count = std::min(end, AlignDown(first, kWords) + kWords) - first;
      std::copy_n(volatile_.begin() + static_cast<ptrdiff_t>(first), line.count, line.words.begin());
      pending_.push_back(line);
      first += line.count;
    }
  }
  void Drain() override {
    if (before_fence) before_fence();
    for (const Line& line : pending_) std::memcpy(durable_.data() + line.first, line.words.data(), line.bytes());
    pending_.clear();
  }

  Image volatile_;
  Image durable_;
  std::shared_ptr<StreamDisk> streams_;
  std::vector<Line> pending_;  // flushed, not fenced
};

}  // namespace erda::server
