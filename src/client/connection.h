// A connection to one shard: its channel, the memory for the server's replies, and the requests that it posts next.
//
// Each connection has separate memory for replies. Over shm a server that was connected before, or that refused, can
// still write into the memory that the client offered it. A link gives up a closed connection, and the owner keeps it
// until no completion names its channel any more. Only the client's thread calls it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/shared_memory.h"
#include "erda/status.h"
#include "fabric/fabric.h"
#include "format/hello.h"
#include "format/messages.h"

namespace erda::client {

class Connection {
 public:
  // The owner posts gathered requests at the latest when their number is this.
  static constexpr size_t kGatheredMax = 32;

  // Begins to connect, with memory for the replies that the hello asks for. `user` is the channel's user.
  Status Open(fabric::Fabric& fabric, fabric::CompletionQueue& queue, const std::string& address,
              const format::HelloRequest& hello, void* user);
  // The server has accepted. Makes room for gathered requests, so that a client at work needs no memory for them.
  void OnConnected() { gathered_.reserve(2 * kGatheredMax); }

  // Returns null before Open.
  [[nodiscard]] fabric::Channel* channel() const { return channel_.get(); }
  // Returns the reply that the server wrote for the request slot.
  [[nodiscard]] format::Reply ReplyIn(uint32_t slot) const {
    return LoadAs<format::Reply>(replies_.bytes().subspan(slot * sizeof(format::Reply), sizeof(format::Reply)));
  }

  // Posts the batch, after the requests that are gathered. REQUIRES: the channel is connected.
  [[gnu::always_inline]] Status Post(std::span<const fabric::WorkRequest> batch) {
    if (gathered_.empty()) return channel_->Post(batch);
    Gather(batch);
    return Flush();
  }
  // Keeps the batch for the next Post or Flush, so that all have one doorbell.
  void Gather(std::span<const fabric::WorkRequest> batch) {
    for (const fabric::WorkRequest& work : batch) gathered_.push_back(work);
  }
  // Posts the gathered requests.
  Status Flush();
  [[nodiscard]] size_t gathered() const { return gathered_.size(); }

 private:
  std::vector<fabric::WorkRequest> gathered_;
  SharedMemory replies_;
  std::unique_ptr<fabric::Region> region_;    // of the replies
  std::unique_ptr<fabric::Channel> channel_;  // last, so that it goes before the memory that it uses
};

}  // namespace erda::client
