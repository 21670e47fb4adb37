// The channel on which rdma_cm reports the events of its identities. Any thread may call
// these functions, and only the owner of a channel uses it.
#pragma once

#include <fcntl.h>
#include <rdma/rdma_cma.h>

#include <memory>

namespace erda::fabric::verbs {

struct DestroyEventChannel {
  void operator()(rdma_event_channel* events) const { ::rdma_destroy_event_channel(events); }
};
using UniqueEventChannel = std::unique_ptr<rdma_event_channel, DestroyEventChannel>;

// Makes the descriptor return at once if there is nothing to read.
inline void MakeNonBlocking(int fd) { ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK); }

// Makes a channel whose rdma_get_cm_event does not wait. Returns null, with errno, if the system has none.
inline UniqueEventChannel MakeEventChannel() {
  UniqueEventChannel events(::rdma_create_event_channel());
  if (events) MakeNonBlocking(events->fd);
  return events;
}

}  // namespace erda::fabric::verbs
