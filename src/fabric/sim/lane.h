// One direction of a connection: operations that one end posted, on their way to the other end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "fabric/sim/node.h"
#include "fabric/sim/world.h"

namespace erda::fabric {

class SimLink;

// One end of a connection. `channel` is null before a channel exists, and forever after it was destroyed or killed.
struct SimEnd {
  // Adds a completion to the queue, in the order of these calls.
  void Complete(OpKind kind, const WorkRequest& request, Code code);
  void Receive(OpKind kind, uint32_t imm, uint32_t bytes, std::vector<std::byte> message);
  // Counts the channel for its queue and its offered regions, which must outlive it.
  void Hold(Channel* held, const ChannelOptions& options);
  void Release();

  std::shared_ptr<SimNode> node;
  Channel* channel = nullptr;
  SimQueue* queue = nullptr;
  std::vector<SimRegion*> offer;
  std::vector<std::byte> peer_data;
  std::vector<RemoteRegion> peer_regions;
  // Windows in this end's memory into which the other end may write, by key.
  struct Window {
    const SimRegion* region = nullptr;
    uint64_t offset = 0;
    uint64_t size = 0;
  };
  std::map<uint32_t, Window> windows;
  std::map<uint32_t, uint64_t> closing;  // By key: the id of the completion that will report it.
  bool connected = false;
  bool fencing = false;
  Status error;
};

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

  // The times at which the last message sent so far arrives, and at which the last completion comes.
  [[nodiscard]] Nanoseconds delivered_by() const { return delivered_by_; }
  [[nodiscard]] Nanoseconds completed_by() const { return completed_by_; }
  void set_delivered_by(Nanoseconds time) { delivered_by_ = time; }

  // Returns true if a piece of an operation that has begun is not placed yet.
  [[nodiscard]] bool places() const;
  // Returns the same for pieces that go through one window.
  [[nodiscard]] bool PlacesThrough(uint32_t window) const;

  // Returns the number of messages that the receiver has not polled.
  [[nodiscard]] uint64_t unconsumed() const { return unconsumed_; }
  void Consumed() { --unconsumed_; }

 private:
  // A part of a transfer that is not placed yet.
  struct Piece {
    size_t offset = 0;
    size_t size = 0;
    SimEvents::Id placing;
    std::vector<std::byte> kept;  // For a Write that completed: its bytes, since the caller may reuse the buffer.
  };
  struct Op {
    WorkRequest request;
    Code code = Code::kOk;
    bool executed = false;
    bool completed = false;
    std::vector<std::byte> message;  // Of a Send.
    std::map<size_t, Piece> pieces;  // By offset.
    SimEvents::Id completion;
    SimEvents::Id delivery;  // {}: there is no message, or it has arrived, or is lost.
  };
  using Ops = std::map<uint64_t, Op>;

  void ExecuteNext();
  void Execute(uint64_t number, Op& op);
  // Cuts a transfer into pieces. Returns the time at which the last of them is placed.
  Nanoseconds Scatter(uint64_t number, Op& op);
  std::vector<size_t> Boundaries(const std::byte* remote, size_t size);
  void Place(uint64_t number, size_t offset);
  void Copy(uint64_t number, const Op& op, const Piece& piece);
  void Complete(uint64_t number);
  void Deliver(uint64_t number);

  [[nodiscard]] bool Permitted(const WorkRequest& request) const;
  [[nodiscard]] std::byte* RemoteBytes(const WorkRequest& request) const;
  // Makes the operation independent of its local bytes.
  void Detach(Op& op);
  void LoseMessage(Op& op);
  // Decides whether a piece survives that was under way at the cut, or at the end of the target.
  bool Survives(const Op& op, bool keep_completed);
  void LosePieces(Op& op);
  Ops::iterator Retire(Ops::iterator op);
  void At(SimEvents::Id& event, Nanoseconds time, void (SimLane::*action)(uint64_t), uint64_t number);

  SimWorld& world_;
  SimLink& link_;
  const uint64_t side_;
  SimEnd& from_;
  SimEnd& to_;

  Ops ops_;  // Posted operations that are not finished.
  uint64_t posted_ = 0;
  uint64_t next_ = 0;  // The first operation that is not executed.
  bool open_ = false;
  bool cut_ = false;
  bool due_ = false;           // The event that executes next_ is scheduled.
  Nanoseconds idle_at_{0};     // All operations that have begun are placed at this time.
  Nanoseconds written_by_{0};  // The same for Writes only.
  Nanoseconds completed_by_{0};
  Nanoseconds delivered_by_{0};
  uint64_t unconsumed_ = 0;
};

}  // namespace erda::fabric
