// An ordinary file as a power cut sees it: the page cache, which processes share, and the disk. The kernel writes pages
// to the disk at any time, in any order. A sync waits until all pages of a range are on the disk.
#pragma once

#include <atomic>
#include <cstring>
#include <functional>
#include <utility>
#include <vector>

#include "base/random.h"
#include "nvm/pool.h"

namespace erda::server {

// The boot that wrote the pools of the tests.
inline constexpr format::BootId kBoot{1};

class PagePool final : public nvm::Pool {
 public:
  static constexpr uint64_t kPage = 4096;
  using Image = std::vector<uint64_t>;

  PagePool(Image image, bool created, const format::BootId& boot) : PagePool(image, image, created, boot) {}
  PagePool(Image cached, Image disk, bool created, const format::BootId& boot,
           nvm::Durability durability = nvm::Durability::kProcessSafe)
      : cached_(std::move(cached)), disk_(std::move(disk)), created_(created), boot_(boot) {
    bytes_ = std::as_writable_bytes(std::span(cached_));
    durability_ = durability;
  }
  [[nodiscard]] MemoryView view() const override { return {bytes_, -1, -1}; }
  [[nodiscard]] bool created() const override { return created_; }
  [[nodiscard]] format::BootId boot() const override { return boot_; }
  [[nodiscard]] bool written_back() const override { return true; }
  void RemoveIfCreated() override {}
  Status Widen(uint64_t kept, uint64_t size) override {
    if (on_sync) on_sync();
    for (Image* image : {&cached_, &disk_}) {
      image->resize(kept / sizeof(uint64_t));
      image->resize(size / sizeof(uint64_t));
    }
    bytes_ = std::as_writable_bytes(std::span(cached_));
    return {};
  }
  using Pool::Sync;
  Status Sync(uint64_t offset, uint64_t size) override {
    if (on_sync) on_sync();
    if (fails) return {Code::kUnavailable, "the disk does not take it"};
    for (uint64_t page = offset / kPage; page * kPage < offset + size; ++page) WriteBack(page);
    if (on_sync) on_sync();
    return {};
  }
  Status SyncName() override {
    ++names_synced;
    return {};
  }

  // The kernel writes some pages to the disk, as they are now.
  void WriteBackSome(Random& random) {
    for (uint64_t page = 0; page < bytes_.size() / kPage; ++page) {
      if (random.Chance(0.1)) WriteBack(page);
    }
  }
  // Returns the disk after a power cut now. Of the pages that were not synced, the kernel has written any.
  [[nodiscard]] Image AfterPowerCut(Random& random, double written) {
    for (uint64_t page = 0; page < bytes_.size() / kPage; ++page) {
      if (random.Chance(written)) WriteBack(page);
    }
    return disk_;
  }
  [[nodiscard]] const Image& cached() const { return cached_; }
  [[nodiscard]] const Image& disk() const { return disk_; }

  std::function<void()> on_sync;  // called before and after each sync
  std::atomic<bool> fails = false;
  int names_synced = 0;

 private:
  void WriteBack(uint64_t page) {
    std::memcpy(std::as_writable_bytes(std::span(disk_)).data() + page * kPage, bytes_.data() + page * kPage, kPage);
  }
  void FlushRange(const std::byte* /*begin*/, size_t /*size*/) override {}
  void Drain() override {}

  Image cached_;
  Image disk_;
  bool created_;
  format::BootId boot_;
};

}  // namespace erda::server
