#include "server/requests/inbox.h"

#include <optional>
#include <variant>

namespace erda::server {

using fabric::Completion;
using fabric::OpKind;

// --- When messages arrive

void Inbox::Take(const Completion& completion, Nanoseconds seen) {
  auto& session = *static_cast<Session*>(completion.channel->user);
  if (session.doomed) return;
  switch (completion.kind) {
    case OpKind::kConnected:
      return sessions_.Connect(session);
    case OpKind::kReceiveImm:
      return Receive(session, completion, seen);
    case OpKind::kReceive:  // the protocol has no message of this kind
      return sessions_.Violate(session, "a message that is no request");
    case OpKind::kClosed:
      if (session.channel->peer_broke_rules()) {
        return sessions_.Violate(session, "it broke a rule of the fabric");
      }
      return sessions_.Doom(session);
    case OpKind::kWindowClosed:  // after a failure kClosed follows, and the session's end closes the window
      if (completion.code == Code::kOk) versions_.chunks().OnWindowClosed(session.id, completion.id);
      return;
    default:  // a reply could not be sent, and kClosed follows
      return;
  }
}

void Inbox::Receive(Session& session, const Completion& message, Nanoseconds seen) {
  const uint32_t slot = message.imm & ~format::kAsksTime;
  const bool asks_time = slot != message.imm;
  if (slot >= session.slots) return sessions_.Violate(session, "a message for a slot that it does not have");
  if (asks_time && message.bytes != 0) return sessions_.Violate(session, "a question for the time that carries bytes");
  if (!asks_time && session.read_only) return sessions_.Violate(session, "a request, though it may only read");
  if (!parked_.for_rate.ParkIfTooFast(session, message.imm, seen)) return Hear(session, message.imm, seen);
  if (session.held.size() > session.slots) sessions_.Violate(session, "more requests at once than it has slots");
}

void Inbox::Hear(Session& session, uint32_t imm, Nanoseconds seen) {
  const uint32_t slot = imm & ~format::kAsksTime;
  const bool asks_time = slot != imm;
  if (parked_.Has(session, slot)) {
    return sessions_.Violate(
        session, asks_time ? "a message in a slot where a request waits" : "a request in a slot where another waits");
  }
  if (session.awaiting_hold >= session.slots) [[unlikely]]
    return sessions_.Violate(session, "more requests at once than it has slots");
  const Asked asked{session, slot, seen};
  if (asks_time) return handler_.TellTime(asked);
  const Served served = handler_.Serve(asked, After::kNothing);
  if (!std::holds_alternative<Replied>(served)) [[unlikely]]
    Conclude(asked, served);
}

void Inbox::Conclude(const Asked& asked, const Served& served) {
  if (std::holds_alternative<Replied>(served)) return;
  if (std::holds_alternative<AwaitsRoom>(served)) return parked_.for_room.Park(asked, cleaning_.waiting().rooms());
  if (const auto* awaits = std::get_if<AwaitsWriter>(&served)) return parked_.for_writer.Park(asked, awaits->present);
  if (const auto* awaits = std::get_if<AwaitsMedium>(&served)) return parked_.for_medium.Park(asked, *awaits);
  sessions_.Violate(asked.session, std::get<Violation>(served).what());
}

// --- When requests go on

size_t Inbox::WakeForWriter(size_t limit, bool looks) {
  const auto serve = [this](const Asked& asked) -> std::optional<Present> {
    const Served served = handler_.Serve(asked, After::kWriter);
    if (const auto* awaits = std::get_if<AwaitsWriter>(&served)) return awaits->present;
    Conclude(asked, served);
    return std::nullopt;
  };
  return parked_.for_writer.Wake(limit, looks, serve);
}

size_t Inbox::WakeForMedium() {
  return parked_.for_medium.Wake(versions_.medium_failed(), [this](const Asked& asked) -> std::optional<AwaitsMedium> {
    const Served served = handler_.Serve(asked, After::kMedium);
    if (const auto* awaits = std::get_if<AwaitsMedium>(&served)) return *awaits;
    Conclude(asked, served);
    return std::nullopt;
  });
}

void Inbox::PassTime(Nanoseconds since) {
  parked_.for_writer.PassTime(since, [this](SessionId writer) {
    sessions_.EndOverdue(sessions_.At(writer), "others waited too long for a value that it reserved space for");
  });
  clock_wait_.PassTime(since, [this](SessionId writer) {
    sessions_.EndOverdue(sessions_.At(writer), "values could not expire while it wrote a value with a condition");
  });
}

}  // namespace erda::server
