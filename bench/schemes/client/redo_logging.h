// The paper: "a client sends a write request to the redo log region of the server using RDMA send, and then the server
// verifies the integrity of the message in the redo log and applies the write request asynchronously". Here this is one
// request with key, value and the CRC checksum of both. The answer says that the server has it in its log,
// persistently. (The paper does not say when the client takes a put for done. Before that answer, the put could be
// lost.)
//
// Owns nothing but the order of these steps. The thread of the client calls it.
#pragma once

#include <string>

#include "bench/schemes/client/scheme_client.h"

namespace erda::schemes {

class RedoLogging final : public SchemeClient {
 public:
  static constexpr Scheme kScheme = Scheme::kRedoLogging;
  RedoLogging(const std::string& address, const ClientOptions& options)
      : SchemeClient(kScheme, address, options, false) {}

 private:
  void StartPut(Operation& op) override;
  void OnPutAnswered(Operation& op, const Reply& reply) override;
};

}  // namespace erda::schemes
