#include "fabric/verbs/verbs_fabric.h"

#include "fabric/module.h"
#include "fabric/verbs/channel.h"
#include "fabric/verbs/listener.h"
#include "fabric/verbs/queue.h"
#include "fabric/verbs/region.h"

namespace erda::fabric::verbs {

Result<std::unique_ptr<Fabric>> VerbsFabric::Open(std::string_view address, Role role) {
  auto parsed = ParseAddress(address);
  if (!parsed.ok()) return parsed.status();
  // After a fork, registered pages must stay this process's. Newer kernels copy them for the child. Older kernels must
  // be told to leave them out of the child. Do not tell newer ones: the child would also lose everything else in these
  // pages.
  if (ibv_is_fork_initialized() == IBV_FORK_DISABLED) (void)ibv_fork_init();
  auto device = Device::Open(*parsed, role);
  if (!device.ok()) {
    return Status(device.status().code(), std::string(address).append(": ").append(device.status().message()));
  }
  return std::unique_ptr<Fabric>(new VerbsFabric(*std::move(device)));
}

Result<std::shared_ptr<Fabric>> VerbsFabric::ForReaders() {
  auto device = Device::WithOtherDomain(device_);
  if (!device.ok()) return device.status();
  return std::shared_ptr<Fabric>(new VerbsFabric(*std::move(device)));
}

Result<std::unique_ptr<Region>> VerbsFabric::Register(const MemoryView& memory, Access access) {
  if (memory.bytes.empty()) return Status(Code::kInvalidArgument, "a region of no bytes cannot be registered");
  // Never with relaxed ordering: the contract's order depends on it.
  unsigned flags = 0;
  if (access != Access::kRemoteRead) flags |= IBV_ACCESS_LOCAL_WRITE;
  if (access != Access::kLocal) flags |= IBV_ACCESS_REMOTE_READ;
  if (access == Access::kRemoteReadWrite) flags |= IBV_ACCESS_REMOTE_WRITE;
  if (access == Access::kRemoteReadWindows) {
    if (!capabilities().memory_windows) return Status(Code::kInvalidArgument, "the device has no memory windows");
    flags |= IBV_ACCESS_MW_BIND;
  }
  auto mr = device_->Register(memory.bytes, flags);
  if (!mr.ok()) return mr.status();
  return std::unique_ptr<Region>(std::make_unique<VerbsRegion>(device_, *mr, memory.bytes, access));
}

Result<std::unique_ptr<CompletionQueue>> VerbsFabric::CreateQueue() { return VerbsQueue::Create(device_); }

Result<std::unique_ptr<Listener>> VerbsFabric::Listen(std::string_view address) {
  return VerbsListener::Create(device_, address);
}

Result<std::unique_ptr<Channel>> VerbsFabric::Connect(std::string_view address, const ChannelOptions& options) {
  auto* queue = dynamic_cast<VerbsQueue*>(options.queue);
  if (queue == nullptr || options.message_depth == 0 || options.message_depth > kMessageDepthMax) {
    return Status(Code::kInvalidArgument,
                  "a channel needs a completion queue of the same fabric, and a message depth of 1 to " +
                      std::to_string(kMessageDepthMax));
  }
  auto parsed = ParseAddress(address);
  if (!parsed.ok()) return parsed.status();
  return VerbsChannel::Connect(queue, device_, *parsed, std::string(address), options);
}

}  // namespace erda::fabric::verbs

extern "C" __attribute__((visibility("default"))) erda::fabric::Fabric* erda_fabric_open(std::string_view version,
                                                                                         std::string_view address,
                                                                                         erda::fabric::Role role,
                                                                                         erda::Status* error);
erda::fabric::Fabric* erda_fabric_open(std::string_view version, std::string_view address, erda::fabric::Role role,
                                       erda::Status* error) {
  if (version != ERDA_VERSION) {
    *error = erda::Status(erda::Code::kUnavailable, "the verbs module is of version " ERDA_VERSION ", and not " +
                                                        std::string(version) + " as the library");
    return nullptr;
  }
  auto fabric = erda::fabric::verbs::VerbsFabric::Open(address, role);
  if (fabric.ok()) return fabric->release();
  *error = fabric.status();
  return nullptr;
}
