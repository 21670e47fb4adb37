#include <algorithm>
#include <cstring>
#include <utility>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/planted.h"
#include "server/shard.h"

namespace erda::server {

using fabric::OpKind;
using format::Condition;
using format::Counter;
using format::Reply;
using format::Request;
using format::RequestOp;

namespace {

// Who writes it has so long while others wait.
constexpr Nanoseconds kWriterAwaitedMax = std::chrono::seconds(3);

// A delegated put has its space: if it waited, its client would have to keep its chunk, which may be in the way of what
// it waits for.
bool MayWait(const Request& request) {
  switch (RequestOp{request.op}) {
    case RequestOp::kPutInline:
    case RequestOp::kPutStaged:
    case RequestOp::kReserve:
    case RequestOp::kDelete:
    case RequestOp::kClean:
    case RequestOp::kIncrement:
      return true;
    default:
      return false;
  }
}

bool ConditionIsSound(const Request& request) {
  if (request.condition == static_cast<uint8_t>(Condition::kNone)) return true;
  const RequestOp op{request.op};
  const bool may = op == RequestOp::kPutInline || op == RequestOp::kPutStaged || op == RequestOp::kReserve ||
                   op == RequestOp::kDelete;
  return may && request.condition == static_cast<uint8_t>(Condition::kVersion);
}

// It concerns a place in the pool that the client writes into: anywhere, or in a chunk.
bool PlacesAnywhere(const Request& request) {
  return request.op == static_cast<uint8_t>(RequestOp::kReserve) ||
         request.op == static_cast<uint8_t>(RequestOp::kCommit);
}

bool PlacesInChunk(const Request& request) {
  switch (RequestOp{request.op}) {
    case RequestOp::kDelegate:
    case RequestOp::kPutDelegated:
    case RequestOp::kGiveBack:
      return true;
    default:
      return false;
  }
}

// What is wrong with the numbers of a request for a key; null if they are within the limits. staging_bytes: 0 if there
// is no such buffer.
const char* FaultOf(const Request& request, size_t slot_bytes, size_t staging_bytes, const format::Geometry& geometry) {
  if (request.key_size == 0 || request.key_size > format::kKeyBytesMax) return "a key of no bytes, or too many";
  if (request.ack > static_cast<uint8_t>(Ack::kPersisted)) return "an ack that is none";
  const bool fits_segment = request.value_size <= format::ValueBytesMax(geometry, request.key_size, request.ttl != 0);
  const bool fits_slot = format::InlineValueOffset(request.key_size) + request.value_size <= slot_bytes;
  switch (RequestOp{request.op}) {
    case RequestOp::kPutInline:
      return fits_segment && fits_slot ? nullptr : "a value that does not fit";
    case RequestOp::kIncrement:
      return request.value_size == sizeof(int64_t) && fits_slot ? nullptr : "an increment by something else";
    case RequestOp::kPutStaged:
      if (request.address >= staging_bytes || request.value_size > staging_bytes - request.address) {
        return "a value outside of its staging buffer";
      }
      return fits_segment ? nullptr : "a value that does not fit";
    case RequestOp::kReserve:
    case RequestOp::kPutDelegated:
      return fits_segment ? nullptr : "a value that does not fit";
    case RequestOp::kDelete:
    case RequestOp::kReport:
    case RequestOp::kClean:
      return nullptr;
    case RequestOp::kCommit:
    case RequestOp::kDelegate:
    case RequestOp::kGiveBack:
      break;
  }
  return "an operation that is none";
}

}  // namespace

// --- Requests

// What it says when it is served once more may be something else: the client can still write there.
Violation Shard::Serve(const Asked& asked, After after) {
  Session& session = asked.session;
  const uint32_t slot = asked.slot;
  const auto bytes = session.request_memory.bytes().subspan(uint64_t{slot} * options_.slot_bytes, options_.slot_bytes);
  const auto request = LoadAs<Request>(bytes);  // a private copy: the client can still write to the slot
  if (IsWaiting(session, slot)) return Violation("a request in a slot where another waits");
  if (after != After::kNothing && !MayWait(request)) return Violation("a request that became another while it waited");
  if (!ConditionIsSound(request)) return Violation("a condition that is none, or where none may be");
  if ((!session.writable && PlacesAnywhere(request)) ||
      (!session.writable && !session.windowed && PlacesInChunk(request))) {
    return Violation("a place in the pool, where it may not write");
  }
  Outcome outcome;
  Present present;
  if (request.op == static_cast<uint8_t>(RequestOp::kCommit)) {
    commits_.push_back(
        {{request.key_hash, request.head, format::LogAddress(request.address), request.version, session.id},
         slot,
         request.id,
         asked.seen});
    versions_->BeginCommit(&commits_.back().begun);
    return {};  // answered in EndCommits
  } else if (request.op == static_cast<uint8_t>(RequestOp::kGiveBack)) {
    versions_->delegating().GiveBack(request.head, format::LogAddress(request.address), request.version, session.id);
  } else if (request.op == static_cast<uint8_t>(RequestOp::kDelegate)) {
    const uint32_t first_head = number_ * geometry_.heads_per_shard;
    if (request.head - first_head >= geometry_.heads_per_shard)
      return Violation("it asks for a piece of another's log");
    outcome = versions_->delegating().Delegate(request.head, request.version, request.value_size, session.id,
                                               session.windowed);
    if (session.windowed && outcome.code == Code::kOk) OpenWindow(session, &outcome);
  } else if (session.waiting > 0 && MayWait(request)) {
    Wait(asked);  // after what came before it
    return {};
  } else if (const Violation violation = ServeKeyed(session, request, bytes, &outcome, &present)) {
    return violation;
  }
  if (present.state == Present::State::kUndecided) {
    KeepUndecided({.session = session.id, .slot = slot, .seen = asked.seen, .present = present});
    return {};
  }
  if (outcome.reason == format::Reason::kLogFull && cleaning_.Expects(outcome.head, after == After::kRoom)) {
    Wait(asked);
    return {};
  }
  const bool told = outcome.code == Code::kOk || outcome.code == Code::kNotFound || outcome.code == Code::kConflict;
  if (!told && outcome.reason != format::Reason::kNoChunk) CountRefused(session.fabric);
  Answer(asked, request.op, request.id, outcome);
  return {};
}

void Shard::EndCommits() {
  for (const Commit& commit : commits_) {
    Session& session = *sessions_[commit.begun.session];
    if (session.doomed) continue;
    const auto outcome = versions_->EndCommit(commit.begun);
    if (!outcome) {
      Violate(session, "a commit of what it has not reserved");
      continue;
    }
    if (outcome->code != Code::kOk) CountRefused(session.fabric);
    const Asked asked{session, commit.slot, commit.seen};
    Answer(asked, static_cast<uint8_t>(RequestOp::kCommit), commit.id, *outcome);
  }
  commits_.clear();
}

// Its client sends nothing else in the slot before it is answered.
void Shard::Wait(const Asked& asked) {
  waiting_.push_back({asked.session.id, asked.slot, asked.seen});
  ++asked.session.waiting;
  rooms_seen_ = cleaning_.rooms();
  counters_.Add(Counter::kPutsDelayed);
}

bool Shard::IsWaiting(const Session& session, uint32_t slot) const {
  const auto is_it = [&](const auto& waiting) { return waiting.session == session.id && waiting.slot == slot; };
  return (session.waiting > 0 && std::ranges::any_of(waiting_, is_it)) ||
         (session.undecided > 0 && std::ranges::any_of(undecided_, is_it));
}

size_t Shard::ServeWaiting() {
  rooms_seen_ = cleaning_.rooms();
  const std::deque<Waiting> waiting = std::exchange(waiting_, {});
  for (const Waiting& each : waiting) sessions_[each.session]->waiting = 0;
  for (const auto& [id, slot, seen] : waiting) {
    Session& session = *sessions_[id];
    if (session.doomed) continue;
    if (const Violation violation = Serve({session, slot, seen}, After::kRoom)) Violate(session, violation.what());
  }
  versions_->PublishPuts();
  return waiting.size();
}

void Shard::KeepUndecided(const Undecided& undecided) {
  undecided_.push_back(undecided);
  ++sessions_[undecided.session]->undecided;
}

// What is written may arrive without a message. A look at it takes a checksum of all of it: so it gets rarer, and one
// is enough for all that wait for the same version.
size_t Shard::ServeUndecided(size_t limit, bool looks) {
  const size_t before = undecided_.size();
  std::vector<uint64_t> in_vain;  // versions that were looked at
  for (size_t i = 0; i < std::min(limit, before); ++i) {
    Undecided each = undecided_.front();
    undecided_.pop_front();
    Session& session = *sessions_[each.session];
    --session.undecided;
    const bool due = ++each.polls >= each.next_look || looks;
    if (due) {
      each.next_look = 2 * each.polls;
      each.looked = each.overdue;
    }
    const bool look = due && std::ranges::find(in_vain, each.present.version) == in_vain.end();
    if (!look && versions_->judging().IsUndecided(each.present)) {
      KeepUndecided(each);
      continue;
    }
    const size_t others = undecided_.size();
    if (!session.doomed) {
      const Violation violation = Serve({session, each.slot, each.seen}, After::kWriter);
      if (violation) Violate(session, violation.what());
    }
    const bool goes_on = undecided_.size() > others && undecided_.back().present.version == each.present.version;
    if (!goes_on) continue;
    undecided_.back() = each;
    in_vain.push_back(each.present.version);
  }
  versions_->PublishPuts();
  return before - undecided_.size();
}

// Whoever keeps others waiting for so long is overdue; but its value may be there, and nobody has looked.
void Shard::PassTime(Nanoseconds since) {
  for (Undecided& each : undecided_) {
    if (!std::exchange(each.told, true)) continue;  // it may have come just now
    each.waited += since;
    if (each.waited < kWriterAwaitedMax || !versions_->judging().IsUndecided(each.present)) continue;
    if (!std::exchange(each.overdue, true)) each.next_look = 0;
    Session& writer = *sessions_[each.present.writer];
    if (!each.looked || writer.doomed) continue;
    counters_.Add(Counter::kOverdue);
    TellOf(writer, "ended: others waited too long for a value that it reserved space for");
    Doom(writer);
  }
}

Violation Shard::ServeKeyed(Session& session, const Request& request, std::span<std::byte> slot, Outcome* outcome,
                            Present* present) {
  const char* const fault = FaultOf(request, slot.size(), session.staging.bytes().size(), geometry_);
  if (fault != nullptr) return Violation(fault);
  std::array<char, format::kKeyBytesMax> key_copy;
  std::memcpy(key_copy.data(), slot.data() + sizeof(Request), request.key_size);
  const std::string_view key(key_copy.data(), request.key_size);
  const uint64_t key_hash = HashKey(key, pool_.superblock().hash_seed);
  if (geometry_.ShardOf(key_hash) != number_) return Violation("a key of another shard");
  const Ack ack{request.ack};
  const bool conditional = request.condition != static_cast<uint8_t>(Condition::kNone);
  if (conditional || request.op == static_cast<uint8_t>(RequestOp::kIncrement)) {
    *present = versions_->judging().Judge(key, key_hash);
    if (present->state == Present::State::kUndecided) return {};
    if (present->state == Present::State::kDamaged) {
      *outcome = {Code::kCorruption, format::Reason::kDamaged, {}, 0, {}};
      return {};
    }
  }
  if (conditional && present->version != request.version && !Planted(Flaw::kConditionNotJudged)) {
    outcome->code = Code::kConflict;
    outcome->header.version = present->version;
    return {};
  }

  const auto inline_value = [&] {
    return slot.subspan(format::InlineValueOffset(request.key_size), request.value_size);
  };
  const uint64_t deadline = request.ttl == 0 ? 0 : options_.time->DeadlineIn(request.ttl);
  if (deadline != 0) cleaning_.WillExpire();
  switch (RequestOp{request.op}) {
    case RequestOp::kPutInline:
      *outcome = versions_->puts().PutInline(key, key_hash, inline_value(), ack, deadline);
      return {};
    case RequestOp::kPutStaged:
      *outcome = versions_->puts().PutInline(
          key, key_hash, session.staging.bytes().subspan(request.address, request.value_size), ack, deadline);
      if (outcome->code == Code::kOk) counters_.Add(Counter::kPutsStaged);
      return {};
    case RequestOp::kIncrement:
      *outcome = versions_->puts().Increment(key, key_hash, *present, LoadAs<int64_t>(inline_value()), ack);
      return {};
    case RequestOp::kReserve:
      *outcome = versions_->puts().Reserve(key, key_hash, request.value_size, ack, session.id,
                                           ports_[session.port].flush_method, deadline);
      return {};
    case RequestOp::kPutDelegated: {
      const auto put = versions_->delegating().Put(key, key_hash, request.value_size, request.value_crc, ack,
                                                   format::LogAddress(request.address), session.id, deadline);
      if (put) *outcome = *put;
      if (!put) return Violation("a delegated put whose value is not there, or not where the next one goes");
      return {};
    }
    case RequestOp::kDelete:
      *outcome = versions_->removing().Delete(key, key_hash);
      return {};
    case RequestOp::kReport:
      versions_->Report(key, key_hash);
      return {};
    case RequestOp::kClean:
      cleaning_.Ask();
      return {};
    case RequestOp::kCommit:  // of no key
    case RequestOp::kDelegate:
    case RequestOp::kGiveBack:
      break;
  }
  return Violation("an operation that is none");
}

Violation Shard::TellTime(const Asked& asked) {
  if (IsWaiting(asked.session, asked.slot)) return Violation("a message in a slot where a request waits");
  Outcome outcome;
  outcome.number = options_.time->Micros();
  (void)versions_->clock().Raise();  // to that time at the least: the client that asks Reads the word next
  Answer(asked, 0, 0, outcome);
  return {};
}

void Shard::Answer(const Asked& asked, uint8_t kind, uint64_t id, const Outcome& outcome) {
  Session& session = asked.session;
  activity_.CountAnswer(kind, outcome.code);
  activity_.CountRequest(session.fabric);
  const bool like_last =
      !answered_kinds_.empty() && answered_kinds_.back().kind == kind && answered_kinds_.back().seen == asked.seen;
  if (!like_last) answered_kinds_.push_back({kind, 0, asked.seen});
  ++answered_kinds_.back().count;
  Reply reply{};
  reply.id = id;
  reply.code = static_cast<uint8_t>(outcome.code);
  reply.reason = static_cast<uint8_t>(outcome.reason);
  reply.address = outcome.address.raw();
  reply.head = outcome.head;
  reply.generation = outcome.generation;
  const bool too_many = outcome.reason == format::Reason::kTooManyReservations;
  reply.number = too_many ? options_.reservations_per_client : outcome.number;
  reply.header = outcome.header;
  // The slot's last reply has arrived, or the client could not have sent another request in it.
  const std::span<std::byte> local = std::span(session.reply_memory).subspan(asked.slot * sizeof(Reply), sizeof(Reply));
  std::memcpy(local.data(), &reply, sizeof(reply));
  Say(session, asked.slot, local);
}

void Shard::Say(Session& session, uint32_t imm, std::span<std::byte> reply) {
  if (session.replies.empty()) answered_.push_back(&session);
  fabric::WorkRequest work;
  work.kind = OpKind::kWriteImm;
  work.signaled = false;
  work.imm = imm;
  work.local = reply;
  work.remote = {format::kReplyRegion, reply.empty() ? 0 : imm * sizeof(Reply)};
  session.replies.push_back(work);
}

// On exactly the chunk, without its header. The answer is posted behind it, so whoever has that finds it open.
void Shard::OpenWindow(Session& session, Outcome* outcome) {
  const uint64_t chunk = versions_->log().OffsetOf(outcome->head, outcome->address);
  const uint64_t bytes = format::SpaceOf(outcome->header) - format::kChunkObjectsAt;
  const auto key =
      session.channel->OpenWindow(*ports_[session.port].pool_regions.readable, chunk + format::kChunkObjectsAt, bytes);
  if (key.ok()) {
    session.windows.push_back({outcome->header.version, *key});
    outcome->number = *key;
    return;
  }
  versions_->delegating().GiveBack(outcome->head, outcome->address, outcome->header.version, session.id);
  *outcome = {Code::kResourceExhausted, format::Reason::kNoChunk, {}, 0, {}};
}

// (I8) What is over waits for its window: Handle hears of the end. What has none, since it could not be opened, does
// not. A channel that takes no request has failed, and its end closes all.
void Shard::CloseWindows() {
  versions_->chunks().CloseWindows([&](SessionId id, uint64_t chunk) {
    Session& session = *sessions_[id];
    const auto window = std::ranges::find(session.windows, chunk, &Session::Window::chunk);
    if (window == session.windows.end()) return versions_->chunks().OnWindowClosed(id, chunk);
    (void)session.channel->CloseWindow(window->key, chunk);
    session.windows.erase(window);
  });
}

void Shard::TellTakenBack() {
  versions_->chunks().TellTakenBack([&](SessionId id, format::LogAddress chunk) {
    if (!sessions_[id]->doomed) Say(*sessions_[id], format::kTakesBack | chunk.raw(), {});
  });
}

// They keep what others need; who is called again connects anew.
void Shard::DoomOverdue() {
  versions_->chunks().EndOverdue([&](SessionId id) {
    if (!sessions_[id]->doomed) {
      counters_.Add(Counter::kOverdue);
      TellOf(*sessions_[id], "ended: others waited too long for a piece of the log that it was to give back");
    }
    Doom(*sessions_[id]);
  });
}

void Shard::PostReplies(AllPublished /*proof*/) {
  while (!answered_.empty()) {
    Session* session = answered_.back();
    answered_.pop_back();
    const Status status = session->channel->Post(session->replies);
    session->replies.clear();
    // No room: the client asked more at once than its slots allow, or does not take its replies. A failed channel says
    // so by a completion of its own.
    if (status.code() == Code::kResourceExhausted) {
      Violate(*session, "it takes no answers, or asks more at once than it has slots");
    }
  }
  if (answered_kinds_.empty()) return;
  const Nanoseconds now = options_.clock->Now();
  for (const auto& [kind, count, seen] : answered_kinds_) activity_.TimeAnswers(kind, now - seen, count);
  answered_kinds_.clear();
}

}  // namespace erda::server
