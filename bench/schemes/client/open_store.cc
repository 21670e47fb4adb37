#include "bench/schemes/client/open_store.h"

#include <utility>

#include "bench/schemes/client/connect.h"
#include "bench/schemes/scheme.h"

namespace erda::bench {

Result<std::unique_ptr<NvmStore>> OpenStore(std::string_view scheme, const std::string& address,
                                            const ClientOptions& options) {
  if (scheme == kErda) {
    auto client = Client::Connect(address, options);
    if (!client.ok()) return client.status();
    return std::unique_ptr<NvmStore>(std::make_unique<ErdaStore>(*std::move(client)));
  }
  const auto found = schemes::FindScheme(scheme);
  if (!found) return Status(Code::kInvalidArgument, "there is no scheme " + std::string(scheme));
  auto client = schemes::ConnectScheme(*found, address, options);
  if (!client.ok()) return client.status();
  return std::unique_ptr<NvmStore>(*std::move(client));
}

}  // namespace erda::bench
