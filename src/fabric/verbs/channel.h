// One end of a verbs channel: a reliable-connected queue pair, and the rdma_cm identity that connects it.
//
// What is posted goes to the queue pair at once, as far as that has room, and waits here for the rest. Each request
// there is remembered until it is known to be done: its own completion says so, or that of a later one.
#pragma once

#include <rdma/rdma_cma.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/fifo.h"
#include "fabric/fabric.h"
#include "fabric/verbs/device.h"
#include "fabric/verbs/handshake.h"

namespace erda::fabric::verbs {

class VerbsQueue;

class VerbsChannel final : public Channel {
 public:
  // The asking end.
  static Result<std::unique_ptr<Channel>> Connect(VerbsQueue* queue, std::shared_ptr<Device> device,
                                                  const Address& address, std::string name,
                                                  const ChannelOptions& options);
  // The accepting end: takes the identity over, unless it fails.
  static Result<std::unique_ptr<Channel>> Accept(VerbsQueue* queue, std::shared_ptr<Device> device, rdma_cm_id* id,
                                                 const rdma_conn_param& asked, uint32_t message_depth,
                                                 std::vector<std::byte> peer_data, const ChannelOptions& options);
  ~VerbsChannel() override;

  // Whether an end can bring this to a channel.
  static Status CheckOffer(const Device& device, const ChannelOptions& options, size_t data_max);

  Status Post(std::span<const WorkRequest> batch) override;
  Result<uint32_t> OpenWindow(const Region& region, uint64_t offset, uint64_t bytes) override;
  Status CloseWindow(uint32_t key, uint64_t id) override;
  bool Fence() override { return true; }  // the queue pair goes with the channel
  [[nodiscard]] bool connected() const override { return state_ == State::kConnected; }
  [[nodiscard]] std::span<const RemoteRegion> peer_regions() const override { return peer_regions_; }
  [[nodiscard]] std::span<const std::byte> peer_data() const override { return peer_data_; }
  [[nodiscard]] const Status& error() const override { return error_; }
  [[nodiscard]] bool peer_broke_rules() const override { return peer_broke_rules_; }

 private:
  friend class VerbsQueue;
  enum class State : uint8_t { kResolving, kAsking, kGreeting, kConnected, kFailed };
  // Whose a request is: the caller's, or the channel's own.
  enum class Purpose : uint8_t {
    kCaller,
    kGreet,
    kTellCredit,
    kAskCredit,
    kKeepAlive,
    kOpenWindow,
    kCloseWindow,
    kLast
  };
  // A memory window of type 2B: bound once, since some drivers bind none anew.
  struct Window {
    ibv_mw* window = nullptr;
    uint32_t key = 0;
    ibv_mw_bind_info bound{};
    ibv_mr* own = nullptr;  // what it is bound in, if that is its own (Limits::windows_have_bounds)
  };

  // A request on its way through this end.
  struct Request {
    WorkRequest work;
    uint32_t local_key = 0;
    Purpose purpose = Purpose::kCaller;
    Window window{};  // of kOpenWindow; of kCloseWindow its key
  };
  // A request that the queue pair has.
  struct Posted {
    uint64_t id = 0;
    uint32_t bytes = 0;
    OpKind kind = OpKind::kRead;
    bool signaled = false;  // the caller wants to hear of it
    Purpose purpose = Purpose::kCaller;
    uint32_t window = 0;  // of kCloseWindow: its key
  };

  VerbsChannel(VerbsQueue* queue, std::shared_ptr<Device> device, rdma_cm_id* id, uint32_t message_depth, bool asking);

  // Connecting (channel.cc)
  Status Begin(const rdma_conn_param& asked, const ChannelOptions& options);
  void GiveBack();
  Status TakeOptions(const ChannelOptions& options);
  Status CreateQueuePair();
  void DestroyQueuePair();
  void TuneQueuePair();
  Status PostOwnReceives();
  void OnEvent(const rdma_cm_event& event);
  void OnAddressResolved();
  void OnRouteResolved();
  void OnRejected(const rdma_cm_event& event);
  void SendGreeting();
  void OnGreeting(std::span<const std::byte> bytes);
  void OnTime(Nanoseconds now);
  // No kClosed yet: that comes when nothing is posted any more.
  void Fail(Status error);
  void FailByPeer();
  void EndConnection();
  void PostLast();
  // True once: when the last of what was posted is completed, and kClosed behind it.
  bool FinishFailed();

