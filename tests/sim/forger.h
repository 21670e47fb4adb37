// A client that is let in, is another user's, and has a window to its chunk of the log: it puts keys of its own there,
// and writes what the shard would never write. Headers that verify, of objects that reach out of the chunk, of other
// clients' keys, of chunks; also over what it has put. It writes nowhere else, and can do no harm but to its own keys.
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
#include "format/messages.h"
#include "format/object.h"

namespace erda::sim {

class Forger {
 public:
  // keys: of others.
  Forger(fabric::SimNetwork& network, uint64_t seed, std::string address, uint32_t shards,
         std::vector<std::string> keys);
  Forger(const Forger&) = delete;
  Forger& operator=(const Forger&) = delete;

  // Takes what has arrived, and does the next thing.
  void Step();
  [[nodiscard]] uint64_t forged() const { return forged_; }

 private:
  struct Chunk {
    format::Reply told{};
    uint64_t offset = 0;  // in the pool
    uint64_t bytes = 0;
    uint64_t tail = format::kChunkObjectsAt;
    std::vector<uint64_t> own;  // where objects stand that were put
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
  std::vector<std::byte> memory_;  // the reply, what is written, the control block
  size_t written_ = 0;
  std::shared_ptr<fabric::Fabric> fabric_;
  std::unique_ptr<fabric::CompletionQueue> queue_;
  std::unique_ptr<fabric::Region> region_;
  std::unique_ptr<fabric::Channel> channel_;
  format::HelloReply hello_{};
  format::Request asked_{};
  bool connected_ = false;
  bool closed_ = false;
  bool waits_ = false;         // for an answer
  bool control_read_ = false;  // since the chunk was given
  uint32_t shard_ = 0;
  std::optional<Chunk> chunk_;
  uint64_t forged_ = 0;
};

}  // namespace erda::sim
