// One direction of a connection: what one end posted, on its way to the other end.
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

// One end of a connection. `channel` is null before there is one, and for ever after it was destroyed or killed.
struct SimEnd {
  // Completions go to the queue in the order of these calls.
  void Complete(OpKind kind, const WorkRequest& request, Code code);
  void Receive(OpKind kind, uint32_t imm, uint32_t bytes, std::vector<std::byte> message);
  // Counts the channel among those that its queue and the offered regions have to outlive.
  void Hold(Channel* held, const ChannelOptions& options);
  void Release();

  std::shared_ptr<SimNode> node;
  Channel* channel = nullptr;
  SimQueue* queue = nullptr;
  std::vector<SimRegion*> offer;
  std::vector<std::byte> peer_data;
  std::vector<RemoteRegion> peer_regions;
  // Of its memory, that the other end may write into; by key.
  struct Window {
    const SimRegion* region = nullptr;
    uint64_t offset = 0;
    uint64_t size = 0;
  };
  std::map<uint32_t, Window> windows;
  std::map<uint32_t, uint64_t> closing;  // by key: the id with which it is told of
  bool connected = false;
  bool fencing = false;
  Status error;
};

class SimLane {
 public:
  SimLane(SimWorld& world, SimLink& link, uint64_t side, SimEnd& from, SimEnd& to)
      : world_(world), link_(link), side_(side), from_(from), to_(to) {}

  // REQUIRES: the requests are within the contract on this side.
  void Post(std::span<const WorkRequest> batch);
  // All in one moment. False if something is ahead of it, or it would fail.
  bool ReadNow(const WorkRequest& request);
  // The other end is there: what was posted may begin.
  void Open();
  // The wire is cut: no operation begins any more, and each piece not placed yet is lost by chance. With keep_completed
  // not those of Writes that have completed.
  void Cut(bool keep_completed);
  // The sending end failed: what has not completed completes with an error.
  void Flush();
  // The receiving end failed: no message arrives any more.
  void LoseMessages();
  // The sending end is gone: nothing completes, and its memory is not touched again.
  void LeaveSource();
  // The receiving end is gone: what is not placed now never is. keep_completed as above.
  void LeaveTarget(bool keep_completed);

  // The last message sent so far arrives at this time, and the last completion comes at that one.
  [[nodiscard]] Nanoseconds delivered_by() const { return delivered_by_; }
  [[nodiscard]] Nanoseconds completed_by() const { return completed_by_; }
  void set_delivered_by(Nanoseconds time) { delivered_by_ = time; }

  // Something that was begun is not placed yet.
  [[nodiscard]] bool places() const;
  // The same through a window.
  [[nodiscard]] bool PlacesThrough(uint32_t window) const;

  // Messages that the receiver has not polled.
  [[nodiscard]] uint64_t unconsumed() const { return unconsumed_; }
  void Consumed() { --unconsumed_; }

 private:
  // Part of a transfer that is not placed yet.
  struct Piece {
    size_t offset = 0;
    size_t size = 0;
    SimEvents::Id placing;
    std::vector<std::byte> kept;  // of a Write that completed: its bytes, for the caller may reuse the buffer
  };
  struct Op {
    WorkRequest request;
    Code code = Code::kOk;
    bool executed = false;
    bool completed = false;
    std::vector<std::byte> message;  // of a Send
    std::map<size_t, Piece> pieces;  // by offset
    SimEvents::Id completion;
    SimEvents::Id delivery;  // {}: no message, or it has arrived, or is lost
  };
  using Ops = std::map<uint64_t, Op>;

  void ExecuteNext();
  void Execute(uint64_t number, Op& op);
  // Cuts a transfer into pieces; returns when the last of them is placed.
  Nanoseconds Scatter(uint64_t number, Op& op);
  std::vector<size_t> Boundaries(const std::byte* remote, size_t size);
  void Place(uint64_t number, size_t offset);
  void Copy(uint64_t number, const Op& op, const Piece& piece);
  void Complete(uint64_t number);
  void Deliver(uint64_t number);

  [[nodiscard]] bool Permitted(const WorkRequest& request) const;
  [[nodiscard]] std::byte* RemoteBytes(const WorkRequest& request) const;
  // From now on the operation does not need its local bytes.
  void Detach(Op& op);
  void LoseMessage(Op& op);
  // What became of a piece that the cut, or the end of the target, caught under way.
  bool Survives(const Op& op, bool keep_completed);
  void LosePieces(Op& op);
  Ops::iterator Retire(Ops::iterator op);
  void At(SimEvents::Id& event, Nanoseconds time, void (SimLane::*action)(uint64_t), uint64_t number);

  SimWorld& world_;
  SimLink& link_;
  const uint64_t side_;
  SimEnd& from_;
  SimEnd& to_;

  Ops ops_;  // posted, and something of it is still to come
  uint64_t posted_ = 0;
  uint64_t next_ = 0;  // the first that is not executed
  bool open_ = false;
  bool cut_ = false;
  bool due_ = false;           // the event that executes next_ is arranged
  Nanoseconds idle_at_{0};     // all that has begun is placed by then
  Nanoseconds written_by_{0};  // the same without Reads
  Nanoseconds completed_by_{0};
  Nanoseconds delivered_by_{0};
  uint64_t unconsumed_ = 0;
};

}  // namespace erda::fabric
