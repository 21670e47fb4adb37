// One client: its engine, whose turn it is to call it, and how its calls wait. client.cc has the public calls.
//
// Owns these three. A call of the caller runs inside Call or Start, which refuse misuse (turn.h). The other functions
// are parts of such a call. Poll and RunAll are whole calls. The client's thread calls all of them. Call, Start, Poll
// and RunAll refuse a second thread that calls meanwhile.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "client/engine.h"
#include "client/turn.h"
#include "client/waiter.h"
#include "erda/client.h"

namespace erda {

namespace client {

// Copies a value for the caller. Returns kResourceExhausted if there is no memory for it; that status needs no memory.
template <class Copy>
Status Copied(Copy&& copy) try {
  copy();
  return {};
} catch (const std::bad_alloc&) {
  return Status(Code::kResourceExhausted);
}

inline Result<std::string> CopyOf(std::string_view value) { return std::string(value); }
inline Result<Versioned> CopyOf(const VersionedView& got) {
  return Versioned{std::string(got.value), got.version, got.expires};
}
inline Result<uint64_t> CopyOf(uint64_t version) { return version; }

}  // namespace client

class Client::Impl {
 public:
  Impl(std::unique_ptr<client::Engine> engine, Polling polling, std::chrono::milliseconds timeout, bool wait_for_room)
      : engine_(std::move(engine)), waiter_(*engine_, polling), timeout_(timeout), wait_for_room_(wait_for_room) {}

  client::Engine& engine() { return *engine_; }
  client::Turns& turns() { return turns_; }
  client::Waiter& waiter() { return waiter_; }

  // Runs one call of the caller, which returns an R. If it finds no memory, the R is kResourceExhausted.
  template <class R, class Body>
  R Call(Body&& body) {
    const client::Turn turn(turns_);
    return turn.is_mine() ? OrNoMemory<R>(body) : R(turns_.Refusal());
  }
  // Runs one call that starts an operation. A callback may make such a call.
  template <class Body>
  Status Start(Body&& body) {
    const client::NestedTurn turn(turns_);
    if (!turn.is_mine()) return turns_.Refusal();
    const auto start = [&] {
      if (wait_for_room_ && !turn.is_nested()) MakeRoom();
      return body();
    };
    return OrNoMemory<Status>(start);
  }
  std::chrono::milliseconds Arm() {
    if (std::exchange(armed_, true)) engine_->event_loop().Disarm();
    return std::chrono::ceil<std::chrono::milliseconds>(engine_->event_loop().Arm());
  }
  // Waits until that number of operations have finished, none is in flight, or the time has passed.
  size_t Wait(Nanoseconds timeout, size_t at_least) {
    constexpr Nanoseconds kLongest = std::chrono::hours(24 * 365);
    const Nanoseconds end = SteadyClock::Instance().Now() + std::clamp(timeout, Nanoseconds(0), kLongest);
    const uint64_t before = waiter_.finished();
    const auto left = [&] { return end - SteadyClock::Instance().Now(); };
    bool polled = false;
    waiter_.WaitUntil(
        [&] {
          if (!std::exchange(polled, true)) return false;
          return waiter_.finished() - before >= at_least || engine_->in_flight() == 0 || left() <= Nanoseconds(0);
        },
        left);
    return waiter_.finished() - before;
  }

  // Polls for the caller, and ends the effect of Arm. Returns kInvalidArgument if the call is refused, and
  // kResourceExhausted if a callback finds no memory. Inlined, since most Polls find nothing.
  [[gnu::always_inline]] Code Poll(size_t* finished) try {
    const client::Turn turn(turns_);
    if (!turn.is_mine()) return Code::kInvalidArgument;
    if (armed_) [[unlikely]] {
      armed_ = false;
      engine_->event_loop().Disarm();
    }
    *finished = engine_->Poll();
    return Code::kOk;
  } catch (const std::bad_alloc&) {
    return Code::kResourceExhausted;
  }

  [[nodiscard]] ClientStats Stats() const {
    ClientStats stats = engine_->stats();
    stats.sleeps = waiter_.sleeps();
    return stats;
  }

  Status Connect() {
    const Nanoseconds deadline = SteadyClock::Instance().Now() + timeout_;
    for (;;) {
      auto up = engine_->connections().Connect();
      if (!up.ok()) return up.status();
      if (*up) return {};
      engine_->Poll();
      if (auto status = engine_->connections().TakeConnectError(); !status.ok()) return status;
      if (SteadyClock::Instance().Now() > deadline) {
        return {Code::kTimeout,
                engine_->connections().address() + ": no answer in " + std::to_string(timeout_.count()) + " ms"};
      }
      engine_->event_loop().Wait(std::chrono::milliseconds(1));
    }
  }

  // Runs one asynchronous call to its end. Its callback gets a status.
  template <class Start>
  Status Run(Start&& start) {
    MakeRoom();
    bool finished = false;
    Status result;
    Status started = start([&](Status status) {
      result = std::move(status);
      finished = true;
    });
    if (!started.ok()) return started;
    waiter_.WaitFor([&] { return finished; });
    return result;
  }

