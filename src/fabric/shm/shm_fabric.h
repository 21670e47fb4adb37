// The default fabric: client and server on one machine, without a NIC and without root. docs/fabric.md describes it.
#pragma once

#include <memory>

#include "fabric/fabric.h"
#include "fabric/shm/memory_map.h"

namespace erda::fabric::shm {

class ShmFabric final : public Fabric {
 public:
  [[nodiscard]] std::string_view scheme() const override { return "shm"; }
  [[nodiscard]] Capabilities capabilities() const override {
    Capabilities capabilities;
    capabilities.knows_users = true;
#ifdef __x86_64__
    capabilities.reads_in_order = true;  // The posting thread loads by volatile accesses (copy.cc), in program order.
#endif
    return capabilities;
  }
  Result<std::unique_ptr<Region>> Register(const MemoryView& memory, Access access) override;
  Result<std::unique_ptr<CompletionQueue>> CreateQueue() override;
  Result<std::unique_ptr<Listener>> Listen(std::string_view address) override;
  Result<std::unique_ptr<Channel>> Connect(std::string_view address, const ChannelOptions& options) override;

 private:
  MemoryMaps maps_;
};

}  // namespace erda::fabric::shm
