// The two schemes with which the Erda paper compares Erda (section 5.1, "Comparisons"). The quotes are the paper's.
//
// Redo Logging: "a client sends a write request to the redo log region of the server using RDMA send, and then the
// server verifies the integrity of the message in the redo log and applies the write request asynchronously to the
// destination storage. When a client issues an RDMA send to request an object value, the server first looks for the
// object in the redo log. If the requested object isn't in the redo log, the server searches the destination address
// with the object key through a hash table, and then reads the object and returns it to the client."
//
// Read After Write: "to write objects, a client first sends a request to a server and obtains the address to be written
// in the ring buffers. Moreover, the client uses RDMA write to push the object into the ring buffers, and issues an
// RDMA read following the RDMA write to force the object to be persistent and integrated into the ring buffers. The
// server CPU polls for these operations asynchronously from ring buffers and applies them to the destination storage.
// The procedure of read operations from the client to the server follows the operations of redo logging scheme."
//
// The document docs/benchmarks/schemes.md lists the choices where the paper is silent.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/hash.h"

namespace erda::schemes {

enum class Scheme : uint8_t {  // Stored in pools and sent in messages: do not renumber.
  kRedoLogging = 1,
  kReadAfterWrite = 2,
};

// These pools exist only in benchmarks, where no attacker chooses keys. The hash costs as much as Erda's, and its seed
// is no secret.
inline constexpr HashSeed kHashSeed = {0x736368656d657331, 0x736368656d657332};

constexpr std::string_view SchemeName(Scheme scheme) { return scheme == Scheme::kRedoLogging ? "redo" : "raw"; }

constexpr std::optional<Scheme> FindScheme(std::string_view name) {
  if (name == SchemeName(Scheme::kRedoLogging)) return Scheme::kRedoLogging;
  if (name == SchemeName(Scheme::kReadAfterWrite)) return Scheme::kReadAfterWrite;
  return std::nullopt;
}

}  // namespace erda::schemes
