// Versions over a small pool, with the clients' ends of it: what the tests of server/versions.cc are written in.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "nvm/pool.h"
#include "server/readers.h"
#include "server/versions.h"

namespace erda::server {

struct StoreOptions {
  format::FlushMethod flush = format::FlushMethod::kServerFlush;
  uint32_t reservations_per_session = 1024;
  uint32_t shard = 0;
  // Eight regions of four segments of 4 KiB, an index of 64 slots.
  format::GeometryWish wish{229376, 1, 16384, 4096, 64};
};

// A reserved place, in its writer's hands.
struct Reserved {
  Outcome outcome;
  std::string key;
  std::string value;
  SessionId session = 0;

  [[nodiscard]] Code code() const { return outcome.code; }
  [[nodiscard]] uint64_t version() const { return outcome.header.version; }
};

class Store {
 public:
  explicit Store(const StoreOptions& options = {}, std::unique_ptr<nvm::Pool> pool = nullptr);

  // Opens the same bytes anew, as the next server does after a clean close.
  void CloseAndReopen();
  void Close() { versions_->Close(); }
  void Open();

  // Requests.
  Outcome Inline(std::string_view key, std::string_view value, Ack ack = Ack::kPersisted);
  Reserved Reserve(std::string_view key, std::string_view value, SessionId session = 0, Ack ack = Ack::kPersisted);
  // nullopt: a breach of the protocol.
  std::optional<Code> Commit(const Reserved& reserved);
  Code Delete(std::string_view key);
  void Report(std::string_view key);
  void EndSession(SessionId session) { versions_->EndSession(session); }
  size_t Sweep(size_t limit = 1 << 20) { return versions_->Sweep(limit); }

  // The writer's one-sided write: checksum and value, or only the first bytes of that.
  void Land(const Reserved& reserved) { LandPart(reserved, format::kChecksumBytes + reserved.value.size()); }
  void LandPart(const Reserved& reserved, size_t bytes);
  // Land and Commit; true if that was ok.
  bool Finish(const Reserved& reserved) {
    Land(reserved);
    return Commit(reserved) == Code::kOk;
  }

  // What a client's get gives.
  [[nodiscard]] std::string Get(std::string_view key) const;
  // What a get gives after the server's process died and its pool was recovered.
  [[nodiscard]] std::string GetAfterCrash(std::string_view key) const { return ReadAfterCrash(Bytes(), key); }
  [[nodiscard]] std::string Violation() const { return FindViolation(Bytes()); }

  [[nodiscard]] PoolBytes Bytes() const { return {pool_->bytes(), geometry_, kPoolSeed, options_.shard}; }
  [[nodiscard]] PoolBytes BytesOfImage(std::span<const std::byte> image) const {
    return {image, geometry_, kPoolSeed, options_.shard};
  }
  // The key's entry; an empty one if there is none.
  [[nodiscard]] format::EntryWord WordOf(std::string_view key) const;
  [[nodiscard]] format::SegmentState SegmentStateOf(const Reserved& reserved) const;

  [[nodiscard]] Versions& versions() { return *versions_; }
  [[nodiscard]] const format::Geometry& geometry() const { return geometry_; }
  [[nodiscard]] nvm::Pool& pool() { return *pool_; }
  // Grows by two with each index entry that moves.
  [[nodiscard]] uint64_t displacements() const { return control_[0]; }
  [[nodiscard]] uint64_t counter(format::Counter counter) const;

 private:
  static constexpr uint32_t kPoolSeed = 0x5eed;

  [[nodiscard]] uint64_t OffsetOf(const Reserved& reserved) const;

  StoreOptions options_;
  format::Geometry geometry_{};
  std::unique_ptr<nvm::Pool> pool_;
  std::unique_ptr<nvm::Writer> nvm_;
  std::vector<uint64_t> control_;  // words, for their alignment
  std::unique_ptr<Versions> versions_;
};

// The tests that run once for each flush method that servers choose.
inline std::string FlushMethodName(const testing::TestParamInfo<format::FlushMethod>& tested) {
  return tested.param == format::FlushMethod::kNone ? "NoFlush" : "ServerFlush";
}

}  // namespace erda::server