  // Runs one asynchronous call to its end. Its callback gets a result.
  template <class T, class Start>
  Result<T> RunFor(Start&& start) {
    MakeRoom();
    std::optional<Result<T>> result;
    Status started = start([&](Result<T> r) { result = std::move(r); });
    if (!started.ok()) return started;
    waiter_.WaitFor([&] { return result.has_value(); });
    return *std::move(result);
  }

  // Runs a get. `take` gets the value, which is valid during that call only.
  template <class Take>
  Status RunGet(Take& take, std::string_view key) {
    VersionedView found;
    const client::Engine::Now now = engine_->GetNow(key, &found);
    if (now == client::Engine::Now::kNo) return RunGetOperation(take, key);
    return now == client::Engine::Now::kValue ? take(found.value) : Status(Code::kNotFound);
  }
  template <class Take, class... What>
  Status RunGetOperation(Take& take, const What&... what) {
    return RunTaking<std::string_view>(
        take, [&](Client::GetCallback&& done) { return engine_->Get(what..., std::move(done)); });
  }
  template <class Take>
  Status RunGetVersioned(Take& take, std::string_view key) {
    VersionedView found;
    const client::Engine::Now now = engine_->GetNow(key, &found);
    if (now != client::Engine::Now::kNo)
      return now == client::Engine::Now::kValue ? take(found) : Status(Code::kNotFound);
    return RunTaking<VersionedView>(
        take, [&](Client::GetVersionedCallback&& done) { return engine_->GetVersioned(key, std::move(done)); });
  }
  template <class View, class Take, class Start>
  Status RunTaking(Take& take, Start&& start) {
    struct State {
      bool finished = false;
      Status status;
      Take& take;
    } state{false, Status(), take};
    MakeRoom();
    // One pointer, so that std::function does not allocate.
    Status started = start([&state](Result<View> got) {
      // This comes first: even if `take` throws, the operation has ended, and the call must not wait for it.
      state.finished = true;
      const Status copied = client::Copied([&] { state.status = got.ok() ? state.take(*got) : got.status(); });
      if (!copied.ok()) state.status = Status(Code::kResourceExhausted);
    });
    if (!started.ok()) return started;
    waiter_.WaitFor([&] { return state.finished; });
    return std::move(state.status);
  }

  // Runs `count` operations, of which start(i, done) begins the one with number i. Returns their results by number.
  template <class T, class View, class Start>
  std::vector<Result<T>> RunAll(size_t count, Start&& start) {
    struct State {
      std::vector<Result<T>> results;
      size_t finished = 0;
    } state;
    // The callbacks use this call's state. So after the first start the call must not return or throw before all
    // operations have finished.
    const Status has_room = client::Copied([&] { state.results.resize(count, Status(Code::kResourceExhausted)); });
    if (!has_room.ok()) return {};
    const client::Turn turn(turns_);
    if (!turn.is_mine()) {
      for (Result<T>& result : state.results) result = turns_.Refusal();
      return std::move(state.results);
    }
    std::exception_ptr thrown;  // By a callback of the caller, for another operation.
    for (size_t i = 0; i < count; ++i) {
      Status status;
      try {
        MakeRoom();
      } catch (...) {
        thrown = std::current_exception();  // There is room: Poll throws after all other work.
      }
      try {
        // Two words, so that std::function does not allocate.
        status = start(i, [&state, i](Result<View> got) {
          ++state.finished;
          const Status copied =
              client::Copied([&] { state.results[i] = got.ok() ? client::CopyOf(*got) : got.status(); });
          if (!copied.ok()) state.results[i] = copied;
        });
      } catch (const std::bad_alloc&) {
        status = Status(Code::kResourceExhausted);
      }
      if (!status.ok()) {
        state.results[i] = std::move(status);
        ++state.finished;
      }
    }
    waiter_.WaitFor([&] { return state.finished == count; });
    if (thrown) std::rethrow_exception(thrown);
    return std::move(state.results);
  }

  // Waits until there is room for one more operation. Asynchronous calls may have filled the queue.
  void MakeRoom() {
    const auto has_room = [&] { return engine_->in_flight() < engine_->queue_depth(); };
    if (!has_room()) waiter_.WaitFor(has_room);
  }

  Status ReadControls() {
    if (auto status = Connect(); !status.ok()) return status;
    const auto are_read = [&] { return engine_->connections().ControlsRead(); };
    waiter_.WaitFor(are_read);
    if (auto status = engine_->connections().BeginReadControls(); !status.ok()) return status;
    waiter_.WaitFor(are_read);
    // The control blocks do not count if a connection ended meanwhile.
    auto up = engine_->connections().Connect();
    if (!up.ok()) return up.status();
    return *up ? Status() : Status(Code::kUnavailable, engine_->connections().address() + ": the connection was lost");
  }

 private:
  template <class R, class Body>
  static R OrNoMemory(Body& body) try {
    return body();
  } catch (const std::bad_alloc&) {
    return R(Status(Code::kResourceExhausted));
  }

  client::Turns turns_;
  std::unique_ptr<client::Engine> engine_;
  client::Waiter waiter_;
  const std::chrono::milliseconds timeout_;
  const bool wait_for_room_;
  bool armed_ = false;
};

}  // namespace erda
