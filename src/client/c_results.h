// Results of several values for C: each is one piece of memory, which the caller frees by erda_client_free.
//
// Owns nothing. They throw std::bad_alloc without memory. Any thread may call them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "erda/client.h"
#include "erda/erda.h"

namespace erda::c_api {

// 0: the value does not expire.
inline int64_t ExpiresMs(const std::optional<Deadline>& expires) {
  return expires ? expires->time_since_epoch().count() : 0;
}

erda_result* CopyResults(const std::vector<Result<Versioned>>& all);
erda_result* CopyResults(const std::vector<Result<uint64_t>>& versions);
erda_scan_page* CopyPage(const ScanPage& from);
erda_server_info* CopyInfo(const std::vector<std::pair<std::string, std::string>>& pairs);

}  // namespace erda::c_api
