// Raw operations through the fabric contract, without the engine. They show the least that a get and a put could cost.
//
// The responder stands for the engine's shard: it answers a WriteImm by a WriteImm, and has memory of the pool for
// one-sided operations. Each end waits as the engine's end does. The client looks all the time, with a pause between
// two looks. The responder offers its core between looks after some time, and sleeps when no request comes.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/hash.h"
#include "base/shared_memory.h"
#include "bench/floors/settings.h"
#include "erda/status.h"
#include "fabric/fabric.h"
#include "format/hello.h"
#include "format/messages.h"
#include "format/object.h"

namespace erda::floors {

// How long the engine's server and the raw responder look for work before they sleep. It is long beside a round trip,
// so that neither sleeps during its measurement. It is short beside the pause between two phases, so that each sleeps
// during the other's measurement.
inline constexpr std::chrono::milliseconds kSpin{2};

// Regions that the responder and the client offer.
inline constexpr uint32_t kRawMemoryRegion = 0;
inline constexpr uint32_t kRawRequestRegion = 1;
inline constexpr uint32_t kRawReplyRegion = 0;
inline constexpr uint64_t kRawRequestBytesMax = 16384;
// The place in the checksums of an object of PutWork: any place.
inline constexpr format::Place kRawPlace{1, 0, format::LogAddress(64), 1};
// The seed of its keys' hashes: any seed.
inline constexpr HashSeed kRawHashSeed = {1, 2};

// The range that raw operations may read and write: from `offset` of the memory on.
struct RawArea {
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

class RawServer {
 public:
  // Makes bytes of the memory persistent, from an offset on. Does nothing if there is nothing to do.
  using Persist = std::function<void(uint64_t offset, uint64_t bytes)>;

  // Requires: `memory` outlives the server.
  static Result<std::unique_ptr<RawServer>> Start(const std::string& address, const MemoryView& memory,
                                                  const RawArea& area, Persist persist);
  RawServer(const RawServer&) = delete;
  RawServer& operator=(const RawServer&) = delete;
  ~RawServer();

  // Returns the address at which clients reach it.
  [[nodiscard]] const std::string& address() const { return listener_->address(); }

 private:
  RawServer() = default;
  Status Prepare(const std::string& address, const MemoryView& memory);
  void Run();
  void Serve(fabric::Incoming& incoming);
  // Returns false if the client asks something impossible.
  bool Answer(fabric::Channel& channel, const fabric::Completion& completion);
  bool PutWork(const format::Request& request, format::ObjectHeader* header);
  // Returns true if the range lies in the area for raw operations.
  [[nodiscard]] bool Has(uint64_t offset, uint64_t bytes) const {
    return offset >= area_.offset && offset - area_.offset <= area_.bytes &&
           bytes <= area_.bytes - (offset - area_.offset);
  }

  RawArea area_;
  std::span<std::byte> memory_;
  uint64_t version_ = 0;
  Persist persist_;
  SharedMemory request_memory_;
  std::vector<std::byte> reply_memory_;
  std::shared_ptr<fabric::Fabric> fabric_;
  std::unique_ptr<fabric::Region> region_;
  std::unique_ptr<fabric::Region> request_region_;
  std::unique_ptr<fabric::Region> reply_region_;
  std::unique_ptr<fabric::CompletionQueue> queue_;
  std::unique_ptr<fabric::Listener> listener_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

// For one thread.
class RawClient {
 public:
  static Result<std::unique_ptr<RawClient>> Connect(const std::string& address, uint64_t value_bytes,
                                                    format::FlushMethod flush);
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;
  ~RawClient() = default;

  // Reads into read_bytes(). Offsets count from the beginning of the responder's memory.
  Status Read(uint64_t offset, uint64_t bytes);
  // Does `count` Reads, kDeep in flight; at(i) returns the place of the i-th one. Posts new ones together, as many as
  // have completed.
  template <class At>
  Status ReadMany(uint64_t count, uint64_t bytes, At&& at);
  // Sends a request with its key and inline value, and waits for a Reply.
  Status PingPong();
  // The same, with the bare work of a put. This end makes the request of key and value. The responder copies them into
  // an object at `offset`, stores the object's place into the word at `entry`, and makes each persistent.
  Status PutWork(uint64_t offset, uint64_t entry, std::string_view key, std::string_view value);
  // Writes checksum and value of the object at `offset`, and makes them persistent, with one doorbell.
  Status WriteAndFlush(uint64_t offset);
  // Writes a value of kLargeBytes, and sends a request without a value with the same doorbell. Waits for the answer.
  Status WriteAndAsk(uint64_t offset);

  [[nodiscard]] std::span<const std::byte> read_bytes() const { return read_buffer_; }
  // The bytes that WriteAndFlush writes, for the caller to fill with a pattern: checksum and value.
  [[nodiscard]] std::span<std::byte> body() { return body_; }

 private:
  RawClient() = default;
  Status Prepare(uint64_t value_bytes);
  // Waits for completions of this kind, and returns their number. Returns an error if another operation failed before,
  // or if nothing comes.
  Result<uint64_t> AwaitCount(fabric::OpKind kind);
  Status Await(fabric::OpKind kind) { return AwaitCount(kind).status(); }

  std::string address_;
  format::FlushMethod flush_ = format::FlushMethod::kNone;
  std::vector<std::byte> memory_;
  std::span<std::byte> read_buffer_;
  std::span<std::byte> deep_buffer_;  // kDeep times as large.
  std::span<std::byte> request_;      // Header, key, checksum, value.
  std::span<std::byte> body_;         // Part of request_: checksum, value.
  std::span<std::byte> work_;         // A request that each PutWork makes new.
  std::span<std::byte> commit_;
  std::span<std::byte> large_;  // Header, key, a value of kLargeBytes.
  SharedMemory reply_memory_;
  std::shared_ptr<fabric::Fabric> fabric_;
  std::unique_ptr<fabric::Region> region_;
  std::unique_ptr<fabric::Region> reply_region_;
  std::unique_ptr<fabric::CompletionQueue> queue_;
  std::unique_ptr<fabric::Channel> channel_;  // Last, so destroyed first: it uses the memory above.
  std::array<fabric::Completion, kDeep> completions_;
  uint32_t idle_looks_ = 0;
};

template <class At>
Status RawClient::ReadMany(uint64_t count, uint64_t bytes, At&& at) {
  std::array<fabric::WorkRequest, kDeep> works;
  uint64_t posted = 0;
  uint64_t done = 0;
  while (done < count) {
    size_t batch = 0;
    while (posted < count && posted - done < kDeep) {
      fabric::WorkRequest& work = works[batch++];
      work.kind = fabric::OpKind::kRead;
      work.local = deep_buffer_.subspan(posted % kDeep * read_buffer_.size(), bytes);
      work.remote = {kRawMemoryRegion, at(posted)};
      ++posted;
    }
    if (batch > 0) {
      if (auto status = channel_->Post(std::span(works).first(batch)); !status.ok()) return status;
    }
    auto completed = AwaitCount(fabric::OpKind::kRead);
    if (!completed.ok()) return completed.status();
    done += *completed;
  }
  return {};
}

}  // namespace erda::floors
