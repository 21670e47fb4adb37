// Real RDMA: reliable-connected queue pairs, which rdma_cm connects. docs/fabric.md describes it.
//
// Owns a share of its device, and nothing else. Any thread may call it.
#pragma once

#include <memory>

#include "fabric/fabric.h"
#include "fabric/verbs/device.h"

namespace erda::fabric::verbs {

class VerbsFabric final : public Fabric {
 public:
  static Result<std::unique_ptr<Fabric>> Open(std::string_view address, Role role);

  [[nodiscard]] std::string_view scheme() const override { return "verbs"; }
  [[nodiscard]] Capabilities capabilities() const override { return device_->capabilities(); }
  Result<std::shared_ptr<Fabric>> ForReaders() override;
  Result<std::unique_ptr<Region>> Register(const MemoryView& memory, Access access) override;
  Result<std::unique_ptr<CompletionQueue>> CreateQueue() override;
  Result<std::unique_ptr<Listener>> Listen(std::string_view address) override;
  Result<std::unique_ptr<Channel>> Connect(std::string_view address, const ChannelOptions& options) override;

 private:
  explicit VerbsFabric(std::shared_ptr<Device> device) : device_(std::move(device)) {}
  const std::shared_ptr<Device> device_;
};

}  // namespace erda::fabric::verbs
