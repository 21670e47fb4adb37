// A listening address of the verbs fabric, and the peers that ask there.
//
// Owns the listening identity, and a share of the device and of the event channel. A peer that asked owns its own
// identity, until a channel does. One thread calls it, except Wake, which any thread may call.
#pragma once

#include <rdma/rdma_cma.h>

#include <memory>
#include <string>

#include "base/event_fd.h"
#include "fabric/fabric.h"
#include "fabric/verbs/device.h"

namespace erda::fabric::verbs {

class VerbsListener final : public Listener {
 public:
  static Result<std::unique_ptr<Listener>> Create(std::shared_ptr<Device> device, std::string_view address);
  ~VerbsListener() override;

  [[nodiscard]] const std::string& address() const override { return address_; }
  std::unique_ptr<Incoming> Poll() override;
  void Wait(std::chrono::nanoseconds timeout) override;
  void Wake() override;

 private:
  explicit VerbsListener(std::shared_ptr<Device> device) : device_(std::move(device)) {}
  Status Prepare(std::string_view address);
  std::unique_ptr<Incoming> Take(const rdma_cm_event& event);

  const std::shared_ptr<Device> device_;
  std::string address_;
  std::shared_ptr<rdma_event_channel> events_;  // Shared with the peers that ask, whose identities are on it.
  rdma_cm_id* id_ = nullptr;
  EventFd doorbell_;
};

}  // namespace erda::fabric::verbs
