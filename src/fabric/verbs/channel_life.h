// The stages of a channel's life, and when a look at the clock moves it on.
#pragma once

#include <string>

#include "base/clock.h"
#include "erda/status.h"

namespace erda::fabric::verbs {

enum class Stage : uint8_t {
  kResolving,  // Asking end: looks for address and route.
  kAsking,     // Asking end: waits for the peer to accept.
  kGreeting,   // Waits for the peer's greeting.
  kConnected,
  kFailed,  // Waits until the queue pair has completed all requests.
  kClosed   // Has reported kClosed.
};

// The end that a failure blames.
enum class Blame : uint8_t { kNobody, kPeer };

// The numbers of a queue's channels that need frequent looks.
struct Population {
  uint32_t connecting = 0;  // Before kConnected.
  uint32_t failing = 0;     // In kFailed.
};

// The step that a look at the clock asks for.
enum class Due : uint8_t {
  kNothing,
  kProbe,      // The peer is silent. The channel must find out whether it is still there.
  kTimeout,    // Connecting has taken too long.
  kDeviceDead  // The device does not give the requests of a failed queue pair back.
};

// The thread of the channel's queue calls it.
class ChannelLife {
 public:
  // The time from the first step of connecting to the last. rdma_cm itself would try for a minute.
  static constexpr std::chrono::seconds kConnectIn{5};
  // The longest wait for a device to give back the requests of a failed queue pair. A sound device gives them back at
  // once.
  static constexpr std::chrono::seconds kFlushIn{2};

  ChannelLife(bool asking, Nanoseconds now) : stage_(asking ? Stage::kResolving : Stage::kGreeting), since_(now) {}
  ~ChannelLife() { Count(-1); }
  ChannelLife(const ChannelLife&) = delete;
  ChannelLife& operator=(const ChannelLife&) = delete;

  // Counts the channel among the queue's. REQUIRES: the population lives as long as this object.
  void Join(Population* population);

  [[nodiscard]] Stage stage() const { return stage_; }
  [[nodiscard]] bool connected() const { return stage_ == Stage::kConnected; }
  // Returns true if the channel has failed. It may be closed, too.
  [[nodiscard]] bool failed() const { return stage_ >= Stage::kFailed; }
  // Returns the reason of the failure, or ok.
  [[nodiscard]] const Status& error() const { return error_; }
  [[nodiscard]] bool peer_broke_rules() const { return peer_broke_rules_; }

  // REQUIRES: the stage is before `stage`, and `stage` is at most kConnected.
  void Advance(Stage stage);
  // Moves to kFailed. REQUIRES: not failed().
  void Fail(Status error, Blame blame, Nanoseconds now);
  // Moves to kClosed. REQUIRES: the stage is kFailed.
  void Close();

  // The peer gave a sign of life.
  void Hear() { heard_ = true; }
  // A probe has completed.
  void OnProbed() { probing_ = false; }
  // Looks at the clock. A connected channel is due once in each period of silence: a kProbe counts as under way.
  [[nodiscard]] Due Look(Nanoseconds now);

 private:
  void MoveTo(Stage stage);
  void Count(int by);

  Stage stage_;
  Nanoseconds since_;   // When the channel began to connect, or to fail.
  bool heard_ = false;  // The peer gave a sign of life since the last look.
  bool probing_ = false;
  Status error_;
  bool peer_broke_rules_ = false;
  Population* population_ = nullptr;
};

}  // namespace erda::fabric::verbs
