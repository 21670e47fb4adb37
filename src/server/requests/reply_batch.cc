#include "server/requests/reply_batch.h"

#include <cstring>

#include "base/bytes.h"
#include "base/planted.h"
#include "server/requests/request_rules.h"

namespace erda::server {

using format::Reply;

namespace {

// Returns true if the reply tells a client of space for a value that it may write. The client gets this reply even if
// the medium fails. Otherwise the reservation would wait for a value that the client never writes.
bool GivesSpace(uint8_t kind, uint8_t code) {
  return kind == static_cast<uint8_t>(format::RequestOp::kReserve) && code == static_cast<uint8_t>(Code::kOk);
}

}  // namespace

// Inline, since each reply goes through it.
[[gnu::always_inline]] inline void ReplyBatch::AddFromMemory(const Asked& asked, uint8_t kind) {
  const bool like_last = !answered_.empty() && answered_.back().kind == kind && answered_.back().seen == asked.seen;
  if (!like_last) answered_.push_back({kind, 0, asked.seen});
  ++answered_.back().count;
  Add(asked.session, asked.slot,
      std::span(asked.session.reply_memory).subspan(asked.slot * sizeof(Reply), sizeof(Reply)));
}

void ReplyBatch::AddReply(const Asked& asked, uint8_t kind, uint64_t id, const Outcome& outcome, Undone undone) {
  if (holds_later_ && undone != Undone::kMayBe && nvm_.failed()) [[unlikely]] {
    const bool stays = GivesSpace(kind, static_cast<uint8_t>(outcome.code));
    return AddReply(asked, kind, id, stays ? outcome : OfFailedMedium(nvm_), Undone::kMayBe);
  }
  activity_.CountAnswer(kind, outcome.code);
  activity_.CountRequest(asked.session.fabric);
  Reply reply{};
  reply.id = id;
  reply.code = static_cast<uint8_t>(outcome.code);
  reply.reason = static_cast<uint8_t>(outcome.reason);
  reply.address = outcome.address.raw();
  reply.head = outcome.head;
  reply.generation = outcome.generation;
  reply.number = outcome.number;
  reply.header = outcome.header;
  // The memory is free: the slot's last reply has arrived, or the client could not have sent another request in it.
  std::memcpy(asked.session.reply_memory.data() + asked.slot * sizeof(Reply), &reply, sizeof(reply));
  if (holds_later_ && HasToWait(asked, undone)) return waiting_.Add(asked, kind);
  AddFromMemory(asked, kind);
}

bool ReplyBatch::HasToWait(const Asked& asked, Undone undone) {
  if (undone == Undone::kMayBe || Planted(Flaw::kAnsweredBeforeHeld)) return false;
  return undone != Undone::kPlaced || !waiting_.AddPlaced(asked);
}

size_t ReplyBatch::AddHeld(uint64_t held) {
  held_ = held;
  return waiting_.Release(held, [this](const Asked& asked, uint8_t kind) { AddFromMemory(asked, kind); });
}

// A client that asked for the time learns it all the same.
size_t ReplyBatch::AddFailed() {
  const Outcome failed = OfFailedMedium(nvm_);
  return waiting_.ReleaseAll([&](const Asked& asked, uint8_t kind) {
    const auto memory = std::span(asked.session.reply_memory).subspan(asked.slot * sizeof(Reply), sizeof(Reply));
    auto reply = LoadAs<Reply>(memory);
    if (kind != 0 && !GivesSpace(kind, reply.code)) {
      reply.code = static_cast<uint8_t>(failed.code);
      reply.reason = static_cast<uint8_t>(failed.reason);
      reply.number = failed.number;
      std::memcpy(memory.data(), &reply, sizeof(reply));
    }
    AddFromMemory(asked, kind);
  });
}

void ReplyBatch::Add(Session& session, uint32_t imm, std::span<std::byte> reply) {
  if (session.replies.empty()) sessions_.push_back(&session);
  fabric::WorkRequest work;
  work.kind = fabric::OpKind::kWriteImm;
  work.signaled = false;
  work.imm = imm;
  work.local = reply;
  work.remote = {format::kReplyRegion, reply.empty() ? 0 : imm * sizeof(Reply)};
  session.replies.push_back(work);
}

// A channel that fails also reports it by a kClosed completion, so the shard ignores the other codes here.
bool ReplyBatch::Post(Session& session) {
  const Status status = session.channel->Post(session.replies);
  session.replies.clear();
  return status.code() != Code::kResourceExhausted;
}

void ReplyBatch::TimeAnswers() {
  const Nanoseconds now = clock_.Now();
  for (const auto& [kind, count, seen] : answered_) activity_.TimeAnswers(kind, now - seen, count);
  answered_.clear();
}

}  // namespace erda::server
