// A client's connection to one shard: the channel, what the server said of itself, the request slots.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/fifo.h"
#include "base/shared_memory.h"
#include "client/delegated.h"
#include "client/key_order.h"
#include "client/reading.h"
#include "client/staging.h"
#include "client/time_hint.h"
#include "fabric/fabric.h"
#include "format/activity.h"
#include "format/control_block.h"
#include "format/index_layout.h"
#include "format/messages.h"

namespace erda::client {

class Link {
 public:
  enum class State : uint8_t { kDown, kConnecting, kLoading, kUp };
  static constexpr OpIndex kReportOwner = kNoOp - 1;  // a slot that a report to the server uses
  static constexpr OpIndex kChunkOwner = kNoOp - 2;   // or a request that concerns a chunk
  static constexpr OpIndex kTimeOwner = kNoOp - 3;    // or one for the server's time
  static constexpr OpIndex kFreeSlot = kNoOp;

  Link(fabric::Fabric& fabric, fabric::CompletionQueue& queue, std::string address, uint32_t shard, uint64_t client_id)
      : fabric_(fabric), queue_(queue), address_(std::move(address)), shard_(shard), client_id_(client_id) {}

  // kDown -> kConnecting.
  Status Connect(uint32_t slots_wanted) {
    answer_.reset();
    return Ask(slots_wanted);
  }
  // The server refused, and asks for a proof. Not of one who keeps asking.
  [[nodiscard]] bool IsChallenged() const;
  // A channel, and what the server writes into: other memory for each, since on shm who was connected to, or refused,
  // can still write there.
  struct Connection {
    SharedMemory replies;
    std::unique_ptr<fabric::Region> region;
    std::unique_ptr<fabric::Channel> channel;  // last: it goes before the memory that it uses
  };
  // kConnecting -> kConnecting, with the proof. The connection before is given back, as by Close.
  Status Prove(std::string token, Connection* before);
  // kConnecting -> kLoading: takes what the server said, and asks for the control block. has_token: a server that did
  // not ask for it is refused.
  Status OnConnected(Nanoseconds now, bool has_token);
  // Reads the control block, behind what is gathered; its completion has the id kControlReadId. One that is pending is
  // enough, so whoever wants what the server counts, too, waits for that first.
  static constexpr uint64_t kControlReadId = UINT64_MAX;
  Status ReadControl(bool with_activity = false);
  // What is gathered to be posted together is posted at the latest when it is so much.
  static constexpr size_t kGatheredMax = 32;
  // Posts, behind what is gathered; or gathers, for the next Post or Flush.
  Status Post(std::span<const fabric::WorkRequest> batch) {
    if (gathered_.empty()) return channel()->Post(batch);
    Gather(batch);
    return Flush();
  }
  void Gather(std::span<const fabric::WorkRequest> batch) {
    for (const fabric::WorkRequest& work : batch) gathered_.push_back(work);
  }
  Status Flush();
  [[nodiscard]] size_t gathered() const { return gathered_.size(); }
  // The control block was read; kLoading -> kUp.
  void OnControlRead();
  // Any -> kDown. The connection is given back, for the caller to destroy when no completion of it is left.
  Connection Close();
  // Why the channel was closed, with the server's own words if it refused.
  [[nodiscard]] Status CloseReason() const;

  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] bool up() const { return state_ == State::kUp; }
  [[nodiscard]] uint32_t shard() const { return shard_; }
  [[nodiscard]] uint32_t FirstHead() const { return shard_ * geometry().heads_per_shard; }
  [[nodiscard]] fabric::Channel* channel() const { return connection_.channel.get(); }
  [[nodiscard]] const format::HelloReply& hello() const { return hello_; }
  [[nodiscard]] const format::Geometry& geometry() const { return hello_.geometry; }
  [[nodiscard]] const std::string& address() const { return address_; }
  [[nodiscard]] format::FlushMethod flush_method() const {
    return static_cast<format::FlushMethod>(hello_.flush_method);
  }
  // As of the control block that was read last. No slot if there is no such head, or no such address.
  [[nodiscard]] format::HeadSlot SlotOf(uint32_t head, format::LogAddress address) const {
    const uint32_t in_shard = head - shard_ * geometry().heads_per_shard;  // huge if it is an earlier shard's
    const uint64_t layer = geometry().LayerOf(address);
    if (in_shard >= geometry().heads_per_shard || layer > geometry().more_layers) return {};
    return format::HeadSlot(slots_[format::HeadSlotIndex(geometry(), in_shard, layer) + address.slot()]);
  }
  [[nodiscard]] format::Place PlaceOf(uint32_t head, format::HeadSlot slot, format::LogAddress address) const {
    return {pool_seed_, head, address, slot.generation()};
  }
  // Of the index: as it was told last, by the control block or a Read of its blocks alone.
  [[nodiscard]] const format::IndexLayout& layout() const { return *layout_; }
  // A reading has arrived. They come in any order: the words only grow while the connection lasts.
  void Learn(const Reading& reading);
  // All that has arrived of them: each word had this value at some moment before.
  [[nodiscard]] Reading reading() const {
    return {displacements_, layout_->blocks(), 0, layout_->reaches().number(), time_};
  }
  // The shard's time, the latest that has arrived.
  [[nodiscard]] uint64_t time() const { return time_; }
  void LearnTime(uint64_t time) { time_ = std::max(time_, time); }
  [[nodiscard]] std::span<const std::byte> control() const {
    return std::span(control_).first(control_.size() - sizeof(format::Request));
  }
  // As of the last reading that was with it.
  [[nodiscard]] std::span<const std::byte> activity() const {
    return control().subspan(format::ActivityOffset(geometry()), sizeof(format::ActivityBlock));
  }

