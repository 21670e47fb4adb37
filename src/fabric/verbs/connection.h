// The rdma_cm identity of a channel, and the queue pair that it connects.
#pragma once

#include <rdma/rdma_cma.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "fabric/verbs/address.h"
#include "fabric/verbs/device.h"

namespace erda::fabric::verbs {

// The parts that a queue pair needs.
struct PairParts {
  ibv_cq* completions = nullptr;
  ibv_srq* shared_receives = nullptr;  // Null if the queue pair has separate receives.
  uint32_t own_receives = 0;
  uint32_t sends = 0;
};

// Owns the identity and the queue pair. Each step of connecting returns at once, and an event of rdma_cm follows. A
// Status that is not ok names the peer. The thread of the channel's queue calls it.
class Connection {
 public:
  // `name` is the peer's name, for messages.
  Connection(std::shared_ptr<Device> device, std::string name) : device_(std::move(device)), name_(std::move(name)) {}
  // REQUIRES: the queue pair is gone.
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  [[nodiscard]] Device& device() const { return *device_; }
  [[nodiscard]] const std::string& name() const { return name_; }
  // Returns kUnavailable with the peer's name and the reason.
  [[nodiscard]] Status Refused(std::string_view why) const;
  // Returns the status of a channel whose device refused a request with this error.
  [[nodiscard]] Status DeviceRefused(int error) const;

  // The steps of an asking end, in order. Events name the `owner`.
  Status Resolve(rdma_event_channel* events, SocketAddress peer, void* owner);
  Status ResolveRoute();
  Status Ask(std::span<const std::byte> knock);

  // The steps of an accepting end, in order. Takes the identity of a peer that asks; it belongs to the caller again
  // after GiveBack. Before Migrate, its events do not come to `events`.
  void Adopt(rdma_cm_id* id, void* owner);
  Status Migrate(rdma_event_channel* events);
  Status Accept(const rdma_conn_param& asked);  // Ends with TuneReceives.
  void GiveBack();

  // Makes the queue pair. The device gives as many bytes inline as it can, up to a limit.
  Status CreatePair(const PairParts& parts);
  // Shortens the time after which the peer may ask again when it found no receive. REQUIRES: the queue pair is
  // connected.
  void TuneReceives();
  // Makes the queue pair flush its requests, and tells the peer of the end.
  void Disconnect();
  // REQUIRES: the queue pair is disconnected, and has no windows.
  void DestroyPair();

  // Returns null before CreatePair and after DestroyPair.
  [[nodiscard]] ibv_qp* pair() const { return id_ == nullptr ? nullptr : id_->qp; }
  // The numbers of the queue pair: requests in its send queue, and bytes that it sends inline.
  [[nodiscard]] uint32_t sends() const { return sends_; }
  [[nodiscard]] uint32_t inline_bytes() const { return inline_bytes_; }
  // Returns true if the device completes no request of the queue pair any more.
  [[nodiscard]] bool device_dead() const { return device_dead_; }
  void DeclareDeviceDead() { device_dead_ = true; }

 private:
  const std::shared_ptr<Device> device_;
  const std::string name_;
  rdma_cm_id* id_ = nullptr;
  uint32_t sends_ = 0;
  uint32_t inline_bytes_ = 0;
  bool device_dead_ = false;
};

}  // namespace erda::fabric::verbs
