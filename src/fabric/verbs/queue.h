// A completion queue of the verbs fabric. It has one ibv_cq for all sends and receives of its channels, one shared
// receive queue for accepted channels, and one rdma_cm event channel. One thread uses it.
#pragma once

#include <rdma/rdma_cma.h>

#include <algorithm>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/event_fd.h"
#include "base/fifo.h"
#include "base/unique_fd.h"
#include "fabric/fabric.h"
#include "fabric/verbs/device.h"

namespace erda::fabric::verbs {

class VerbsChannel;

class VerbsQueue final : public CompletionQueue {
 public:
  static Result<std::unique_ptr<CompletionQueue>> Create(std::shared_ptr<Device> device);
  ~VerbsQueue() override;

  size_t Poll(std::span<Completion> out) override;
  void Wait(std::chrono::nanoseconds timeout) override;
  bool Arm(std::chrono::nanoseconds* at_most) override;
  [[nodiscard]] int descriptor() const override { return epoll_.get(); }
  void Disarm() override;
  void Wake() override;
  [[nodiscard]] const std::shared_ptr<Device>& device() const { return device_; }

 private:
  friend class VerbsChannel;

  // The id of a receive's work request contains the receive's number. A separate receive's id also contains the
  // channel's number.
  static constexpr uint64_t kReceiveBit = uint64_t{1} << 63;
  static constexpr uint32_t kShared = 0;  // The channel number of a shared receive.
  static uint32_t NumberOf(uint64_t receive) { return static_cast<uint32_t>((receive & ~kReceiveBit) >> 32); }
  // A completion for Poll to return.
  struct Ready {
    Completion completion;
    uint64_t receive = 0;  // Of a kReceive: the receive with its data, which stays until the next Poll.
  };

  explicit VerbsQueue(std::shared_ptr<Device> device) : device_(std::move(device)) {}
  Status Prepare();

  // Operations that a channel may have under way at once.
  struct Needs {
    uint32_t sends = 0;
    uint32_t own_receives = 0;
    uint32_t shared_receives = 0;
  };
  struct Member {
    VerbsChannel* channel = nullptr;  // Null if the number is free.
    Needs needs;
  };
  // Gives the channel a number from 1 on, and makes room for its operations.
  Status Add(VerbsChannel* channel, const Needs& needs);
  void Remove(VerbsChannel* channel);
  void AddQueuePair(uint32_t number, VerbsChannel* channel) { by_queue_pair_[number] = channel; }
  Status GrowEntries(uint32_t entries);

  // The shared receive queue.
  Status GrowShared(uint32_t receives);
  [[nodiscard]] ibv_srq* shared() const { return shared_; }
  std::byte* ReceiveMemory(uint64_t receive, uint32_t* key);
  void Repost(uint64_t receive);

  // Finds the key of local memory, as the fabric knew it at keys_version().
  template <class Holds>
  const LocalKey* FindLocalKey(const Holds& holds) {
    if (keys_version_ != device_->keys().version()) keys_version_ = device_->keys().Copy(&keys_);
    const auto found = std::find_if(keys_.begin(), keys_.end(), holds);
    return found == keys_.end() ? nullptr : &*found;
  }
  [[nodiscard]] uint64_t keys_version() const { return keys_version_; }

  // Returns false if there was no completion.
  bool TakeCompletions();
  void OnCompletion(const ibv_wc& wc);
  void OnReceive(const ibv_wc& wc);
  void HandleEvents();
  void LookAtClock();
  void FinishFailed();
  void Complete(const Completion& completion) { ready_.push_back({completion, 0}); }
  void ReleaseHeld();

  const std::shared_ptr<Device> device_;
  rdma_event_channel* events_ = nullptr;
  ibv_comp_channel* completions_ = nullptr;
  ibv_cq* cq_ = nullptr;
  EventFd wake_;
  UniqueFd epoll_;

  std::vector<Member> members_{1};  // By number; 0 stays free.
  std::unordered_map<uint32_t, VerbsChannel*> by_queue_pair_;
  uint32_t connecting_ = 0;
  uint32_t failing_ = 0;
  uint32_t entries_ = 0;         // Entries of the ibv_cq.
  uint32_t entries_needed_ = 0;  // Entries for the channels' requests.

  ibv_srq* shared_ = nullptr;
  uint32_t shared_most_ = 0;
  uint32_t shared_needed_ = 0;            // Receives for the accepted channels.
  std::vector<OwnMemory> shared_memory_;  // Chunks of receives, all posted or held.
  std::vector<LocalKey> keys_;
  uint64_t keys_version_ = 0;

  Fifo<Ready> ready_;
  std::vector<std::pair<uint64_t, VerbsChannel*>> held_;  // Receives whose data the last Poll returned.
  uint32_t polls_ = 0;
  Nanoseconds looked_at_{0};  // The time of the last look at the clock.
  Nanoseconds kept_alive_at_{0};
};

}  // namespace erda::fabric::verbs
