// The completions that the next Poll returns, and the messages that the last Poll returned.
#pragma once

#include <utility>
#include <vector>

#include "base/fifo.h"
#include "fabric/fabric.h"
#include "fabric/verbs/work_id.h"

namespace erda::fabric::verbs {

// A receive whose data the owner of the queue is reading.
struct HeldReceive {
  WorkId receive;
  Channel* channel;  // Null if the channel is gone.
};

// The thread of the queue calls it.
class Deliveries {
 public:
  void Add(const Completion& completion) { ready_.push_back({completion, WorkId(0)}); }
  // Adds a kReceive. Its data stays in the receive until the Poll after the one that returns it.
  void AddMessage(const Completion& completion, WorkId receive) { ready_.push_back({completion, receive}); }

  [[nodiscard]] bool empty() const { return ready_.empty(); }
  [[nodiscard]] size_t size() const { return ready_.size(); }
  // Takes the oldest completion. Holds the receive of a message. REQUIRES: not empty().
  void Take(Completion* completion) {
    const Ready& ready = ready_.front();
    *completion = ready.completion;
    if (completion->kind == OpKind::kReceive) held_.push_back({ready.receive, completion->channel});
    ready_.pop_front();
  }

  // Returns the receives of the messages that were taken since the last Release.
  [[nodiscard]] const std::vector<HeldReceive>& held() const { return held_; }
  void Release() { held_.clear(); }

  // Forgets a channel that is going. Calls `free(WorkId)` for the receives of its messages that were not taken. Shared
  // receives stay held. The channel's own receives go with it, and their number may soon be another channel's.
  template <class Free>
  void Forget(const Channel* channel, const Free& free) {
    ready_.EraseIf([&](const Ready& ready) {
      if (ready.completion.channel != channel) return false;
      if (ready.completion.kind == OpKind::kReceive) free(ready.receive);
      return true;
    });
    std::erase_if(held_, [&](const HeldReceive& held) {
      return held.channel == channel && held.receive.channel() != kSharedReceives;
    });
    for (HeldReceive& held : held_) {
      if (held.channel == channel) held.channel = nullptr;
    }
  }

 private:
  struct Ready {
    Completion completion;
    WorkId receive{0};  // Of a kReceive.
  };
  Fifo<Ready> ready_;
  std::vector<HeldReceive> held_;
};

}  // namespace erda::fabric::verbs
