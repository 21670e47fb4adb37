#include "fabric/verbs/message_credit.h"

#include <algorithm>

namespace erda::fabric::verbs {

MessageRoom MessageCredit::TakeSome(uint32_t messages, uint64_t pushed) {
  if (!Learn(page_->told, pushed)) return MessageRoom::kBrokenRules;
  // While a Read is under way, the device may be writing `asked`.
  if (!Fits(messages) && !asking_ && !Learn(page_->asked, pushed)) return MessageRoom::kBrokenRules;
  if (Fits(messages)) {
    sent_ += messages;
    return MessageRoom::kTaken;
  }
  // No answer makes room for more messages than the depth.
  if (asking_ || messages > depth_) return MessageRoom::kNone;
  asking_ = true;
  return MessageRoom::kAsk;
}

bool MessageCredit::Learn(uint64_t& count, uint64_t pushed) {
  // Acquire: the device placed the count before the completion or message that made this end look.
  const uint64_t consumed = std::atomic_ref(count).load(std::memory_order_acquire);
  if (consumed > pushed) return false;
  known_consumed_ = std::max(known_consumed_, consumed);
  return true;
}

bool MessageCredit::MustTell() {
  if (consumed_ - told_ < std::max(1U, depth_ / 2)) return false;
  told_ = consumed_;
  return true;
}

}  // namespace erda::fabric::verbs
