// Makes pages of the pool before puts need them, in small steps. Takes the shard's orders. The cleaner's thread calls
// it.
#pragma once

#include <cstdint>

#include "nvm/pool.h"
#include "server/cleaner/page_orders.h"

namespace erda::server {

class PageMaker {
 public:
  PageMaker(nvm::Pool& pool, PageOrders& orders) : pool_(pool), orders_(orders) {}

  // Makes the next pages that are ordered, unless the log is too near. Returns false if no order is left.
  bool Step();

 private:
  [[nodiscard]] bool IsLate() const;

  nvm::Pool& pool_;
  PageOrders& orders_;
  PageOrder order_;  // The part that is not made yet.
};

}  // namespace erda::server
