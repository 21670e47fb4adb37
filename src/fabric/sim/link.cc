#include "fabric/sim/link.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "fabric/sim/fabric.h"

namespace erda::fabric {

namespace {

// Checks that this side keeps the contract.
Status CheckRequest(const SimNode& node, const WorkRequest& request) {
  const size_t size = request.local.size();
  switch (request.kind) {
    case OpKind::kRead:
    case OpKind::kWrite:
    case OpKind::kWriteImm:
      break;
    case OpKind::kSend:
      if (size <= kSendBytesMax) break;
      return {Code::kInvalidArgument, "a message of " + std::to_string(size) + " bytes is too long; at most " +
                                          std::to_string(kSendBytesMax) + " can be sent"};
    default:
      return {Code::kInvalidArgument, "only reads, writes and messages can be posted"};
  }
  if (size > UINT32_MAX) {
    return {Code::kInvalidArgument, "an operation of " + std::to_string(size) + " bytes is too long"};
  }
  if (size > 0 && !node.Knows(request.local)) {
    return {Code::kInvalidArgument, "the " + std::to_string(size) + " local bytes of operation " +
                                        std::to_string(request.id) + " lie in no registered region of node " +
                                        node.name};
  }
  return {};
}

std::vector<RemoteRegion> Describe(const std::vector<SimRegion*>& offer) {
  std::vector<RemoteRegion> regions;
  regions.reserve(offer.size());
  for (const SimRegion* region : offer) {
    const bool windows = region->access() == Access::kRemoteReadWindows;
    regions.push_back({region->bytes().size(), windows ? Access::kRemoteRead : region->access()});
  }
  return regions;
}

std::vector<std::byte> CopyOf(std::span<const std::byte> bytes) { return {bytes.begin(), bytes.end()}; }

}  // namespace

SimLink::SimLink(SimWorld& world, uint32_t message_depth)
    : world_(world),
      number_(++world.links_made),
      message_depth_(message_depth),
      lanes_{{world, *this, 0, ends_[0], ends_[1]}, {world, *this, 1, ends_[1], ends_[0]}} {
  world_.links.emplace(number_, this);
}

SimLink::~SimLink() { world_.links.erase(number_); }

void SimLink::Ask(std::shared_ptr<SimNode> node, Channel* channel, const ChannelOptions& options,
                  std::string_view address) {
  world_.Note("ask", number_, 0, options.private_data.size(), message_depth_, Crc32c(0, options.private_data));
  ends_[0].node = std::move(node);
  ends_[0].Hold(channel, options);
  asked_with_ = Describe(ends_[0].offer);
  ends_[1].peer_data = CopyOf(options.private_data);
  world_.events.At(world_.events.now() + world_.Delay(), [self = shared_from_this(), to = std::string(address)] {
    const auto listener = self->world_.listeners.find(to);
    if (listener == self->world_.listeners.end()) {
      self->Refuse({}, "no server listens there any more");
    } else {
      listener->second->Arrive(self);
    }
  });
}

void SimLink::Accept(Channel* channel, const ChannelOptions& options) {
  world_.Note("accept", number_, 1, options.private_data.size(), 0, Crc32c(0, options.private_data));
  answered_ = true;
  SimEnd& end = ends_[1];
  end.Hold(channel, options);
  // This end is connected before the other one, which may post as soon as it is connected. Later reports to the other
  // end reach it after it is connected.
  const Nanoseconds here = world_.events.now() + world_.Delay();
  const Nanoseconds there = here + world_.Delay();
  world_.events.At(here, [self = shared_from_this()] {
    if (!self->ends_[1].error.ok()) return;
    self->ends_[1].peer_regions = self->asked_with_;
    self->Connected(1);
  });
  lanes_[1].times().DeliverBy(there);
  world_.events.At(there,
                   [self = shared_from_this(), data = CopyOf(options.private_data), regions = Describe(end.offer)] {
                     if (!self->ends_[0].error.ok()) return;
                     self->ends_[0].peer_data = data;
                     self->ends_[0].peer_regions = regions;
                     self->Connected(0);
                     for (SimLane& lane : self->lanes_) lane.Open();
                   });
}

void SimLink::Connected(uint64_t side) {
  world_.Note("connected", number_, side, 0);
  SimEnd& end = ends_[side];
  end.connected = true;
  end.queue->Push({.channel = end.channel, .kind = OpKind::kConnected, .data = {}});
}

void SimLink::Refuse(std::vector<std::byte> private_data, std::string_view why) {
  world_.Note("refuse", number_, 1, private_data.size(), 0, Crc32c(0, private_data));
  answered_ = true;
  const Status refused(Code::kUnavailable, "the connection was refused: " + std::string(why));
  ends_[1].error = refused;
  world_.events.At(world_.events.now() + world_.Delay(),
                   [self = shared_from_this(), refused, data = std::move(private_data)] {
                     self->ends_[0].peer_data = data;
                     self->Fail(0, refused);
                   });
}

Status SimLink::Post(uint64_t side, std::span<const WorkRequest> batch) {
  const SimEnd& end = ends_[side];
  if (!end.error.ok()) return {Code::kUnavailable, "the channel has failed: " + std::string(end.error.message())};
  if (!end.connected) return {Code::kInvalidArgument, "the channel is not connected yet"};
  uint64_t messages = lanes_[side].unconsumed();
  for (const WorkRequest& request : batch) {
    if (Status status = CheckRequest(*end.node, request); !status.ok()) return status;
    if (request.kind == OpKind::kWriteImm || request.kind == OpKind::kSend) ++messages;
  }
  if (messages > message_depth_ && messages > lanes_[side].unconsumed()) {
    return {Code::kResourceExhausted,
            "the peer has not taken the " + std::to_string(message_depth_) + " messages that the channel holds"};
  }
  lanes_[side].Post(batch);
  return {};
}

bool SimLink::ReadNow(uint64_t side, std::span<std::byte> local, RemoteAddress remote) {
  const SimEnd& end = ends_[side];
  if (!end.error.ok() || !end.connected || world_.random.Chance(0.2)) return false;
  WorkRequest request;
  request.local = local;
  request.remote = remote;
  return CheckRequest(*end.node, request).ok() && lanes_[side].ReadNow(request);
}

Result<uint32_t> SimLink::OpenWindow(uint64_t side, const Region& region, uint64_t offset, uint64_t bytes) {
  SimEnd& end = ends_[side];
  if (!end.error.ok()) return Status(Code::kUnavailable, "the channel has failed");
  const auto of = std::ranges::find(end.offer, &region);
  const uint64_t size = region.bytes().size();
  const bool is_within = bytes > 0 && bytes <= size && offset <= size - bytes;
  if (!world_.options.memory_windows || of == end.offer.end() || !is_within ||
      region.access() != Access::kRemoteReadWindows) {
    return Status(Code::kInvalidArgument, "a window needs bytes inside a region that was registered for windows");
  }
  const uint32_t key = ++world_.windows_made;
  end.windows[key] = {*of, offset, bytes};
  world_.Note("window", number_, side, key, offset, bytes);
  return key;
}

Status SimLink::CloseWindow(uint64_t side, uint32_t key, uint64_t id) {
  SimEnd& end = ends_[side];
  if (!end.error.ok()) return {Code::kUnavailable, "the channel has failed"};
  if (end.windows.erase(key) == 0) return {Code::kInvalidArgument, "there is no such window"};
  end.closing[key] = id;
  world_.Note("close window", number_, side, key);
  EndWindow(side, key);
  return {};
}

void SimLink::EndWindow(uint64_t side, uint32_t key) {
  world_.events.At(world_.events.now() + world_.Delay(), [self = shared_from_this(), side, key] {
    SimEnd& closing_end = self->ends_[side];
    if (!closing_end.closing.contains(key)) return;
    if (self->lanes_[1 - side].PlacesThrough(key)) return self->EndWindow(side, key);
    WorkRequest closed;
    closed.id = closing_end.closing.extract(key).mapped();
    closing_end.Complete(OpKind::kWindowClosed, closed, Code::kOk);
  });
}

void SimLink::Cut(bool keep_completed) {
  for (SimLane& lane : lanes_) lane.Cut(keep_completed);
}

void SimLink::Drop() {
  world_.Note("drop", number_, 0, 0);
  ++world_.counts.dropped_channels;
  Cut(!world_.options.lose_completed);
  for (uint64_t side = 0; side < 2; ++side)
    FailLater(side, world_.events.now(), {Code::kUnavailable, "the connection broke"});
}

void SimLink::Deny(uint64_t side) {
  world_.Note("deny", number_, side, 0);
  Cut(!world_.options.lose_completed);
  FailLater(side, lanes_[side].times().completed_by(),
            {Code::kPermissionDenied, "an operation reached outside of what the peer permits"});
  FailLater(1 - side, lanes_[side].times().delivered_by(),
            {Code::kPermissionDenied, "the peer reached outside of what it is permitted"});
}

bool SimLink::Fence(uint64_t side) {
  SimEnd& end = ends_[side];
  if (!end.fencing) {
    world_.Note("fence", number_, side, 0);
    end.fencing = true;
    end.connected = false;
    if (end.error.ok()) end.error = Status(Code::kUnavailable, "it is closed");
    Cut(true);
    lanes_[side].LeaveSource();
    lanes_[1 - side].LoseMessages();
    end.windows.clear();
    end.closing.clear();
    end.queue->Forget(end.channel);
    FailLater(1 - side, lanes_[side].times().delivered_by(), {Code::kUnavailable, "the peer closed the channel"});
  }
  return !WaitsToFence(side);
}

bool SimLink::WaitsToFence(uint64_t side) const { return number_ % 2 == 1 && lanes_[1 - side].places(); }

void SimLink::Leave(uint64_t side, bool killed) {
  SimEnd& end = ends_[side];
  if (end.channel == nullptr) return;
  if (!killed && end.fencing && WaitsToFence(side)) ++world_.counts.unfenced;
  world_.Note(killed ? "killed" : "close", number_, side, 0);
  const bool keep_completed = !killed || !world_.options.lose_completed;
  Cut(keep_completed);
  lanes_[side].LeaveSource();
  lanes_[1 - side].LeaveTarget(keep_completed);
  end.Release();
  end.connected = false;
  if (end.error.ok()) end.error = Status(Code::kUnavailable, killed ? "the process was killed" : "it is closed");
  FailLater(1 - side, killed ? world_.events.now() : lanes_[side].times().delivered_by(),
            {Code::kUnavailable, killed ? "the peer died" : "the peer closed the channel"});
}

void SimLink::Kill(const SimNode& node) {
  for (uint64_t side = 0; side < 2; ++side) {
    if (ends_[side].node.get() == &node) Leave(side, true);
  }
  if (ends_[1].node.get() == &node && !answered_) Refuse({}, "the peer died");
}

void SimLink::FailLater(uint64_t side, Nanoseconds not_before, Status why) {
  world_.events.At(std::max(world_.events.now(), not_before) + world_.Delay(),
                   [self = shared_from_this(), side, reason = std::move(why)] { self->Fail(side, reason); });
}

void SimLink::Fail(uint64_t side, const Status& why) {
  SimEnd& end = ends_[side];
  if (!end.error.ok()) return;
  world_.Note("fail", number_, side, static_cast<uint64_t>(why.code()));
  end.error = why;
  end.connected = false;
  Cut(!world_.options.lose_completed);
  lanes_[1 - side].LoseMessages();
  lanes_[side].Flush();
  if (end.channel == nullptr) return;
  for (const auto& [key, id] : std::exchange(end.closing, {})) {
    WorkRequest closed;
    closed.id = id;
    end.Complete(OpKind::kWindowClosed, closed, Code::kUnavailable);
  }
  end.queue->Push({.channel = end.channel, .kind = OpKind::kClosed, .code = why.code(), .data = {}});
}

}  // namespace erda::fabric
