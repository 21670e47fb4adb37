// NVM that can lose power: two images of one pool. A store changes the volatile one; a cache line that was flushed and
// then fenced reaches the durable one. After a power cut each 8-byte word that differs was kept or lost.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/random.h"
#include "nvm/pool.h"

namespace erda::server {

// Thrown out of a fence: whoever was at work is gone.
struct Crash {};

class CrashPool final : public nvm::Pool {
 public:
  using Image = std::vector<uint64_t>;

  explicit CrashPool(uint64_t size) : CrashPool(Image(size / sizeof(uint64_t))) {}
  // What is there when the power is back.
  explicit CrashPool(Image image, nvm::Durability durability = nvm::Durability::kPowerSafe)
      : CrashPool({image, image}, durability) {}
  // What a process leaves behind that ends while the machine stays up: the caches hold what it stored.
  struct Images {
    Image cached;
    Image durable;
  };
  CrashPool(Images images, nvm::Durability durability)
      : volatile_(std::move(images.cached)), durable_(std::move(images.durable)) {
    bytes_ = std::as_writable_bytes(std::span(volatile_));
    durability_ = durability;
  }
  [[nodiscard]] MemoryView view() const override { return {bytes_, -1, -1}; }
  [[nodiscard]] bool created() const override { return false; }
  // Where words get lost by a power cut there is no page cache; where a page cache is, processes die, and no machine.
  [[nodiscard]] format::BootId boot() const override {
    return durability_ == nvm::Durability::kPowerSafe ? format::kNoBoot : format::BootId{1};
  }
  [[nodiscard]] bool is_device() const override { return true; }  // there already, and as large as it is
  void RemoveIfCreated() override {}
  Status Widen(uint64_t /*kept*/, uint64_t size) override {
    const auto all = std::as_writable_bytes(std::span(volatile_));
    if (size > all.size()) return {Code::kInvalidArgument, "it has " + std::to_string(all.size()) + " bytes"};
    bytes_ = all.first(size);
    return {};
  }

  // REQUIRES: nothing stores here any more. Of what was flushed and not fenced, each line is on the medium if
  // kept() says so.
  template <class Kept>
  [[nodiscard]] Images AfterProcessEnd(Kept&& kept) {
    for (const Line& line : pending_) {
      if (kept()) std::memcpy(durable_.data() + line.first, line.words.data(), kCacheLine);
    }
    pending_.clear();
    return {std::move(volatile_), std::move(durable_)};
  }

  // Called before each fence takes effect: every point at which a power cut makes a difference lies behind one fence
  // and before the next.
  std::function<void()> before_fence;

  // A Read that comes back has brought what a NIC wrote there to the medium, past the CPU's caches.
  void ReadBack(uint64_t offset, uint64_t size) { MakeDurable(offset, bytes_.subspan(offset, size)); }

  [[nodiscard]] bool IsDurable(uint64_t offset, uint64_t size) const {
    return std::memcmp(bytes_.data() + offset, std::as_bytes(std::span(durable_)).data() + offset, size) == 0;
  }
  // The medium decays: these bytes are there from now on, in the caches, in what is on its way, and for good.
  void Damage(uint64_t offset, std::span<const std::byte> with) {
    std::memcpy(bytes_.data() + offset, with.data(), with.size());
    MakeDurable(offset, with);
  }

  // What was changed by other hands than a server's, as by decay.
  void EverythingIsDurable() { durable_ = volatile_; }

  // What is left if the power goes now: of what is not durable, `kept` is the chance of each word.
  [[nodiscard]] Image AfterPowerCut(Random& random, double kept) const {
    return AfterPowerCut([&] { return random.Chance(kept); });
  }
  // kept() says it of each word in turn, in the order of their addresses once all flushed ones were asked for.
  template <class Kept>
  [[nodiscard]] Image AfterPowerCut(Kept&& kept) const {
    Image image = durable_;
    for (const Line& line : pending_) {
      for (size_t i = 0; i < kWords; ++i) {
        if (image[line.first + i] != line.words[i] && kept()) image[line.first + i] = line.words[i];
      }
    }
    for (size_t i = 0; i < image.size(); ++i) {
      if (image[i] != volatile_[i] && kept()) image[i] = volatile_[i];
    }
    return image;
  }
  // The process dies, and the machine does not: what it stored is in the caches, what it began to write back may never
  // get there.
  void ProcessDies() {
    before_fence = nullptr;
    pending_.clear();
  }

 private:
  static constexpr size_t kWords = kCacheLine / sizeof(uint64_t);
  struct Line {
    size_t first = 0;
    std::array<uint64_t, kWords> words;
  };

  // On the medium, and in what is on its way there.
  void MakeDurable(uint64_t offset, std::span<const std::byte> bytes) {
    std::memcpy(std::as_writable_bytes(std::span(durable_)).data() + offset, bytes.data(), bytes.size());
    for (Line& line : pending_) {
      const uint64_t first = line.first * sizeof(uint64_t);
      const uint64_t from = std::max(first, offset);
      const uint64_t to = std::min(first + kCacheLine, offset + bytes.size());
      if (from < to) {
        std::memcpy(std::as_writable_bytes(std::span(line.words)).data() + (from - first), &bytes[from - offset],
                    to - from);
      }
    }
  }

  void FlushRange(const std::byte* begin, size_t size) override {
    const auto offset = static_cast<uint64_t>(begin - bytes_.data());
    for (uint64_t at = AlignDown(offset, kCacheLine); at < offset + size; at += kCacheLine) {
      Line line;
      line.first = at / sizeof(uint64_t);
      std::memcpy(line.words.data(), volatile_.data() + line.first, kCacheLine);
      pending_.push_back(line);
    }
  }
  void Drain() override {
    if (before_fence) before_fence();
    for (const Line& line : pending_) std::memcpy(durable_.data() + line.first, line.words.data(), kCacheLine);
    pending_.clear();
  }

  Image volatile_;
  Image durable_;
  std::vector<Line> pending_;  // flushed, not fenced
};

}  // namespace erda::server
