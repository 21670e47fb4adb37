#include "server/random_requests.h"

#include <algorithm>
#include <utility>

namespace erda::server {

using format::FlushMethod;

RandomRequests::RandomRequests(std::vector<FlushMethod> flushes, uint64_t seed)
    : flushes_(std::move(flushes)), random_(seed) {}

void RandomRequests::Begin(const format::GeometryWish& wish, uint64_t fillers) {
  ++pools_;
  options_.flush = flushes_.front();
  options_.wish = wish;
  MakeStore(std::make_unique<CrashPool>(wish.pool_size), TakeUp::kOpen);
  reference_ = MakeReference();
  puts_.clear();
  refused_ = 0;
  fillers_ = fillers;
  grows_ = random_.Chance(0.5);
  for (uint64_t i = 0; i < fillers_; ++i) ASSERT_EQ(store_->Inline(Filler(i), Filler(i)).code, Code::kOk);
}

void RandomRequests::MakeStore(std::unique_ptr<CrashPool> pool, TakeUp take_up) {
  if (store_) moves_ += store_->displacements();
  pool_ = pool.get();
  options_.take_up = take_up;
  store_ = std::make_unique<Store>(options_, std::move(pool));
  for (SessionId session = 0; session < kSessions; ++session) store_->SetFlush(session, FlushOf(session));
}

std::unique_ptr<Reference> RandomRequests::MakeReference() const {
  auto reference = std::make_unique<Reference>(flushes_.front());
  for (SessionId session = 0; session < kSessions; ++session) reference->SetFlush(session, FlushOf(session));
  return reference;
}

// Random bytes, so that a part of this value is never whole together with older bytes at its place.
std::string RandomRequests::NewValue() {
  std::string value = std::to_string(++values_);
  for (uint64_t left = random_.Uniform(120); left > 0; --left) value += static_cast<char>(random_.Between('a', 'z'));
  return value;
}

void RandomRequests::During(const std::string& key, const std::string& value, Ack ack) {
  pending_key_ = key;
  pending_value_ = value;
  pending_ack_ = ack;
}

void RandomRequests::Step() {
  if (grows_ && random_.Chance(0.02)) {
    growing_ = true;
    store_->versions().growth().Grow();
    growing_ = false;
  }
  const uint64_t dice = random_.Uniform(100);
  if (dice < 17) {
    InlinePut();
  } else if (dice < 42) {
    ReservePut();
  } else if (dice < 59) {
    LandPut();
  } else if (dice < 74) {
    EndPut();
  } else if (dice < 86) {
    DeleteKey();
  } else if (dice < 90) {
    store_->Sweep();
    reference_->Sweep();
  } else if (dice < 95) {
    EndSession(static_cast<SessionId>(random_.Uniform(kSessions)));
  } else if (dice < 97) {
    store_->Report(RandomKey());
    // A report settles whole versions, as a put of the key does. Gets under kNone see no change by that. The reference
    // has no reports, so a sweep settles these versions in it.
    store_->Sweep();
    reference_->Sweep();
  } else if (dice < 99) {
    CloseAndReopen();
  } else if (refused_ > 10) {
    NewPool();
  }
}

void RandomRequests::InlinePut() {
  const std::string key = RandomKey();
  const std::string value = NewValue();
  const Ack ack = RandomAck();
  During(key, value, ack);
  PutCompanions();
  const Outcome outcome = PutOfOneTrip(key, value, ack);
  PutCompanions();
  store_->PublishTogether();
  Done();
  if (Refused(outcome)) return;
  reference_->Inline(key, value, ack);
}

// Puts in one batch with the next put. They put the values that their keys already have.
void RandomRequests::PutCompanions() {
  store_->PutTogether();
  for (uint64_t n = random_.Uniform(4); n > 0 && fillers_ > 0; --n) {
    const std::string key = Filler(random_.Uniform(fillers_));
    (void)store_->Inline(key, key);
  }
}

// A delegated put takes effect as an inline one does: at once and as a whole.
Outcome RandomRequests::PutOfOneTrip(const std::string& key, const std::string& value, Ack ack) {
  if (random_.Chance(0.03)) store_->versions().delegating().RevokeFull();
  if (random_.Chance(0.1)) store_->versions().delegating().Age();
  if (random_.Chance(0.3)) store_->GiveBack();
  if (random_.Chance(0.5)) {
    const auto session = static_cast<SessionId>(random_.Uniform(kSessions));
    if (const auto outcome = store_->Delegated(key, value, session, ack)) {
      ++delegated_;
      return *outcome;
    }
  }
  return store_->Inline(key, value, ack);
}

void RandomRequests::ReservePut() {
  const std::string key = RandomKey();
  const std::string value = NewValue();
  const Ack ack = RandomAck();
  const auto session = static_cast<SessionId>(random_.Uniform(kSessions));
  PutCompanions();
  const Reserved reserved = store_->Reserve(key, value, session, ack);
  PutCompanions();
  store_->PublishTogether();
  if (Refused(reserved.outcome)) return;
  puts_.push_back({reserved, reference_->Reserve(key, value, ack, session)});
}

bool RandomRequests::Refused(const Outcome& outcome) {
  if (outcome.code == Code::kOk) return false;
  EXPECT_EQ(outcome.code, Code::kResourceExhausted);
  EXPECT_TRUE(outcome.reason == format::Reason::kLogFull ||
              (outcome.reason == format::Reason::kIndexFull && fillers_ > 0));
  ++refused_;
  return true;
}

void RandomRequests::LandPut() {
  Put* put = RandomPut();
  if (put == nullptr || put->handle->whole || !put->handle->live) return;
  if (random_.Chance(0.3)) {
    // At most all but the last byte.
    return store_->LandPart(put->reserved, random_.Uniform(format::kChecksumBytes + put->reserved.value.size()));
  }
  store_->Land(put->reserved);
  reference_->Land(put->handle);
}

// The acknowledgement is the shard's answer to the commit, or the Read after the Write.
void RandomRequests::EndPut() {
  Put* put = RandomPut();
  if (put == nullptr) return;
  if (put->reserved.flushed_by_read && put->handle->whole && put->handle->live) {
    ReadBack(put->reserved);
    reference_->Flushed(put->handle);
  }
  const auto code = store_->Commit(put->reserved);
  EXPECT_EQ(code, reference_->Commit(put->handle));
  if (put->handle->open) return;
  std::swap(*put, puts_.back());
  puts_.pop_back();
}

void RandomRequests::ReadBack(const Reserved& reserved) {
  // The version was settled and moved meanwhile, and another region is in its head slot.
  const format::HeadSlot region = store_->Published(reserved.outcome.head, reserved.outcome.address.slot());
  if (region.none() || region.generation() != reserved.outcome.generation) return;
  ++reads_back_;
  pool_->ReadBack(store_->OffsetOf(reserved), format::ObjectBytes(reserved.key.size(), reserved.value.size()));
}

void RandomRequests::See(const std::string& key, const std::string& value) {
  const Reference::Handle seen = reference_->Seen(key, value);
  const auto put = std::find_if(puts_.begin(), puts_.end(), [&](const Put& p) { return p.handle == seen; });
  if (seen && put != puts_.end() && put->reserved.flushed_by_read) ReadBack(put->reserved);
}

void RandomRequests::DeleteKey() {
  const std::string key = RandomKey();
  During(key, std::string(kAbsent), Ack::kPersisted);
  const Code code = store_->Delete(key);
  Done();
  EXPECT_EQ(code, reference_->Delete(key));
}

void RandomRequests::EndSession(SessionId session) {
  if (random_.Chance(0.3)) (void)store_->LandDelegated(RandomKey(), NewValue(), session);  // its last action
  store_->EndSession(session);
  reference_->EndSession(session);
  std::erase_if(puts_, [&](const Put& put) { return put.reserved.session == session; });
}

void RandomRequests::CloseAndReopen() {
  for (SessionId session = 0; session < kSessions; ++session) EndSession(session);
  const uint64_t moves = store_->displacements();
  store_->CloseAndReopen();
  moves_ += moves;
}

}  // namespace erda::server
