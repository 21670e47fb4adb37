#include "bench/micro/ring.h"

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "bench/micro/inputs.h"
#include "fabric/shm/ring.h"

namespace erda::micro {

namespace {

using fabric::shm::Ring;

// Both ends of a ring in one thread.
class RingMessage {
 public:
  static Result<std::unique_ptr<RingMessage>> Make(size_t bytes) { return std::make_unique<RingMessage>(bytes); }
  explicit RingMessage(size_t bytes)
      : message_(ValueOf(bytes)), received_(bytes), memory_(Ring::Bytes(kDepth) / sizeof(CacheLine) + 1) {
    auto* const memory = reinterpret_cast<std::byte*>(memory_.data());
    producer_ = Ring(memory, kDepth);
    consumer_ = Ring(memory, kDepth);
  }

  void Run() {
    const auto kind = message_.empty() ? fabric::OpKind::kReceiveImm : fabric::OpKind::kReceive;
    if (producer_.Room() == 0) ++failures_;
    producer_.Push({static_cast<uint32_t>(kind), ++sent_, static_cast<uint32_t>(message_.size()), 0},
                   AsBytes(message_));
    if (producer_.Publish()) ++failures_;  // The consumer does not sleep.
    fabric::shm::Descriptor descriptor{};
    if (consumer_.Peek(&descriptor) != Ring::Look::kMessage || descriptor.imm != sent_) ++failures_;
    consumer_.Copy(received_);
    consumer_.Advance();
  }
  [[nodiscard]] Status Check() const { return WrongUnless(failures_ == 0 && AsString(received_) == message_); }

 private:
  static constexpr uint32_t kDepth = 64;
  struct alignas(kCacheLine) CacheLine {
    std::byte bytes[kCacheLine];
  };

  const std::string message_;
  std::vector<std::byte> received_;
  std::vector<CacheLine> memory_;
  Ring producer_;
  Ring consumer_;
  uint32_t sent_ = 0;
  uint64_t failures_ = 0;
};

}  // namespace

void AddRings(Suite& suite) {
  suite.Add("ring_imm", 0, [] { return RingMessage::Make(0); });
  suite.Add(NameOf("ring_message", 64), 0, [] { return RingMessage::Make(64); });
}

}  // namespace erda::micro
