// One end of an shm channel, and the queue that receives its completions.
//
// The posting thread executes a one-sided operation at once, as a copy in or out of the peer's memory, which is mapped
// here. Messages go through two rings in memory that both ends map. The Unix socket is a doorbell for an end that does
// not look into its ring. The end of the socket tells that the peer is gone.
//
// PARKING. A Poll looks into the ring of each channel that was active lately, so these channels need no system call.
// The queue parks a channel that stays silent while others talk. It leaves the sleeping flag in the channel's ring set,
// and stops looking into the ring. The peer's next message then rings the doorbell, which the queue hears by epoll. So
// a Poll costs time for the active channels, and not for all connected ones. No peer can keep another from being heard:
// each ring and each socket belongs to two ends alone.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "base/event_fd.h"
#include "base/fifo.h"
#include "base/shared_memory.h"
#include "base/unique_fd.h"
#include "fabric/fabric.h"
#include "fabric/shm/beacon.h"
#include "fabric/shm/memory_map.h"
#include "fabric/shm/ring.h"
#include "fabric/shm/socket.h"

namespace erda::fabric::shm {

class ShmQueue;

class ShmChannel final : public Channel {
 public:
  // Makes the connecting end. It is connected when the answer has come.
  ShmChannel(ShmQueue* queue, MemoryMaps* maps, std::string address, UniqueFd socket, SharedMemory rings,
             uint32_t message_depth);
  // Makes the accepting end.
  ShmChannel(ShmQueue* queue, UniqueFd socket, const Greeting& ask, std::shared_ptr<Mapping> rings,
             std::vector<std::shared_ptr<Mapping>> regions, std::shared_ptr<Beacon> beacon);
  ~ShmChannel() override;

  Status Post(std::span<const WorkRequest> batch) override;
  bool ReadNow(std::span<std::byte> local, RemoteAddress remote) override;
  bool Fence() override;
  [[nodiscard]] bool connected() const override { return state_ == State::kConnected; }
  [[nodiscard]] bool lost() const override { return state_ == State::kFailed || (connected() && PeerIsGone()); }
  [[nodiscard]] std::span<const RemoteRegion> peer_regions() const override { return peer_regions_; }
  [[nodiscard]] std::span<const std::byte> peer_data() const override { return peer_greeting_.private_data(); }
  [[nodiscard]] const Status& error() const override { return error_; }
  [[nodiscard]] bool peer_broke_rules() const override { return peer_broke_rules_; }

 private:
  friend class ShmQueue;
  enum class State { kAsking, kConnected, kFailed };

  void SetUpRings(std::byte* memory, uint32_t depth, bool asking);
  void TakePeer(const Greeting& greeting, std::vector<std::shared_ptr<Mapping>> regions);

  [[nodiscard]] Status CheckBatch(std::span<const WorkRequest> batch);
  // Returns the place where the remote bytes are mapped. Returns null if the peer did not grant this access.
  [[nodiscard]] std::byte* RemoteBytes(RemoteAddress remote, size_t size, Access needed) const;
  [[nodiscard]] std::byte* RemoteBytes(const WorkRequest& work) const {
    return RemoteBytes(work.remote, work.local.size(),
                       work.kind == OpKind::kRead ? Access::kRemoteRead : Access::kRemoteReadWrite);
  }
  size_t Prefetch(const WorkRequest& work) const;
  [[nodiscard]] bool Execute(const WorkRequest& work);
  // Returns true if the peer closed the channel, which the ring tells, or died, which the beacon tells.
  [[nodiscard]] bool PeerIsGone() const { return transmit_.ConsumerIsGone(wrote_) || !PeerLives(); }
  [[nodiscard]] bool PeerLives() const { return !peer_beacon_ || Beacon::IsLit(peer_beacon_->bytes().data()); }

  // The queue calls these three: they take reports of the socket, and messages of the peer.
  void OnSocket();
  void HearSocket();
  void OnAnswer();
  size_t Receive(std::span<Completion> out, std::deque<std::vector<std::byte>>* inbox);
  [[nodiscard]] bool HasMessage();
  void Fail(Status error);
  // Ends the channel: it sends, takes and reports nothing after that.
  void End();

