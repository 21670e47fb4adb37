// The common part of the random tests: random requests of several sessions to few keys. Values land whole, torn or
// never. Sessions die, the store closes cleanly, and logs get full. The class sends all requests to a store and to the
// reference.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "server/crash_pool.h"
#include "server/reference.h"
#include "server/store.h"

namespace erda::server {

class RandomRequests {
 public:
  RandomRequests(const RandomRequests&) = delete;
  RandomRequests& operator=(const RandomRequests&) = delete;

 protected:
  static constexpr uint64_t kKeys = 6;
  static constexpr SessionId kSessions = 4;

  struct Put {
    Reserved reserved;
    Reference::Handle handle;
  };

  // The sessions have these methods in turn.
  RandomRequests(std::vector<format::FlushMethod> flushes, uint64_t seed);
  virtual ~RandomRequests() = default;

  // Begins again by Begin, with another pool. Step calls it when the log has been full for some time.
  virtual void NewPool() = 0;
  // fillers: the number of keys that fill the index, so that entries move when another key comes.
  void Begin(const format::GeometryWish& wish, uint64_t fillers);
  void MakeStore(std::unique_ptr<CrashPool> pool, TakeUp take_up);
  [[nodiscard]] std::unique_ptr<Reference> MakeReference() const;

  void Step();
  // A reader has seen the value. With read-after-write, its Read brings the value to the medium.
  void See(const std::string& key, const std::string& value);
  [[nodiscard]] uint64_t moves() const { return moves_ + store_->displacements(); }

  static std::string Key(uint64_t i) { return "key" + std::to_string(i); }
  static std::string Filler(uint64_t i) { return "filler" + std::to_string(i); }

  const std::vector<format::FlushMethod> flushes_;
  Random random_;
  CrashPool* pool_ = nullptr;
  std::unique_ptr<Store> store_;
  std::unique_ptr<Reference> reference_;
  std::vector<Put> puts_;  // Puts that have not ended.
  // During an inline put or a delete, and after a crash in it, the old state or this one may be found. The reference
  // has the old state.
  std::string pending_key_;
  std::string pending_value_;
  Ack pending_ack_ = Ack::kPlaced;
  uint64_t fillers_ = 0;
  bool grows_ = false;  // the index sometimes grows, if it is full enough
  bool growing_ = false;
  int pools_ = 0;
  int reads_back_ = 0;

 private:
  std::string RandomKey() { return Key(random_.Uniform(kKeys)); }
  std::string NewValue();
  Ack RandomAck() { return random_.Chance(0.5) ? Ack::kPlaced : Ack::kPersisted; }
  Put* RandomPut() { return puts_.empty() ? nullptr : &puts_[random_.Uniform(puts_.size())]; }
  [[nodiscard]] format::FlushMethod FlushOf(SessionId session) const { return flushes_[session % flushes_.size()]; }
  void During(const std::string& key, const std::string& value, Ack ack);
  void Done() { pending_key_.clear(); }

  void InlinePut();
  void PutCompanions();
  Outcome PutOfOneTrip(const std::string& key, const std::string& value, Ack ack);
  void ReservePut();
  bool Refused(const Outcome& outcome);
  void LandPut();
  void EndPut();
  void ReadBack(const Reserved& reserved);
  void DeleteKey();
  void EndSession(SessionId session);
  void CloseAndReopen();

  StoreOptions options_;
  uint64_t moves_ = 0;  // the moves of earlier stores
  uint64_t values_ = 0;
  int refused_ = 0;
  int delegated_ = 0;  // the number of delegated puts
};

}  // namespace erda::server
