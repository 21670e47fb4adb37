// The paper: "a client first sends a request to a server and obtains the address to be written in the ring buffers.
// Moreover, the client uses RDMA write to push the object into the ring buffers, and issues an RDMA read following the
// RDMA write to force the object to be persistent and integrated into the ring buffers."
//
// One doorbell starts the Write and the Read: the second round trip. A Read flushes nothing if Writes go through a
// CPU's caches (over shm, or a NIC with DDIO) and the medium loses those. It would then acknowledge an object that a
// power cut takes back. There a commit request takes its place, as on Erda's reserve path: the server flushes, and
// answers.
//
// Owns nothing but the order of these steps. The thread of the client calls it.
#pragma once

#include <string>

#include "bench/schemes/client/scheme_client.h"

namespace erda::schemes {

// Two puts of one key may be in flight at the server, and become whole in any order. Only this end knows their order.
class ReadAfterWrite final : public SchemeClient {
 public:
  static constexpr Scheme kScheme = Scheme::kReadAfterWrite;
  ReadAfterWrite(const std::string& address, const ClientOptions& options)
      : SchemeClient(kScheme, address, options, true) {}

 private:
  void StartPut(Operation& op) override;
  void OnPutAnswered(Operation& op, const Reply& reply) override;
};

}  // namespace erda::schemes
