// One end of a verbs channel: a reliable-connected queue pair, and the rdma_cm identity that connects it.
//
// Posted requests go to the queue pair at once, as long as it has room; the rest wait here. The channel remembers each
// request in the queue pair until it is known to be done, by its completion or by a later one.
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
  // Makes the connecting end.
  static Result<std::unique_ptr<Channel>> Connect(VerbsQueue* queue, std::shared_ptr<Device> device,
                                                  const Address& address, std::string name,
                                                  const ChannelOptions& options);
  // Makes the accepting end. Takes the identity over, unless it fails.
  static Result<std::unique_ptr<Channel>> Accept(VerbsQueue* queue, std::shared_ptr<Device> device, rdma_cm_id* id,
                                                 const rdma_conn_param& asked, uint32_t message_depth,
                                                 std::vector<std::byte> peer_data, const ChannelOptions& options);
  ~VerbsChannel() override;

  // Checks whether an end can bring these options to a channel.
  static Status CheckOffer(const Device& device, const ChannelOptions& options, size_t data_max);

  Status Post(std::span<const WorkRequest> batch) override;
  Result<uint32_t> OpenWindow(const Region& region, uint64_t offset, uint64_t bytes) override;
  Status CloseWindow(uint32_t key, uint64_t id) override;
  bool Fence() override { return true; }  // Destroying the channel destroys its queue pair.
  [[nodiscard]] bool connected() const override { return state_ == State::kConnected; }
  [[nodiscard]] std::span<const RemoteRegion> peer_regions() const override { return peer_regions_; }
  [[nodiscard]] std::span<const std::byte> peer_data() const override { return peer_data_; }
  [[nodiscard]] const Status& error() const override { return error_; }
  [[nodiscard]] bool peer_broke_rules() const override { return peer_broke_rules_; }

 private:
  friend class VerbsQueue;
  enum class State : uint8_t { kResolving, kAsking, kGreeting, kConnected, kFailed };
  // The origin of a request: the caller, or the channel itself.
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
  // A memory window of type 2B. It is bound once, since some drivers bind no window a second time.
  struct Window {
    ibv_mw* window = nullptr;
    uint32_t key = 0;
    ibv_mw_bind_info bound{};
    // The region in which the window is bound, if it has a separate one (Limits::windows_have_bounds).
    ibv_mr* own = nullptr;
  };

  // A request on its way through this end.
  struct Request {
    WorkRequest work;
    uint32_t local_key = 0;
    Purpose purpose = Purpose::kCaller;
    Window window{};  // Of kOpenWindow. For kCloseWindow, its key.
  };
  // A request in the queue pair.
  struct Posted {
    uint64_t id = 0;
    uint32_t bytes = 0;
    OpKind kind = OpKind::kRead;
    bool signaled = false;  // The caller wants its completion.
    Purpose purpose = Purpose::kCaller;
    uint32_t window = 0;  // Of kCloseWindow: its key.
  };

  VerbsChannel(VerbsQueue* queue, std::shared_ptr<Device> device, rdma_cm_id* id, uint32_t message_depth, bool asking);

  // Connecting (channel.cc).
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
  // Reports no kClosed yet: that comes when no request is left.
  void Fail(Status error);
  void FailByPeer();
  void EndConnection();
  void PostLast();
  // Returns true once: when the last posted request has completed, and kClosed was reported after it.
  bool FinishFailed();

  // The data path (channel_datapath.cc).
  Status CheckBatch(std::span<const WorkRequest> batch, uint32_t* messages);
  bool FindLocalKey(std::span<const std::byte> bytes, bool to_write, uint32_t* key);
  bool HasCredit(uint32_t messages);
  [[nodiscard]] bool LearnConsumed(uint64_t consumed);
  void PostOwn(Purpose purpose, const WorkRequest& work, uint32_t local_key) {
    PostOwn({work, local_key, purpose, {}});
  }
  void PostOwn(const Request& request);
  // Makes the device forget the window. Its key opens nothing after that.
  void DropWindow(uint32_t key);
  void PushWaiting();
  size_t PushSome(std::span<const Request> requests);
  [[nodiscard]] uint32_t InQueuePair() const { return posted_end_ - posted_begin_; }
  // One place is kept for the request of PostLast.
  [[nodiscard]] uint32_t Room() const { return static_cast<uint32_t>(posted_.size()) - 1 - InQueuePair(); }
  Posted& PostedAt(uint32_t number) { return posted_[number % posted_.size()]; }
  // Returns true if the caller receives the completion.
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
  uint32_t number_ = 0;  // The channel's number in its queue.
  uint32_t message_depth_;
  const bool asking_;
  State state_;
  Status error_;
  bool peer_broke_rules_ = false;
  bool closed_reported_ = false;
  bool dead_device_ = false;  // The device will complete no posted request.
  Nanoseconds since_{0};      // When the channel began to connect, or to fail.
  std::string name_;          // The peer's name, for messages.
  std::vector<std::byte> private_data_;
  std::vector<Region*> offer_;
  std::vector<std::byte> peer_data_;
  std::vector<RemoteRegion> peer_regions_;
  std::vector<OfferedRegion> peer_memory_;

  OwnMemory greeting_;  // The greeting to send.
  OwnMemory credit_;    // One CreditPage.
  OwnMemory receives_;  // Of a connecting end. An accepting end uses the receives of its queue.
  uint64_t peer_credit_address_ = 0;
  uint32_t peer_credit_key_ = 0;

  // Numbers of messages. This end has posted sent_ of them, and knows that the peer consumed known_consumed_ of those.
  // From the peer arrived_ came, this end consumed consumed_ of those, and has told the peer of told_.
  uint64_t sent_ = 0;
  uint64_t pushed_ = 0;  // Of sent_: messages in the queue pair, or done.
  uint64_t known_consumed_ = 0;
  uint64_t arrived_ = 0;
  uint64_t consumed_ = 0;
  uint64_t told_ = 0;
  bool credit_asked_ = false;
  bool heard_ = false;  // The peer sent something since the last look at the clock.
  bool keep_alive_out_ = false;

  std::vector<Window> windows_;  // Windows that are open, or are to be closed.

  uint32_t inline_bytes_ = 0;
  std::vector<Posted> posted_;  // A ring, by number.
  uint32_t posted_begin_ = 0;
  uint32_t posted_end_ = 0;
  uint32_t unsignaled_ = 0;  // Requests since the last one that asks for a completion.
  uint32_t reads_out_ = 0;   // Reads of the caller in the queue pair.
  Fifo<Request> waiting_;
  std::vector<Request> batch_;  // Requests of one Post.
  LocalKey last_key_;
  uint64_t last_key_version_ = 0;
};

}  // namespace erda::fabric::verbs
