// A completion queue of the verbs fabric: one ibv_cq for all that its channels send and receive, one shared receive
// queue for those that it accepted, one rdma_cm event channel, and one thread.
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

  // A receive's number is in the identity of its work request, with the channel's number for one of its own.
  static constexpr uint64_t kReceiveBit = uint64_t{1} << 63;
  static constexpr uint32_t kShared = 0;  // the channel number of a receive that all share
  static uint32_t NumberOf(uint64_t receive) { return static_cast<uint32_t>((receive & ~kReceiveBit) >> 32); }
  // What Poll is to give out.
  struct Ready {
    Completion completion;
    uint64_t receive = 0;  // of a kReceive: whose memory its data is, until the next Poll
  };

  explicit VerbsQueue(std::shared_ptr<Device> device) : device_(std::move(device)) {}
  Status Prepare();

  // What a channel may have under way at once.
  struct Needs {
    uint32_t sends = 0;
    uint32_t own_receives = 0;
    uint32_t shared_receives = 0;
  };
  struct Member {
    VerbsChannel* channel = nullptr;  // null where the number is free
    Needs needs;
  };
  // Gives the channel a number, from 1 on, and sees to it that there is room for what it needs.
  Status Add(VerbsChannel* channel, const Needs& needs);
  void Remove(VerbsChannel* channel);
  void AddQueuePair(uint32_t number, VerbsChannel* channel) { by_queue_pair_[number] = channel; }
  Status GrowEntries(uint32_t entries);

  // The shared receive queue.
  Status GrowShared(uint32_t receives);
  [[nodiscard]] ibv_srq* shared() const { return shared_; }
  std::byte* ReceiveMemory(uint64_t receive, uint32_t* key);
  void Repost(uint64_t receive);

  // The key of local memory, as the fabric knew it at keys_version().
  template <class Holds>
  const LocalKey* FindLocalKey(const Holds& holds) {
    if (keys_version_ != device_->keys().version()) keys_version_ = device_->keys().Copy(&keys_);
    const auto found = std::find_if(keys_.begin(), keys_.end(), holds);
    return found == keys_.end() ? nullptr : &*found;
  }
  [[nodiscard]] uint64_t keys_version() const { return keys_version_; }

  // False if there was nothing.
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

  std::vector<Member> members_{1};  // by number; 0 stays free
  std::unordered_map<uint32_t, VerbsChannel*> by_queue_pair_;
  uint32_t connecting_ = 0;
  uint32_t failing_ = 0;
  uint32_t entries_ = 0;         // that the cq has
  uint32_t entries_needed_ = 0;  // by the channels' own requests

  ibv_srq* shared_ = nullptr;
  uint32_t shared_most_ = 0;
  uint32_t shared_needed_ = 0;            // by the accepted channels
  std::vector<OwnMemory> shared_memory_;  // chunks of receives, all posted or held
  std::vector<LocalKey> keys_;
  uint64_t keys_version_ = 0;

  Fifo<Ready> ready_;
  std::vector<std::pair<uint64_t, VerbsChannel*>> held_;  // receives whose data the last Poll gave out
  uint32_t polls_ = 0;
  Nanoseconds looked_at_{0};  // at the clock
  Nanoseconds kept_alive_at_{0};
};

}  // namespace erda::fabric::verbs
