// A fabric with one connection of a client that may only read. The memory of its server lies in the same process, so a
// Read is one memcpy. A get over it costs the client's code, and nothing of a fabric.
//
// Owns only what the server offers. Requires: the server's memory outlives the fabric. The client's thread calls it.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "fabric/fabric.h"
#include "format/hello.h"
#include "server/pool/formatted_pool.h"

namespace erda::micro {

class MemoryFabric final : public fabric::Fabric {
 public:
  // control: the control block of the pool's only shard.
  MemoryFabric(server::FormattedPool& pool, std::span<const std::byte> control);

  [[nodiscard]] std::string_view scheme() const override { return "memory"; }
  [[nodiscard]] fabric::Capabilities capabilities() const override {
    fabric::Capabilities capabilities;
    capabilities.reads_in_order = true;
    return capabilities;
  }
  Result<std::unique_ptr<fabric::Region>> Register(const MemoryView& memory, fabric::Access access) override;
  Result<std::unique_ptr<fabric::CompletionQueue>> CreateQueue() override;
  Result<std::unique_ptr<fabric::Listener>> Listen(std::string_view address) override;
  Result<std::unique_ptr<fabric::Channel>> Connect(std::string_view address,
                                                   const fabric::ChannelOptions& options) override;

 private:
  // The regions of a server in the order of format::kPoolRegion and format::kControlRegion.
  const std::array<std::span<const std::byte>, 2> memory_;
  const format::HelloReply hello_;
};

}  // namespace erda::micro
