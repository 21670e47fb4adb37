// Connects a client to the server of a scheme. Any thread may call it.
#pragma once

#include <memory>
#include <string>

#include "bench/schemes/client/scheme_client.h"
#include "bench/schemes/scheme.h"

namespace erda::schemes {

// Makes one connection to a server of this scheme.
Result<std::unique_ptr<SchemeClient>> ConnectScheme(Scheme scheme, const std::string& address,
                                                    const ClientOptions& options);

}  // namespace erda::schemes
