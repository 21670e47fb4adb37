// One end of an shm channel.
//
// The posting thread executes a one-sided operation at once, as a copy in or out of the peer's memory, which is mapped
// here. Messages go through two rings in memory that both ends map. The Unix socket is a doorbell for an end that does
// not look into its ring. The end of the socket tells that the peer is gone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/shared_memory.h"
#include "base/unique_fd.h"
#include "fabric/fabric.h"
#include "fabric/shm/beacon.h"
#include "fabric/shm/doorbell.h"
#include "fabric/shm/memory_map.h"
#include "fabric/shm/peer_memory.h"
#include "fabric/shm/queue.h"
#include "fabric/shm/ring.h"
#include "fabric/shm/ring_memory.h"
#include "fabric/shm/sender.h"
#include "fabric/shm/socket.h"

namespace erda::fabric::shm {

// Belongs to the thread of its queue.
class ShmChannel final : public Channel {
 public:
  // Makes the connecting end. It is connected when the answer has come.
  ShmChannel(ShmQueue* queue, MemoryMaps* maps, std::string address, UniqueFd socket, RingMemory rings);
  // Makes the accepting end.
  ShmChannel(ShmQueue* queue, UniqueFd socket, const Greeting& ask, RingMemory rings, PeerMemory memory,
             std::shared_ptr<Beacon> beacon);
  ~ShmChannel() override;

  Status Post(std::span<const WorkRequest> batch) override;
  bool ReadNow(std::span<std::byte> local, RemoteAddress remote) override;
  bool Fence() override;
  [[nodiscard]] bool connected() const override { return state_ == State::kConnected; }
  [[nodiscard]] bool lost() const override { return state_ == State::kFailed || (connected() && sender_.PeerIsGone()); }
  [[nodiscard]] std::span<const RemoteRegion> peer_regions() const override { return sender_.memory().regions(); }
  [[nodiscard]] std::span<const std::byte> peer_data() const override { return peer_greeting_.private_data(); }
  [[nodiscard]] const Status& error() const override { return error_; }
  [[nodiscard]] bool peer_broke_rules() const override { return peer_broke_rules_; }

  // The queue calls these. OnSocket takes a report of the socket. Receive takes messages of the peer, and keeps their
  // bytes in the inbox. HasMessage returns true if Receive would have something to report.
  void OnSocket();
  [[gnu::noinline]] size_t Receive(std::span<Completion> out, std::deque<std::vector<std::byte>>* inbox);
  [[nodiscard]] bool HasMessage() const { return connected() && (doorbell_.peer_is_gone() || !receive_.IsEmpty()); }
  [[nodiscard]] Ring& receive_ring() { return receive_; }
  [[nodiscard]] Doorbell& doorbell() { return doorbell_; }
  [[nodiscard]] ShmQueue::Notes& notes() { return notes_; }

 private:
  enum class State { kAsking, kConnected, kFailed };

  [[gnu::noinline]] Status PostBatch(std::span<const WorkRequest> batch);
  [[gnu::noinline]] void RingDoorbell();
  void OnAnswer();
  // Fails the channel since the peer broke a rule of the fabric.
  [[gnu::noinline]] void Blame(std::string_view rule);
  // Reports the failure, unless the channel has failed already.
  void Fail(Status error);
  // Ends the channel: it sends, takes and reports nothing after that.
  void End(Status error);
  // Ends the channel, and reports it by kClosed.
  void EndAndTell(Status error);

  ShmQueue* const queue_;
  MemoryMaps* const maps_;  // Of the connecting end.
  const std::string address_;
  State state_;
  Status error_;
  bool peer_broke_rules_ = false;
  Doorbell doorbell_;
  const RingMemory rings_;
  Sender sender_;
  Ring receive_;
  const std::shared_ptr<Beacon> own_beacon_;  // Of the accepting end: lit while it has channels.
  Greeting peer_greeting_;
  ShmQueue::Notes notes_;
};

}  // namespace erda::fabric::shm
