#include "client/connection.h"

#include <utility>

namespace erda::client {

Status Connection::Open(fabric::Fabric& fabric, fabric::CompletionQueue& queue, const std::string& address,
                        const format::HelloRequest& hello, void* user) {
  auto replies = SharedMemory::Create("erda-replies", hello.slots * sizeof(format::Reply));
  if (!replies.ok()) return replies.status();
  auto region = fabric.Register(replies->view(), fabric::Access::kRemoteReadWrite);
  if (!region.ok()) return region.status();
  fabric::Region* const offer[] = {region->get()};
  // The server sends answers, and revokes the client's chunks: those that it has, and one that it asks for. The channel
  // is twice as deep as the number of these messages. Each end may be late to report the messages that it consumed, by
  // up to half the depth. So the server never finds the channel full.
  const uint32_t depth = 2 * (hello.slots + format::kChunksPerClient + 1);
  auto channel = fabric.Connect(address, {&queue, offer, BytesOf(hello), depth});
  if (!channel.ok()) return channel.status();
  replies_ = *std::move(replies);
  region_ = *std::move(region);
  channel_ = *std::move(channel);
  channel_->user = user;
  return {};
}

Status Connection::Flush() {
  if (gathered_.empty()) return {};
  auto status = channel_->Post(gathered_);
  gathered_.clear();
  return status;
}

}  // namespace erda::client
