#include "fabric/shm/shm_fabric.h"

#include <algorithm>

#include "base/bytes.h"
#include "fabric/shm/channel.h"
#include "fabric/shm/listener.h"
#include "fabric/shm/queue.h"
#include "fabric/shm/ring_memory.h"

namespace erda::fabric::shm {

namespace {

class ShmRegion final : public Region {
 public:
  ShmRegion(const MemoryView& memory, Access access) : memory_(memory), access_(access) {}
  [[nodiscard]] std::span<std::byte> bytes() const override { return memory_.bytes; }
  [[nodiscard]] Access access() const override { return access_; }
  // Returns the descriptor that a peer maps. It carries no more rights than the peer is granted.
  [[nodiscard]] int offered_fd() const { return access_ == Access::kRemoteRead ? memory_.fd_read_only : memory_.fd; }

 private:
  MemoryView memory_;
  Access access_;
};

}  // namespace

Status FillGreeting(const ChannelOptions& options, size_t data_max, Greeting* greeting, std::vector<int>* fds) {
  if (options.offer.size() > kOfferedRegionsMax || options.private_data.size() > data_max) {
    return {Code::kInvalidArgument, "a channel takes at most " + std::to_string(kOfferedRegionsMax) + " regions and " +
                                        std::to_string(data_max) + " bytes of private data, and was given " +
                                        std::to_string(options.offer.size()) + " and " +
                                        std::to_string(options.private_data.size())};
  }
  greeting->data_bytes = static_cast<uint32_t>(options.private_data.size());
  std::copy(options.private_data.begin(), options.private_data.end(), greeting->data.begin());
  for (const Region* offered : options.offer) {
    const auto* region = dynamic_cast<const ShmRegion*>(offered);
    if (region == nullptr || region->access() == Access::kLocal) {
      return {Code::kInvalidArgument, "an offered region gives its peer no right; register it for remote use"};
    }
    greeting->region_sizes[greeting->regions] = region->bytes().size();
    greeting->region_access[greeting->regions] = static_cast<uint32_t>(region->access());
    ++greeting->regions;
    fds->push_back(region->offered_fd());
  }
  return {};
}

Result<std::unique_ptr<Region>> ShmFabric::Register(const MemoryView& memory, Access access) {
  const int fd = access == Access::kRemoteRead ? memory.fd_read_only : memory.fd;
  if (access != Access::kLocal && (fd < 0 || memory.bytes.empty())) {
    return Status(Code::kInvalidArgument, "memory without a descriptor cannot be offered over shm");
  }
  return std::unique_ptr<Region>(std::make_unique<ShmRegion>(memory, access));
}

Result<std::unique_ptr<CompletionQueue>> ShmFabric::CreateQueue() {
  auto queue = ShmQueue::Create();
  if (!queue.ok()) return queue.status();
  return std::unique_ptr<CompletionQueue>(*std::move(queue));
}

Result<std::unique_ptr<Listener>> ShmFabric::Listen(std::string_view address) {
  return ShmListener::Create(address, &maps_);
}

Result<std::unique_ptr<Channel>> ShmFabric::Connect(std::string_view address, const ChannelOptions& options) {
  auto* queue = dynamic_cast<ShmQueue*>(options.queue);
  if (queue == nullptr || options.message_depth == 0 || options.message_depth > kMessageDepthMax) {
    return Status(Code::kInvalidArgument,
                  "a channel needs a completion queue of the same fabric, and a message depth of 1 to " +
                      std::to_string(kMessageDepthMax));
  }
  auto path = PathOf(address);
  if (!path.ok()) return path.status();
  Greeting ask;
  ask.kind = Greeting::kAsk;
  ask.message_depth = options.message_depth;
  auto rings = SharedMemory::Create("erda-rings", RingMemory::Bytes(options.message_depth));
  if (!rings.ok()) return rings.status();
  std::vector<int> fds = {rings->view().fd};
  if (auto status = FillGreeting(options, kConnectDataMax, &ask, &fds); !status.ok()) return status;

  auto socket = ConnectTo(*path);
  if (!socket.ok()) return socket.status();
  if (auto status = SendGreeting(socket->get(), ask, fds); !status.ok()) {
    return Status(status.code(), std::string(address) + ": " + std::string(status.message()));
  }
  rings->DropDescriptors();
  auto channel = std::make_unique<ShmChannel>(queue, &maps_, std::string(address), *std::move(socket),
                                              RingMemory(*std::move(rings), options.message_depth));
  if (auto status = queue->Add(channel.get()); !status.ok()) return status;
  return std::unique_ptr<Channel>(std::move(channel));
}

}  // namespace erda::fabric::shm
