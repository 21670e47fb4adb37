// Options of calls, from C to C++. A structure of C begins with its size, so that programs of any version of the API
// may pass it (base/c_api.h).
//
// Owns nothing. The functions return kInvalidArgument if the caller did not initialize the structure, or sets a field
// that this library does not know. NULL means the defaults. Any thread may call them.
#pragma once

#include "erda/client.h"
#include "erda/erda.h"

namespace erda::c_api {

Status ToClientOptions(const erda_client_options* options, ClientOptions* to);
Status ToPutOptions(const erda_put_options* options, PutOptions* to);
Status ToDeleteOptions(const erda_delete_options* options, DeleteOptions* to);
Status ToScanOptions(const erda_scan_options* options, ScanOptions* to);

}  // namespace erda::c_api
