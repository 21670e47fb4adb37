// A peer that talks to a server below the client library, for tests of its rights there and of the rules for it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/shared_memory.h"
#include "erda/client.h"
#include "fabric/fabric.h"
#include "format/hello.h"
#include "format/messages.h"

namespace erda {

class RawPeer {
 public:
  static constexpr uint32_t kSlots = 8;

  // A hello like that of the client library.
  [[nodiscard]] static format::HelloRequest Hello(uint32_t shard = 0);
  // The hello with the proof of a token, for a challenge that this function asks for. Returns nullopt without a
  // challenge.
  [[nodiscard]] static std::optional<format::HelloRequest> Proved(const std::string& address, std::string_view token,
                                                                  format::HelloRequest hello = Hello());
  // Asks for a connection with any private data, and waits for the answer.
  RawPeer(const std::string& address, std::span<const std::byte> hello);
  explicit RawPeer(const std::string& address, uint32_t shard = 0);
  RawPeer(const RawPeer&) = delete;
  RawPeer& operator=(const RawPeer&) = delete;

  [[nodiscard]] bool connected() const { return channel_ && channel_->connected(); }
  // The server's message when it accepted or refused. Zeroes if there was no such message.
  [[nodiscard]] format::HelloReply hello() const;
  [[nodiscard]] format::HelloRefusal refusal() const;
  [[nodiscard]] std::span<const std::byte> said() const { return channel_->peer_data(); }
  [[nodiscard]] std::span<const fabric::RemoteRegion> offered() const { return channel_->peer_regions(); }

  // Posts a request with the bytes after it, in a request slot.
  void Post(const format::Request& request, std::string_view rest, uint32_t slot = 0);
  // Posts a message with bytes for the first slot, or without bytes.
  void PostImm(uint32_t imm, std::string_view bytes = "");
  void PostSend(std::string_view message);
  // Writes into a region that the server offered, by the key of a window there or without one.
  void Write(uint32_t region, uint64_t offset, std::string_view bytes, uint32_t window = 0);
  // Returns bytes of such a region, or nullopt if the channel refuses the Read.
  std::optional<std::string> Read(uint32_t region, uint64_t offset, size_t size);

  // Returns the next reply, or nullopt if the channel closes first.
  std::optional<format::Reply> Answer();
  // Waits for the end of the channel. Returns true if the server ends it.
  bool IsClosed();
  // Returns the reason for the end.
  [[nodiscard]] const Status& error() const { return channel_->error(); }
  // Leaves as a dying process does.
  void Leave() { channel_.reset(); }

  [[nodiscard]] static format::Request ReserveRequest(std::string_view key, uint32_t value_size, Ack ack);
  [[nodiscard]] static format::Request CommitRequest(const format::Reply& reserved);
  // Asks for a chunk of the first head's log, of `bytes` bytes.
  [[nodiscard]] static format::Request DelegateRequest(uint32_t bytes);
  [[nodiscard]] static format::Request GiveBackRequest(const format::Reply& chunk);
  // Returns the offset in the pool of a reservation or chunk.
  [[nodiscard]] uint64_t OffsetOf(const format::Reply& given);
  // Returns the offset of the checksum and the value of a reservation.
  [[nodiscard]] uint64_t BodyOffset(const format::Reply& reserved);
  // Returns the bytes that belong at BodyOffset.
  [[nodiscard]] std::string Body(const format::Reply& reserved, std::string_view value) const;

 private:
  void Take(std::span<const fabric::Completion> completions);
  bool PollUntil(const std::function<bool()>& holds);

  std::shared_ptr<fabric::Fabric> fabric_;
  std::unique_ptr<fabric::CompletionQueue> queue_;
  SharedMemory replies_;
  std::unique_ptr<fabric::Region> reply_region_;
  std::vector<std::byte> local_;
  std::unique_ptr<fabric::Region> local_region_;
  std::unique_ptr<fabric::Channel> channel_;
  std::vector<uint32_t> answered_;  // the slots of replies that have arrived
  bool closed_ = false;
  bool read_done_ = false;
};

}  // namespace erda
