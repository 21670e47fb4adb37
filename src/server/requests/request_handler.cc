#include "server/requests/request_handler.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/planted.h"
#include "server/requests/request_rules.h"
#include "server/sessions/windows.h"

namespace erda::server {

using format::Condition;
using format::Counter;
using format::Reason;
using format::Request;
using format::RequestOp;

namespace {

// Returns true if the request changes the key's entry, and may wait for that.
bool ChangesKey(const Request& request) {
  const RequestOp op{request.op};
  return op != RequestOp::kPutDelegated && op != RequestOp::kReport && op != RequestOp::kClean;
}

// Returns true if the client uses a chunk that it has, or gives it back. The shard takes note of that even if its
// medium has failed.
bool ConcernsOwnChunk(const Request& request) {
  const RequestOp op{request.op};
  return op == RequestOp::kPutDelegated || op == RequestOp::kGiveBack;
}

bool IsConditional(const Request& request) { return request.condition != static_cast<uint8_t>(Condition::kNone); }

}  // namespace

// Inline, since most requests have a key.
[[gnu::always_inline]] inline Served RequestHandler::ServeKeyed(Session& session, const Request& request,
                                                                std::span<std::byte> slot, Outcome* outcome) {
  if (const Violation violation = CheckNumbers(request, slot.size(), session, domain_.geometry)) return violation;
  std::array<char, format::kKeyBytesMax> key_copy;
  std::memcpy(key_copy.data(), slot.data() + sizeof(Request), request.key_size);
  const std::string_view key(key_copy.data(), request.key_size);
  const uint64_t key_hash = HashKey(key, domain_.hash_seed);
  if (domain_.geometry.ShardOf(key_hash) != domain_.shard) return Violation("a key of another shard");

  if (versions_.holds_later() && ChangesKey(request)) {
    if (const auto awaited = Awaited(key, key_hash)) return AwaitsMedium{*awaited, key_hash};
  }
  Present present;
  if (IsConditional(request) || request.op == static_cast<uint8_t>(RequestOp::kIncrement)) {
    if (const auto ended = Judge(request, key, key_hash, &present, outcome)) return *ended;
  }
  const auto inline_value = [&] {
    return slot.subspan(format::InlineValueOffset(request.key_size), request.value_size);
  };
  const Ack ack{request.ack};
  const uint64_t deadline = request.ttl == 0 ? 0 : options_.time->DeadlineIn(request.ttl);
  if (deadline != 0) cleaning_.WillExpire();
  switch (RequestOp{request.op}) {
    case RequestOp::kPutInline:
      *outcome = versions_.puts().PutInline(key, key_hash, inline_value(), ack, deadline);
      break;
    case RequestOp::kPutStaged:
      *outcome = versions_.puts().PutInline(
          key, key_hash, session.staging.bytes().subspan(request.address, request.value_size), ack, deadline);
      if (outcome->code == Code::kOk) counters_.Add(Counter::kPutsStaged);
      break;
    case RequestOp::kIncrement:
      *outcome = versions_.puts().Increment(key, key_hash, present, LoadAs<int64_t>(inline_value()), ack);
      break;
    case RequestOp::kReserve:
      *outcome =
          versions_.puts().Reserve(key, key_hash, request.value_size, ack, session.id, session.flush_method, deadline);
      if (outcome->reason == Reason::kTooManyReservations) outcome->number = options_.reservations_per_client;
      break;
    case RequestOp::kPutDelegated: {
      bool waits = false;
      if (versions_.holds_later()) [[unlikely]] {
        if (versions_.medium_failed()) {
          versions_.delegating().Refuse(key_hash, format::LogAddress(request.address), session.id);
          *outcome = OfFailedMedium(versions_.nvm());
          return Replied{};
        }
        waits = Awaited(key, key_hash).has_value();
      }
      const auto put = versions_.delegating().Put(key, key_hash, request.value_size, request.value_crc, ack,
                                                  format::LogAddress(request.address), session.id, deadline, waits);
      if (!put) return Violation("a delegated put without its value, or not at the chunk's next free place");
      *outcome = *put;
      return Replied{};
    }
    case RequestOp::kDelete: {
      const auto deleted = versions_.removing().Delete(key, key_hash);
      if (const auto* awaited = std::get_if<Present>(&deleted)) {
        return AwaitsMedium{*awaited, key_hash, awaited->key_hash != key_hash};
      }
      *outcome = std::get<Outcome>(deleted);
      return Replied{};
    }
    case RequestOp::kReport:
      versions_.Report(key, key_hash);
      return Replied{};
    case RequestOp::kClean:
      cleaning_.Ask();
      return Replied{};
    default:  // a request without a key, or none
      return Violation("an unknown operation");
  }
  if (present.deadline != 0 && outcome->code == Code::kOk) [[unlikely]]
    versions_.JudgedBy(present.deadline);
  return Replied{};
}

Served RequestHandler::Serve(const Asked& asked, After after) {
  Session& session = asked.session;
  const auto slot =
      session.request_memory.bytes().subspan(uint64_t{asked.slot} * options_.slot_bytes, options_.slot_bytes);
  const auto request = LoadAs<Request>(slot);  // a private copy
  if (after != After::kNothing && !MayWait(request)) return Violation("a request whose bytes changed while it waited");
  if (const Violation violation = CheckRights(request, session)) return violation;
  if (versions_.holds_later() && versions_.medium_failed() && !ConcernsOwnChunk(request)) [[unlikely]]
    return Refuse(asked, request);
  Outcome outcome;
  switch (RequestOp{request.op}) {
    case RequestOp::kCommit:
      commits_.Begin(asked, request);
      return Replied{};  // the end of the commit adds the reply
    case RequestOp::kGiveBack:
      versions_.delegating().GiveBack(request.head, format::LogAddress(request.address), request.version, session.id);
      break;
    case RequestOp::kDelegate:
      if (const Served served = Delegate(session, request, &outcome); !std::holds_alternative<Replied>(served)) {
        return served;
      }
      break;
    default:
      // A session's requests wait in order: this one comes after those that wait already.
      if (session.awaiting_room > 0 && MayWait(request)) return AwaitsRoom{};
      if (const Served served = ServeKeyed(session, request, slot, &outcome);
          !std::holds_alternative<Replied>(served)) {
        return served;
      }
  }
  if (outcome.reason == Reason::kLogFull && cleaning_.waiting().Expects(outcome.head, after == After::kRoom)) {
    return AwaitsRoom{};
  }
  const bool told = outcome.code == Code::kOk || outcome.code == Code::kNotFound || outcome.code == Code::kConflict;
  if (!told && outcome.reason != Reason::kNoChunk) sessions_.CountRefused(session.fabric);
  const Undone undone = versions_.holds_later() ? UndoneOf(request, outcome.code) : Undone::kNever;
  replies_.AddReply(asked, request.op, request.id, outcome, undone);
  return Replied{};
}

// The client does not commit again. So the reservation ends as after any commit, and only the answer is an error.
Served RequestHandler::Refuse(const Asked& asked, const Request& request) {
  sessions_.CountRefused(asked.session.fabric);
  if (request.op == static_cast<uint8_t>(RequestOp::kCommit)) {
    commits_.Begin(asked, request);
  } else {
    replies_.AddReply(asked, request.op, request.id, OfFailedMedium(versions_.nvm()), Undone::kMayBe);
  }
  return Replied{};
}

Served RequestHandler::Delegate(Session& session, const Request& request, Outcome* outcome) {
  const format::Geometry& geometry = domain_.geometry;
  const uint32_t first_head = domain_.shard * geometry.heads_per_shard;
  if (request.head - first_head >= geometry.heads_per_shard) return Violation("it asks for a piece of another's log");
  *outcome = versions_.delegating().Delegate(request.head, request.version, request.value_size, session.id,
                                             session.windowed());
  if (session.windowed() && outcome->code == Code::kOk) OpenWindow(versions_, session, outcome);
  return Replied{};
}

std::optional<Served> RequestHandler::Judge(const Request& request, std::string_view key, uint64_t key_hash,
                                            Present* present, Outcome* outcome) {
  *present = versions_.judging().Judge(key, key_hash);
  if (present->state == Present::State::kUndecided) {
    if (versions_.judging().AwaitsMedium(*present)) return AwaitsMedium{*present, key_hash};
    return AwaitsWriter{*present};
  }
  if (present->state == Present::State::kDamaged) {
    *outcome = {Code::kCorruption, Reason::kDamaged, {}, 0, {}};
    return Replied{};
  }
  if (IsConditional(request) && present->version != request.version && !Planted(Flaw::kConditionNotJudged)) {
    outcome->code = Code::kConflict;
    outcome->header.version = present->version;
    return Replied{};
  }
  return std::nullopt;
}

std::optional<Present> RequestHandler::Awaited(std::string_view key, uint64_t key_hash) const {
  if (auto deleted = versions_.removing().AwaitedDelete(key, key_hash)) return deleted;
  return for_medium_.AheadOf(key_hash);
}

// Raises the clock's word at least to the time of the reply: the client that asks Reads the word next.
void RequestHandler::TellTime(const Asked& asked) {
  Outcome outcome;
  const uint64_t micros = options_.time->Micros();
  const uint64_t word = versions_.part().clock().Raise();
  // The word may stand still. Then a time past the word would make the client ask again at once. If the word stands
  // until the medium holds the shard's note of the time, the answer waits for that, too.
  const bool stands = word * 1000 + 999 < micros;
  const bool waits = stands && !versions_.part().clock().stands() && !versions_.medium_failed();
  outcome.number = stands && !waits ? word * 1000 + 999 : micros;
  replies_.AddReply(asked, 0, 0, outcome, waits ? Undone::kNever : Undone::kMayBe);
}

}  // namespace erda::server