  ShmQueue* const queue_;
  MemoryMaps* const maps_;
  const std::string address_;
  State state_;
  Status error_;
  bool peer_broke_rules_ = false;
  UniqueFd socket_;
  SharedMemory own_rings_;                 // Of the connecting end.
  std::shared_ptr<Mapping> mapped_rings_;  // Of the accepting end.
  Ring transmit_;
  Ring receive_;
  std::shared_ptr<Beacon> own_beacon_;    // Of the accepting end: lit while it has channels.
  std::shared_ptr<Mapping> peer_beacon_;  // Of the connecting end.
  Greeting peer_greeting_;
  std::vector<RemoteRegion> peer_regions_;
  std::vector<std::shared_ptr<Mapping>> peer_memory_;
  bool wrote_ = false;      // There were Writes since a completion last reported that the peer is there.
  bool peer_gone_ = false;  // The socket ended. The ring may still hold messages from before.
  bool parked_ = false;     // The queue does not look into the ring. The peer rings the doorbell for its next message.
  bool heard_ = true;   // The channel received something, or was unparked, since the queue last parked silent channels.
  uint64_t rings_ = 0;  // Rings of the doorbell by the peer.
  bool owes_ring_ = false;  // The peer sleeps, and the doorbell could not be rung yet.
  bool closed_reported_ = false;
  bool fencing_ = false;
};

class ShmQueue final : public CompletionQueue {
 public:
  // The queue parks a channel after this number of looks found its ring empty. Only a Poll that had other messages
  // counts as a look: a queue without work sleeps.
  static constexpr uint32_t kBusyLooksPerPark = 256;

  static Result<std::unique_ptr<ShmQueue>> Create();

  size_t Poll(std::span<Completion> out) override;
  void Wait(std::chrono::nanoseconds timeout) override;
  bool Arm(std::chrono::nanoseconds* at_most) override;
  [[nodiscard]] int descriptor() const override { return epoll_.get(); }
  void Disarm() override;
  void Wake() override;

  // Returns the number of channels that a Poll looks at.
  [[nodiscard]] size_t polled() const { return polled_.size(); }

  Status Add(ShmChannel* channel);
  void Remove(ShmChannel* channel);
  void Complete(const Completion& completion) { ready_.push_back(completion); }
  void CompleteConnected(ShmChannel* channel);
  // Drops the completions of a channel that are not polled yet.
  void Forget(const ShmChannel* channel) {
    ready_.EraseIf([&](const Completion& completion) { return completion.channel == channel; });
  }

 private:
  ShmQueue(EventFd wake, UniqueFd epoll) : wake_(std::move(wake)), epoll_(std::move(epoll)) {}
  [[nodiscard]] bool SomethingToPoll();
  // Returns true if Wake was called since the last Drain of wake_. That is left for a Wait, also if a Poll hears it.
  bool HearSockets(std::chrono::nanoseconds timeout);
  void EndSleep();
  template <class Which>
  void AskForRings(const Which& which);
  [[gnu::noinline]] void CountLook(size_t found, size_t room);
  [[gnu::noinline]] void ParkSilent();
  void CountUnparked();
  void Unpark(ShmChannel* channel);
  // Notes that the channel's peer must be rung. A later Poll does so, and every wait longer than a moment does so
  // first.
  void OweRing(ShmChannel* channel);
  [[gnu::noinline]] void RingAgain();
  void Unwatch(ShmChannel* channel);

  EventFd wake_;
  UniqueFd epoll_;
  std::vector<ShmChannel*> polled_;  // All channels that are not parked.
  size_t parked_ = 0;                // The number of parked channels.
  std::vector<ShmChannel*> owing_;   // Channels with owes_ring_.
  Fifo<Completion> ready_;
  std::deque<std::vector<std::byte>> inbox_;  // Messages that the last Poll gave out.
  size_t first_ = 0;                          // The channel that is polled first; it changes, for fairness.
  uint32_t asking_ = 0;
  uint32_t since_socket_look_ = 0;
  // The number that a Poll with work adds to since_socket_look_. It is larger if channels are parked.
  uint32_t busy_poll_weight_ = 1;
  uint32_t busy_looks_ = 0;  // Polls since ParkSilent that looked into each polled ring and found something.
  friend class ShmChannel;
};

}  // namespace erda::fabric::shm
