// The puts of each scheme.
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
