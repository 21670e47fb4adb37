#include "bench/schemes/client/connect.h"

#include <utility>

#include "bench/schemes/client/read_after_write.h"
#include "bench/schemes/client/redo_logging.h"

namespace erda::schemes {

Result<std::unique_ptr<SchemeClient>> ConnectScheme(Scheme scheme, const std::string& address,
                                                    const ClientOptions& options) {
  const auto connect = [](auto client) -> Result<std::unique_ptr<SchemeClient>> {
    if (auto status = client->Connect(); !status.ok()) return status;
    return std::unique_ptr<SchemeClient>(std::move(client));
  };
  return scheme == Scheme::kRedoLogging ? connect(std::make_unique<RedoLogging>(address, options))
                                        : connect(std::make_unique<ReadAfterWrite>(address, options));
}

}  // namespace erda::schemes
