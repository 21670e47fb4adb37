// The room for messages on one channel. The contract allows at most message-depth unconsumed messages in each
// direction.
//
// This end counts the messages that it sent. The peer counts the messages that it consumed, in a page that this end can
// read (CreditPage::consumed). The peer also writes the count here (CreditPage::told) each time it has consumed half
// the depth since it last did so. So an end that alternates requests and answers never has to ask for the count. An end
// without room reads it (CreditPage::asked).
#pragma once

#include <atomic>
#include <cstdint>

#include "fabric/verbs/handshake.h"

namespace erda::fabric::verbs {

// The answer to a wish to send messages.
enum class MessageRoom : uint8_t {
  kTaken,       // There is room, and the messages count as sent.
  kNone,        // There is no room now.
  kAsk,         // There is no room as far as this end knows. The caller must read the peer's count into `asked`.
  kBrokenRules  // The peer counts messages that were never sent.
};

// The counts of one end. The thread of the channel's queue calls it.
class MessageCredit {
 public:
  explicit MessageCredit(uint32_t depth) : depth_(depth) {}
  // REQUIRES: the page is zeroed, and lives as long as this object is used. The peer reads `consumed` and writes
  // `told`.
  void Begin(CreditPage* page) { page_ = page; }
  [[nodiscard]] uint32_t depth() const { return depth_; }
  [[nodiscard]] CreditPage& page() const { return *page_; }

  // Takes room for messages of this end. `pushed` is the number of messages that the queue pair has received so far.
  // REQUIRES: Begin was called, unless there are no messages.
  MessageRoom Take(uint32_t messages, uint64_t pushed) {
    return messages == 0 ? MessageRoom::kTaken : TakeSome(messages, pushed);
  }
  // The peer's count has arrived in `asked`. Take may ask again.
  void OnAnswer() { asking_ = false; }

  // Counts a message that has arrived. Returns false if the peer had no room for it.
  [[nodiscard]] bool Arrive() { return ++arrived_ - consumed_ <= depth_; }
  // Counts a message that the owner has consumed. The peer may read the count from now on.
  void Consume() {
    ++consumed_;
    // Release: the receive is posted again before the peer sees the count.
    std::atomic_ref(page_->consumed).store(consumed_, std::memory_order_release);
  }
  // Returns true if half the depth is consumed and not told. It then counts as told, so the caller must tell it.
  [[nodiscard]] bool MustTell();

 private:
  MessageRoom TakeSome(uint32_t messages, uint64_t pushed);
  // Takes the peer's count over. Returns false if the peer counts more messages than the queue pair has sent. If this
  // end believed that count, more messages than the depth could wait in it.
  [[nodiscard]] bool Learn(uint64_t& count, uint64_t pushed);
  [[nodiscard]] bool Fits(uint32_t messages) const { return sent_ + messages - known_consumed_ <= depth_; }

  const uint32_t depth_;
  CreditPage* page_ = nullptr;
  // Messages that this end posted, and those of them that the peer is known to have consumed.
  uint64_t sent_ = 0;
  uint64_t known_consumed_ = 0;
  bool asking_ = false;  // A Read of the peer's count is under way.
  // Messages of the peer that arrived, those that this end consumed, and those that it told the peer of.
  uint64_t arrived_ = 0;
  uint64_t consumed_ = 0;
  uint64_t told_ = 0;
};

}  // namespace erda::fabric::verbs
