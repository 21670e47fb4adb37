// All pages of a scan.
#pragma once

#include <cstdint>
#include <optional>

#include "erda/client.h"
#include "erda/status.h"

namespace erda::tools {

// Calls body(page) for each page, until it returns an error: Status body(ScanPage&).
template <class Body>
Status ForEachPage(Client& client, ScanOptions options, Body&& body) {
  for (std::optional<uint64_t> cursor = options.cursor; cursor;) {
    options.cursor = *cursor;
    auto page = client.Scan(options);
    if (!page.ok()) return page.status();
    if (page->next && *page->next <= *cursor) return {Code::kInternal, "the scan does not go on"};
    if (Status status = body(*page); !status.ok()) return status;
    cursor = page->next;
  }
  return {};
}

}  // namespace erda::tools
