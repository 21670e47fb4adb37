// A scheme's storage in NVM that can lose power, and the actions of its clients. Several tests share it.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/bytes.h"
#include "base/hash.h"
#include "bench/schemes/server/storage.h"
#include "server/crash_pool.h"

namespace erda::schemes {

using server::CrashPool;

class TestStorage {
 public:
  static constexpr Owner kClient = 7;

  // `flushed`: a Read after an entry makes it persistent. Otherwise its commit does.
  explicit TestStorage(Scheme scheme, PoolSettings settings, bool flushed = true)
      : scheme_(scheme), settings_(std::move(settings)), flushed_(flushed) {
    Open(CrashPool::Image(settings_.pool.size / sizeof(uint64_t)));
  }
  static PoolSettings Small() { return {{"crash", 1 << 20, {}}, 512, 64 << 10}; }

  // Opens the image that a power cut left. `before_fence` runs during the recovery, and after it.
  void Open(CrashPool::Image image, std::function<void()> before_fence = nullptr) {
    Open(std::make_unique<CrashPool>(std::move(image)), std::move(before_fence));
  }
  // Opens after the death of a process on a machine that stays up: its stores may be in the caches alone.
  void Open(CrashPool::Images images, std::function<void()> before_fence = nullptr) {
    Open(std::make_unique<CrashPool>(std::move(images), nvm::Durability::kPowerSafe), std::move(before_fence));
  }
  void Open(std::unique_ptr<CrashPool> crash_pool, std::function<void()> before_fence) {
    crash_pool_ = crash_pool.get();
    crash_pool_->before_fence = std::move(before_fence);
    storage_.reset();
    auto pool = SchemePool::Take(std::move(crash_pool), scheme_, settings_);
    ASSERT_TRUE(pool.ok()) << pool.status().ToString();
    auto storage = Storage::Open(*std::move(pool));
    ASSERT_TRUE(storage.ok()) << storage.status().ToString();
    storage_ = *std::move(storage);
  }
  // The server dies with all of its stores in the caches, and the machine stays up.
  void DieAndReopen() { Open(Everything()); }
  // Returns an image with all of its stores, or with only the fenced ones.
  [[nodiscard]] CrashPool::Image Everything() const {
    return crash_pool_->AfterPowerCut([] { return true; });
  }
  [[nodiscard]] CrashPool::Image OnlyWhatIsDurable() const {
    return crash_pool_->AfterPowerCut([] { return false; });
  }

  // Puts. On return the put is acknowledged, as far as the scheme allows, and not applied.
  Admission Put(std::string_view key, std::string_view value) {
    uint64_t position = 0;
    if (scheme_ == Scheme::kRedoLogging) {
      const Admission admission = Append(key, value);
      storage_->Fence();
      return admission;
    }
    const Admission admission = Reserve(key, value, &position);
    if (admission == Admission::kTaken) Finish(position, key, value);
    return admission;
  }
  // Read After Write: the steps after Reserve.
  void Finish(uint64_t position, std::string_view key, std::string_view value) {
    Write(position, key, value, SIZE_MAX);
    if (flushed_) return;
    EXPECT_TRUE(storage_->Commit(position, kClient));
    storage_->Fence();
  }
  // Redo Logging, without the fence.
  Admission Append(std::string_view key, std::string_view value) {
    const std::string pair = std::string(key) + std::string(value);
    const PairSizes sizes = SizesOf(key, value);
    return storage_->AppendPut(sizes, HashKey(key, schemes::kHashSeed), AsBytes(pair),
                               PairCrc(seed(), sizes, AsBytes(pair)));
  }
  Admission Reserve(std::string_view key, std::string_view value, uint64_t* position) {
    return storage_->Reserve(SizesOf(key, value), HashKey(key, schemes::kHashSeed), key, kClient, flushed_, position);
  }
  // Writes the first `most` bytes of the entry, as a NIC does. With Read After Write its bytes go past the caches, so
  // all that the server can see is on the medium. Storage relies on that for an entry that it finds whole.
  void Write(uint64_t position, std::string_view key, std::string_view value, size_t most) {
    const std::string entry = Entry(position, key, value);
    const uint64_t at = OffsetOf(position);
    const size_t n = std::min(most, entry.size());
    std::memcpy(crash_pool_->view().bytes.data() + at, entry.data(), n);
    if (flushed_) crash_pool_->ReadBack(at, n);
  }
  Admission Delete(std::string_view key) {
    const Admission admission = storage_->AppendDelete(key, HashKey(key, schemes::kHashSeed));
    storage_->Fence();
    return admission;
  }
  [[nodiscard]] std::optional<std::string> Get(std::string_view key) {
    const auto found = storage_->Find(key, HashKey(key, schemes::kHashSeed));
    if (!found) return std::nullopt;
    return std::string(AsString(found->value));
  }

  [[nodiscard]] std::string Entry(uint64_t position, std::string_view key, std::string_view value) {
    const std::string pair = std::string(key) + std::string(value);
    const PairSizes sizes = SizesOf(key, value);
    const EntryHeader header{position, EntryCrc(PairCrc(seed(), sizes, AsBytes(pair)), position), sizes.raw()};
    return std::string(AsString(BytesOf(header))) + pair;
  }
  [[nodiscard]] uint64_t OffsetOf(uint64_t position) {
    SchemePool& pool = storage_->scheme_pool();
    return pool.log_offset() + position % pool.log_bytes();
  }
  [[nodiscard]] uint32_t seed() { return storage_->scheme_pool().seed(); }
  [[nodiscard]] Storage& storage() { return *storage_; }
  [[nodiscard]] CrashPool& pool() { return *crash_pool_; }
  static PairSizes SizesOf(std::string_view key, std::string_view value) {
    return PairSizes::OfPut(static_cast<uint32_t>(key.size()), static_cast<uint32_t>(value.size()));
  }

 private:
  const Scheme scheme_;
  const PoolSettings settings_;
  const bool flushed_;
  CrashPool* crash_pool_ = nullptr;
  std::unique_ptr<Storage> storage_;
};

}  // namespace erda::schemes
