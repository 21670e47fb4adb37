// A completion queue of the verbs fabric. It has one ibv_cq for all sends and receives of its channels, one shared
// receive queue for accepted channels, and one rdma_cm event channel.
#pragma once

#include <rdma/rdma_cma.h>

#include <memory>

#include "fabric/fabric.h"
#include "fabric/verbs/channel_life.h"
#include "fabric/verbs/channel_table.h"
#include "fabric/verbs/cq.h"
#include "fabric/verbs/deliveries.h"
#include "fabric/verbs/device.h"
#include "fabric/verbs/event_channel.h"
#include "fabric/verbs/local_keys.h"
#include "fabric/verbs/look_pace.h"
#include "fabric/verbs/shared_receives.h"
#include "fabric/verbs/wake_ups.h"
#include "fabric/verbs/work_id.h"

namespace erda::fabric::verbs {

class VerbsChannel;

// Brings completions and events to the channels, and completions and messages to the owner. One thread calls it, except
// for Wake.
class VerbsQueue final : public CompletionQueue {
 public:
  static Result<std::unique_ptr<CompletionQueue>> Create(std::shared_ptr<Device> device);

  size_t Poll(std::span<Completion> out) override;
  void Wait(std::chrono::nanoseconds timeout) override;
  bool Arm(std::chrono::nanoseconds* at_most) override;
  [[nodiscard]] int descriptor() const override { return wake_ups_.descriptor(); }
  void Disarm() override;
  void Wake() override { wake_ups_.Ring(); }

  // The rest is for listeners and channels.
  [[nodiscard]] const std::shared_ptr<Device>& device() const { return device_; }
  [[nodiscard]] rdma_event_channel* events() const { return events_.get(); }
  [[nodiscard]] ibv_cq* completions() const { return cq_.get(); }
  [[nodiscard]] ibv_srq* shared_receives() const { return shared_receives_.queue(); }
  [[nodiscard]] LocalKeyCopy& keys() { return keys_; }
  [[nodiscard]] ChannelTable& channels() { return channels_; }

  // Takes a channel in, and makes room for its operations.
  Status Add(VerbsChannel* channel, ChannelLife* life, const ChannelNeeds& needs);
  // Lets a channel go that is about to be destroyed, and drops its completions and messages. Does nothing if the
  // channel was not taken in. REQUIRES: the channel's queue pair is gone.
  void Remove(VerbsChannel* channel);
  // Brings completions of the device to their channels. Returns false if there was none.
  bool TakeCompletions();
  void Complete(const Completion& completion) { deliveries_.Add(completion); }

 private:
  explicit VerbsQueue(std::shared_ptr<Device> device) : device_(std::move(device)), keys_(device_->keys()) {}
  Status Prepare();

  void OnReceive(const ibv_wc& wc);
  [[nodiscard]] const std::byte* DataOf(WorkId receive) const;
  // Posts a receive again whose data nobody needs any more. The receive of a channel that is gone no longer exists.
  void PostAgain(WorkId receive);
  void ReleaseHeld();
  void HandleEvents();
  void LookAtClock();
  void CloseFailed();

  const std::shared_ptr<Device> device_;
  UniqueEventChannel events_;
  Cq cq_;
  WakeUps wake_ups_;
  ChannelTable channels_;
  Population population_;
  SharedReceives shared_receives_;
  LocalKeyCopy keys_;
  Deliveries deliveries_;
  LookPace pace_;
};

}  // namespace erda::fabric::verbs
