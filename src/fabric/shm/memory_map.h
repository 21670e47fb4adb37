// Mappings of memory that peers offered. Channels that were offered the same memory share one mapping, and so its page
// tables.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <tuple>

#include "base/unique_fd.h"
#include "erda/status.h"

namespace erda::fabric::shm {

// Constant, so any thread may use it. The thread that gives up its last share unmaps the memory.
class Mapping {
 public:
  explicit Mapping(std::span<std::byte> bytes) : bytes_(bytes) {}
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping();
  [[nodiscard]] std::span<std::byte> bytes() const { return bytes_; }

 private:
  std::span<std::byte> bytes_;
};

// Any thread may call it.
class MemoryMaps {
 public:
  // kPeerMayNotHarm: the peer made the memory and is not trusted. Map refuses memory that could vanish under a reader
  // and end this process by SIGBUS. The section "What a peer can break" of docs/fabric.md says which memory cannot.
  // kPeerIsTrusted: a client maps the memory that its server offers, such as a pool file.
  enum class Trust { kPeerMayNotHarm, kPeerIsTrusted };
  Result<std::shared_ptr<Mapping>> Map(const UniqueFd& fd, size_t size, bool writable, Trust trust);

 private:
  using Key = std::tuple<uint64_t, uint64_t, size_t, bool>;  // Device, inode, size, writable.
  std::mutex mutex_;                                         // A mutex is fine, since connecting is not the hot path.
  std::map<Key, std::weak_ptr<Mapping>> maps_;
  // Map removes expired entries when there are this many, so that a connection need not walk all of them.
  size_t sweep_at_ = 64;
};

}  // namespace erda::fabric::shm
