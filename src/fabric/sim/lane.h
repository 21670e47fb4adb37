// One direction of a connection of the simulated network: operations that one end posted, on their way to the other
// end. The lane executes them in virtual time, and makes by chance the choices that the contract leaves. `from` is the
// end that posts, and `to` the end whose memory the operations use. The one thread of the simulation calls it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>

#include "fabric/sim/end.h"
#include "fabric/sim/lane_times.h"
#include "fabric/sim/operation.h"
#include "fabric/sim/world.h"

namespace erda::fabric {

class SimLink;

class SimLane {
 public:
  SimLane(SimWorld& world, SimLink& link, uint64_t side, SimEnd& from, SimEnd& to)
      : world_(world), link_(link), side_(side), from_(from), to_(to) {}

  // REQUIRES: the requests keep the contract on this side.
  void Post(std::span<const WorkRequest> batch);
  // Executes a Read in one moment. Returns false if an operation is ahead of it, or if it would fail.
  bool ReadNow(const WorkRequest& request);
  // Lets posted operations begin: the other end is there.
  void Open();
  // Cuts the wire. No operation begins any more, and each piece that is not placed yet is lost by chance. With
  // keep_completed, pieces of completed Writes are not lost.
  void Cut(bool keep_completed);
  // The sending end failed: operations that have not completed complete with an error.
  void Flush();
  // The receiving end failed: no message arrives any more.
  void LoseMessages();
  // The sending end is gone: nothing completes, and its memory is not touched again.
  void LeaveSource();
  // The receiving end is gone: pieces that are not placed now are never placed. keep_completed has the meaning that it
  // has in Cut.
  void LeaveTarget(bool keep_completed);

  [[nodiscard]] SimLaneTimes& times() { return times_; }

  // Returns true if a piece of an operation that has begun is not placed yet.
  [[nodiscard]] bool places() const;
  // Returns the same for pieces that go through one window.
  [[nodiscard]] bool PlacesThrough(uint32_t window) const;

  // Returns the number of messages that the receiver has not polled.
  [[nodiscard]] uint64_t unconsumed() const { return unconsumed_; }
  void Consumed() { --unconsumed_; }

 private:
  using Operations = std::map<uint64_t, SimOperation>;  // By number, in the order posted.

  void ExecuteNext();
  void Execute(uint64_t number, SimOperation& op);
  // Cuts a transfer into pieces. Returns the time at which the last of them is placed.
  Nanoseconds Scatter(uint64_t number, SimOperation& op);
  void Place(uint64_t number, size_t offset);
  void Copy(uint64_t number, const SimOperation& op, const SimOperation::Piece& piece);
  void Complete(uint64_t number);
  void Deliver(uint64_t number);

  // Forgets the operation if it is over. Returns the next operation.
  Operations::iterator Retire(Operations::iterator op);
  // Schedules an action for the operation, and stores the event's id.
  void At(SimEvents::Id& event, Nanoseconds time, void (SimLane::*action)(uint64_t), uint64_t number);

  SimWorld& world_;
  SimLink& link_;
  const uint64_t side_;
  SimEnd& from_;
  SimEnd& to_;

  Operations operations_;  // Those that are not over.
  SimLaneTimes times_;
  uint64_t posted_ = 0;
  uint64_t next_ = 0;  // The first operation that is not executed.
  bool open_ = false;
  bool cut_ = false;
  bool due_ = false;  // The event that executes next_ is scheduled.
  uint64_t unconsumed_ = 0;
};

}  // namespace erda::fabric
