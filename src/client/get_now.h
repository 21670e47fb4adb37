// Gets without an operation. They need three conditions: no operation is outstanding, the value is at its known
// location, and the fabric reads it at once.
//
// Owns the count of such gets. Only the client's thread calls it.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/clock.h"
#include "client/connections.h"
#include "client/located.h"
#include "client/operations.h"
#include "erda/client.h"

namespace erda::client {

class InstantGets {
 public:
  enum class Outcome : uint8_t {
    kNo,  // An operation has to get the key.
    kValue,
    kAbsent,
  };

  InstantGets(Operations& operations, Connections& connections, KnownLocations& locations, const Clock& clock,
              ClientStats& stats)
      : operations_(operations), connections_(connections), locations_(locations), clock_(clock), stats_(stats) {}

  // Gets the key. The value is valid until the client's next call.
  [[nodiscard]] Outcome GetNow(std::string_view key, VersionedView* found);

 private:
  Operations& operations_;
  Connections& connections_;
  KnownLocations& locations_;
  const Clock& clock_;
  ClientStats& stats_;
  uint32_t gets_ = 0;
};

}  // namespace erda::client
