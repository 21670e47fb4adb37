// A peer that speaks to a server below the client library: what it may do there, and what it must not.
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
#include "format/messages.h"

namespace erda {

class RawPeer {
 public:
  static constexpr uint32_t kSlots = 8;

  // A hello as the client library's.
  [[nodiscard]] static format::HelloRequest Hello(uint32_t shard = 0);
  // The same hello with the proof of a token, for a challenge that it asks for; nullopt if it is given none.
  [[nodiscard]] static std::optional<format::HelloRequest> Proved(const std::string& address, std::string_view token,
                                                                  format::HelloRequest hello = Hello());
  // Asks with any private data, and waits for the answer.
  RawPeer(const std::string& address, std::span<const std::byte> hello);
  explicit RawPeer(const std::string& address, uint32_t shard = 0);
  RawPeer(const RawPeer&) = delete;
  RawPeer& operator=(const RawPeer&) = delete;

  [[nodiscard]] bool connected() const { return channel_ && channel_->connected(); }
  // The server's words if it accepted, or if it refused; zeroes otherwise.
  [[nodiscard]] format::HelloReply hello() const;
  [[nodiscard]] format::HelloRefusal refusal() const;
  [[nodiscard]] std::span<const std::byte> said() const { return channel_->peer_data(); }
  [[nodiscard]] std::span<const fabric::RemoteRegion> offered() const { return channel_->peer_regions(); }

  // A request with what follows it, in a slot.
  void Post(const format::Request& request, std::string_view rest, uint32_t slot = 0);
  // With bytes for the first slot, or without any.
  void PostImm(uint32_t imm, std::string_view bytes = "");
  void PostSend(std::string_view message);
  // A Write into a region that the server offered, by any key of a window there.
  void Write(uint32_t region, uint64_t offset, std::string_view bytes, uint32_t window = 0);
  // Bytes of such a region; nullopt if the channel does not take it.
  std::optional<std::string> Read(uint32_t region, uint64_t offset, size_t size);

  // The next reply, or nullopt if the channel is closed first.
  std::optional<format::Reply> Answer();
  // Whether the server ends the channel.
  bool IsClosed();
  // Why it ended.
  [[nodiscard]] const Status& error() const { return channel_->error(); }
  // Goes away as a dying process does.
  void Leave() { channel_.reset(); }

  [[nodiscard]] static format::Request ReserveRequest(std::string_view key, uint32_t value_size, Ack ack);
  [[nodiscard]] static format::Request CommitRequest(const format::Reply& reserved);
  // A piece of the first head's log, of so many bytes.
  [[nodiscard]] static format::Request DelegateRequest(uint32_t bytes);
  [[nodiscard]] static format::Request GiveBackRequest(const format::Reply& chunk);
  // Where in the pool that begins which was reserved or delegated.
  [[nodiscard]] uint64_t OffsetOf(const format::Reply& given);
  // Where the checksum and the value of a reservation go.
  [[nodiscard]] uint64_t BodyOffset(const format::Reply& reserved);
  // What belongs there.
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
  std::vector<uint32_t> answered_;  // slots
  bool closed_ = false;
  bool read_done_ = false;
};

}  // namespace erda