  // The pool offset of a log address, and the bytes from there to the end of its segment. False if the address cannot
  // be, or its region is not known (yet).
  bool Resolve(format::HeadSlot slot, format::LogAddress address, uint64_t* offset, uint64_t* bytes) const {
    const uint64_t in_region = geometry().OffsetInRegion(address);
    if (address.none() || slot.none() || slot.region() >= geometry().regions()) return false;
    *offset = geometry().RegionOffset(slot.region()) + in_region;
    *bytes = geometry().segment_size - (in_region & (geometry().segment_size - 1));  // a power of two
    return true;
  }

  // A request slot for an operation, or kNoSlot if all are in use.
  static constexpr uint32_t kNoSlot = UINT32_MAX;
  uint32_t TakeSlot(OpIndex owner);
  void FreeSlot(uint32_t slot);
  [[nodiscard]] bool has_slot() const { return !free_slots_.empty(); }
  // Whose request is in a slot; kFreeSlot also for a number that is none.
  [[nodiscard]] OpIndex OwnerOf(uint32_t slot) const { return slot < owners_.size() ? owners_[slot] : kFreeSlot; }
  [[nodiscard]] uint64_t SlotOffset(uint32_t slot) const { return uint64_t{slot} * hello_.slot_bytes; }
  [[nodiscard]] format::Reply ReplyIn(uint32_t slot) const;

  // Where the one request lies that concerns a chunk and is under way.
  [[nodiscard]] std::span<std::byte> chunk_message() { return std::span(control_).last(sizeof(format::Request)); }
  TimeHint time_hint;
  bool asks_time = false;
  bool reports = false;  // a report of this client is under way
  [[nodiscard]] format::Placing placing() const { return static_cast<format::Placing>(hello_.placing); }
  Delegated delegated;
  Staging staging;
  bool puts_large = false;  // a put came that did not fit into a request

  Fifo<OpIndex> waiting_for_link;
  Fifo<OpIndex> waiting_for_slot;
  Fifo<OpIndex> waiting_for_heads;
  Fifo<OpIndex> waiting_for_staging;
  bool control_read_pending = false;
  uint64_t control_reads = 0;  // that have arrived
  // How many have arrived once one has that is yet to be posted.
  [[nodiscard]] uint64_t NextControlRead() const { return control_reads + (control_read_pending ? 2 : 1); }
  uint32_t times_up = 0;
  uint64_t slot_changes = 0;  // how often the control block told of any

 private:
  // The server's challenge, and what it is answered with; the last of so many.
  struct Answer {
    format::HelloChallenge challenge{};
    std::string token;
    uint32_t number = 0;
  };
  Status Ask(uint32_t slots_wanted);
  // What says so does not hold together; else ok.
  [[nodiscard]] Status CheckHello(const format::HelloReply& hello, bool has_token) const;

  fabric::Fabric& fabric_;
  fabric::CompletionQueue& queue_;
  const std::string address_;
  const uint32_t shard_;
  const uint64_t client_id_;

  State state_ = State::kDown;
  std::optional<Answer> answer_;  // since it was kDown
  uint32_t slots_offered_ = 0;
  format::HelloReply hello_{};
  uint32_t pool_seed_ = 0;
  std::vector<uint64_t> slots_;  // of this shard's heads: format::HeadSlot
  std::vector<uint32_t> runs_;   // of the index, as in the control block
  std::optional<format::IndexLayout> layout_;
  uint64_t displacements_ = 0;
  uint64_t time_ = 0;
  std::vector<fabric::WorkRequest> gathered_;  // to be posted together
  std::vector<OpIndex> owners_;                // by request slot
  std::vector<uint32_t> free_slots_;
  std::vector<std::byte> control_;
  std::unique_ptr<fabric::Region> control_region_;
  Connection connection_;  // last: it goes before the memory that it uses
};

}  // namespace erda::client
