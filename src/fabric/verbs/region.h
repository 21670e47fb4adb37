// Memory of the caller that is registered with a device.
#pragma once

#include <infiniband/verbs.h>

#include <memory>

#include "fabric/fabric.h"
#include "fabric/verbs/handshake.h"
#include "fabric/verbs/local_keys.h"

namespace erda::fabric::verbs {

class Device;

// Owns the registration, and its entry in the device's keys. Any thread may make, use and destroy it.
class VerbsRegion final : public Region {
 public:
  VerbsRegion(std::shared_ptr<Device> device, ibv_mr* mr, std::span<std::byte> bytes, Access access);
  ~VerbsRegion() override;
  [[nodiscard]] std::span<std::byte> bytes() const override { return bytes_; }
  [[nodiscard]] Access access() const override { return access_; }
  [[nodiscard]] ibv_mr* mr() const { return mr_; }
  [[nodiscard]] const Device* device() const { return device_.get(); }
  // Returns the region as a greeting offers it. The peer sees kRemoteReadWindows as kRemoteRead.
  [[nodiscard]] OfferedRegion Offered() const;

 private:
  [[nodiscard]] LocalKey Key() const;

  const std::shared_ptr<Device> device_;
  ibv_mr* const mr_;
  const std::span<std::byte> bytes_;
  const Access access_;
};

}  // namespace erda::fabric::verbs
