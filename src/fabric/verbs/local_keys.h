// The local keys of registered memory. Each work request names the key of the region that holds its local bytes.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

namespace erda::fabric::verbs {

struct LocalKey {
  const std::byte* begin = nullptr;
  const std::byte* end = nullptr;
  uint32_t key = 0;
  bool writable = false;  // The device may write there, so a Read can land in it.

  [[nodiscard]] bool Holds(std::span<const std::byte> bytes, bool to_write) const {
    return begin <= bytes.data() && bytes.data() + bytes.size() <= end && (writable || !to_write);
  }
};

// The keys of all memory that is registered with one device. Any thread may call each function.
class LocalKeys {
 public:
  void Add(const LocalKey& key);
  void Remove(const LocalKey& key);
  // Changes with every Add and Remove. Acquire: pairs with the release of Add and Remove.
  [[nodiscard]] uint64_t version() const { return version_.load(std::memory_order_acquire); }
  // Copies the keys, and returns their version.
  uint64_t Copy(std::vector<LocalKey>* keys) const;

 private:
  mutable std::mutex mutex_;  // A mutex is fine, since registering is not the hot path.
  std::vector<LocalKey> keys_;
  std::atomic<uint64_t> version_{1};
};

// A queue's copy of LocalKeys, which it searches without the mutex. The queue's thread calls it.
class LocalKeyCopy {
 public:
  // REQUIRES: `keys` lives as long as the copy.
  explicit LocalKeyCopy(const LocalKeys& keys) : keys_(keys) {}

  // Returns the key of a region that holds the bytes, or null. Copies the keys first if they have changed. The pointer
  // is valid until the next Find.
  const LocalKey* Find(std::span<const std::byte> bytes, bool to_write);
  // Returns the version of the keys that Find searched.
  [[nodiscard]] uint64_t version() const { return version_; }
  [[nodiscard]] bool IsCurrent(uint64_t version) const { return version == keys_.version(); }

 private:
  const LocalKeys& keys_;
  std::vector<LocalKey> copy_;
  uint64_t version_ = 0;
};

// The key that a channel used last. Most requests of a channel have their bytes in the same region.
class LastLocalKey {
 public:
  // Stores the key of the bytes. Returns false if no region holds them.
  bool Find(LocalKeyCopy& keys, std::span<const std::byte> bytes, bool to_write, uint32_t* key) {
    if (!keys.IsCurrent(version_) || !last_.Holds(bytes, to_write)) {
      const LocalKey* const found = keys.Find(bytes, to_write);
      if (found == nullptr) return false;
      last_ = *found;
      version_ = keys.version();
    }
    *key = last_.key;
    return true;
  }

 private:
  LocalKey last_;
  uint64_t version_ = 0;
};

}  // namespace erda::fabric::verbs
