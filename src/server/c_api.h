// Converts between the structures of erda/server.h and those of the server's C API. Each field of one has its
// counterpart in the other.
//
// Owns nothing. Any thread may call these functions.
#pragma once

#include "erda/erda.h"
#include "erda/server.h"

namespace erda::c_api {

erda_server_options DefaultServerOptions() noexcept;
Result<ServerOptions> ToServerOptions(const erda_server_options& options);
ServerLimits ToServerLimits(const erda_server_limits& limits);
erda_server_stats StatsOf(const ServerStats& stats) noexcept;
erda_recovery_report ReportOf(const RecoveryReport& report) noexcept;

}  // namespace erda::c_api