  // The data path (channel_datapath.cc)
  Status CheckBatch(std::span<const WorkRequest> batch, uint32_t* messages);
  bool FindLocalKey(std::span<const std::byte> bytes, bool to_write, uint32_t* key);
  bool HasCredit(uint32_t messages);
  [[nodiscard]] bool LearnConsumed(uint64_t consumed);
  void PostOwn(Purpose purpose, const WorkRequest& work, uint32_t local_key) {
    PostOwn({work, local_key, purpose, {}});
  }
  void PostOwn(const Request& request);
  // The device forgets it: its key opens nothing from then on.
  void DropWindow(uint32_t key);
  void PushWaiting();
  size_t PushSome(std::span<const Request> requests);
  [[nodiscard]] uint32_t InQueuePair() const { return posted_end_ - posted_begin_; }
  // One place is kept for what PostLast posts.
  [[nodiscard]] uint32_t Room() const { return static_cast<uint32_t>(posted_.size()) - 1 - InQueuePair(); }
  Posted& PostedAt(uint32_t number) { return posted_[number % posted_.size()]; }
  // The caller hears of its end.
  static bool IsTold(Purpose purpose) { return purpose == Purpose::kCaller || purpose == Purpose::kCloseWindow; }
  void OnSendCompletion(const ibv_wc& wc);
  void CompletePosted(const Posted& posted, Code code);
  void FlushAll();
  void TellCredit();
  [[nodiscard]] bool MayArrive(const ibv_wc& wc);
  void Consumed();

  VerbsQueue* const queue_;
  const std::shared_ptr<Device> device_;
  rdma_cm_id* id_;
  uint32_t number_ = 0;  // in its queue
  uint32_t message_depth_;
  const bool asking_;
  State state_;
  Status error_;
  bool peer_broke_rules_ = false;
  bool closed_reported_ = false;
  bool dead_device_ = false;  // nothing that was posted will be heard of
  Nanoseconds since_{0};      // began to connect, or to fail
  std::string name_;          // of the peer, for messages
  std::vector<std::byte> private_data_;
  std::vector<Region*> offer_;
  std::vector<std::byte> peer_data_;
  std::vector<RemoteRegion> peer_regions_;
  std::vector<OfferedRegion> peer_memory_;

  OwnMemory greeting_;  // to send
  OwnMemory credit_;    // one CreditPage
  OwnMemory receives_;  // of an asking end; an accepting one has its queue's
  uint64_t peer_credit_address_ = 0;
  uint32_t peer_credit_key_ = 0;

  // Messages: how many were posted, and how many of those are known to be consumed; how many arrived and were consumed
  // here, and how many of those the peer was told of.
  uint64_t sent_ = 0;
  uint64_t pushed_ = 0;  // of those, how many the queue pair had
  uint64_t known_consumed_ = 0;
  uint64_t arrived_ = 0;
  uint64_t consumed_ = 0;
  uint64_t told_ = 0;
  bool credit_asked_ = false;
  bool heard_ = false;  // something of the peer, since the last look at the clock
  bool keep_alive_out_ = false;

  std::vector<Window> windows_;  // that are open, or to be closed

  uint32_t inline_bytes_ = 0;
  std::vector<Posted> posted_;  // a ring, by number
  uint32_t posted_begin_ = 0;
  uint32_t posted_end_ = 0;
  uint32_t unsignaled_ = 0;  // requests since the last one that asks for a completion
  uint32_t reads_out_ = 0;   // the caller's Reads among what the queue pair has
  Fifo<Request> waiting_;
  std::vector<Request> batch_;  // of one Post
  LocalKey last_key_;
  uint64_t last_key_version_ = 0;
};

}  // namespace erda::fabric::verbs
