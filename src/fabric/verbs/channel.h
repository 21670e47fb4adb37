// One end of a verbs channel: a reliable-connected queue pair, and the rdma_cm identity that connects it.
//
//   asking end                                accepting end
//   resolve address, route
//   connect: Knock, data          ----->      an Incoming
//                                             accept (or reject: Knock, data)
//   established                   <-----
//   Greeting                      ----->      knows what the peer offers
//   knows what the peer offers    <-----      Greeting; connected
//   connected
#pragma once

#include <rdma/rdma_cma.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fabric/fabric.h"
#include "fabric/verbs/batch.h"
#include "fabric/verbs/channel_life.h"
#include "fabric/verbs/connection.h"
#include "fabric/verbs/introduction.h"
#include "fabric/verbs/message_credit.h"
#include "fabric/verbs/own_receives.h"
#include "fabric/verbs/peer_offer.h"
#include "fabric/verbs/send_queue.h"
#include "fabric/verbs/windows.h"

namespace erda::fabric::verbs {

class VerbsQueue;

// Joins the parts of an end, and decides what follows from each event and completion. The thread of the queue calls it.
class VerbsChannel final : public Channel {
 public:
  // Makes the connecting end. REQUIRES: the message depth is in bounds.
  static Result<std::unique_ptr<Channel>> Connect(VerbsQueue* queue, std::shared_ptr<Device> device,
                                                  const Address& address, std::string name,
                                                  const ChannelOptions& options);
  // Makes the accepting end. Takes the identity over, unless it fails. REQUIRES: Introduction::Check accepted the
  // options.
  static Result<std::unique_ptr<Channel>> Accept(VerbsQueue* queue, std::shared_ptr<Device> device, rdma_cm_id* id,
                                                 const rdma_conn_param& asked, uint32_t message_depth,
                                                 std::vector<std::byte> peer_data, const ChannelOptions& options);
  ~VerbsChannel() override;

  Status Post(std::span<const WorkRequest> batch) override;
  // Binds the window on this queue pair, so that only its peer can use the key. The bind request precedes any message
  // that tells the peer of the key in the send queue. So the caller need not wait for it.
  Result<uint32_t> OpenWindow(const Region& region, uint64_t offset, uint64_t bytes) override;
  Status CloseWindow(uint32_t key, uint64_t id) override;
  bool Fence() override { return true; }  // Destroying the channel destroys its queue pair.
  [[nodiscard]] bool connected() const override { return life_.connected(); }
  [[nodiscard]] std::span<const RemoteRegion> peer_regions() const override { return peer_.regions(); }
  [[nodiscard]] std::span<const std::byte> peer_data() const override { return peer_.data(); }
  [[nodiscard]] const Status& error() const override { return life_.error(); }
  [[nodiscard]] bool peer_broke_rules() const override { return life_.peer_broke_rules(); }

  // For the channel's queue: what happens to the channel.
  void OnEvent(const rdma_cm_event& event);
  void OnLook(Nanoseconds now);
  void OnSendCompletion(const ibv_wc& wc);
  // Takes the data of a receive. Returns the kind of message to deliver, or nothing if the caller receives none.
  std::optional<OpKind> OnReceive(const ibv_wc& wc, const std::byte* data);
  // The owner of the queue has consumed a message.
  void OnConsumed();
  // Reports kClosed if the channel has failed, and no request of it is left in the queue pair.
  void CloseIfDone();
  [[nodiscard]] OwnReceives& own_receives() { return own_receives_; }

 private:
  VerbsChannel(VerbsQueue* queue, std::shared_ptr<Device> device, std::string name, uint32_t message_depth,
               bool asking);

  // Steps of connecting.
  Status Join(const ChannelOptions& options);
  Status CreatePair();
  Status Ask();
  void Greet() { PostOwn(introduction_.Greet(!asking_)); }
  void OnGreeting(std::span<const std::byte> bytes);

  // Posts a request of the channel itself.
  void PostOwn(const Request& request);
  // Fails the channel if the status is an error. kClosed follows later, when no request is left.
  void FailIf(Status status, Blame blame = Blame::kNobody);
  void DestroyPair();

  VerbsQueue* const queue_;
  const bool asking_;
  Connection connection_;
  ChannelLife life_;
  Introduction introduction_;
  PeerOffer peer_;
  MessageCredit credit_;
  OwnReceives own_receives_;  // Of an asking end. An accepting end uses the receives of its queue.
  Windows windows_;
  SendQueue sends_{peer_, windows_};
  Batch batch_;
};

}  // namespace erda::fabric::verbs
