// A client of another user that the server lets in, with a window to its chunk of the log. It puts keys there, and
// writes bytes that no shard would write. It forges headers that verify: of objects that reach out of the chunk, of
// other clients' keys, and of chunks, also over its earlier puts. It writes nowhere else, and can harm only its own
// keys.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "fabric/sim/network.h"
#include "format/hello.h"
#include "format/messages.h"
#include "format/object.h"

namespace erda::sim {

class Forger {
 public:
  // keys: keys of other clients, for forged headers.
  Forger(fabric::SimNetwork& network, uint64_t seed, std::string address, uint32_t shards,
         std::vector<std::string> keys);
  Forger(const Forger&) = delete;
  Forger& operator=(const Forger&) = delete;

  // Handles the completions that have arrived, and takes the next action.
  void Step();
  [[nodiscard]] uint64_t forged() const { return forged_; }

 private:
  struct Chunk {
    format::Reply told{};
    uint64_t offset = 0;  // in the pool
    uint64_t bytes = 0;
    uint64_t tail = format::kChunkObjectsAt;
    std::vector<uint64_t> own;  // the places of the objects that it has put, from the chunk's begin
  };

  void Poll();
  void Leave();
  void Connect();
  void Ask(format::Request request, std::string_view key);
  void AskForChunk();
  void OnAnswer();
  void PutOwn();
  void Forge();
  void Write(uint64_t at, std::span<const std::byte> bytes);

  fabric::SimNetwork& network_;
  Random random_;
  const std::string address_;
  const uint32_t shards_;
  const std::vector<std::string> keys_;
  std::vector<std::byte> memory_;  // the reply, the bytes of Writes, the control block
  size_t written_ = 0;
  std::shared_ptr<fabric::Fabric> fabric_;
  std::unique_ptr<fabric::CompletionQueue> queue_;
  std::unique_ptr<fabric::Region> region_;
  std::unique_ptr<fabric::Channel> channel_;
  format::HelloReply hello_{};
  format::Request asked_{};
  bool connected_ = false;
  bool closed_ = false;
  bool waits_ = false;         // true while it waits for an answer
  bool control_read_ = false;  // true if it has read the control block since it got the chunk
  uint32_t shard_ = 0;
  std::optional<Chunk> chunk_;
  uint64_t forged_ = 0;
};

}  // namespace erda::sim
