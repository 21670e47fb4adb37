// The requests that a client sends, each as format/messages.h has its fields. The sender of a request gives it an id.
//
// Owns nothing. Only the client's thread calls it.
#pragma once

#include <cstdint>
#include <string_view>

#include "client/put_op.h"
#include "erda/client.h"
#include "format/log_address.h"
#include "format/messages.h"

namespace erda::client {

// Returns the commit of a reserved put, whose reservation is in op.places.reserved.
[[nodiscard]] inline format::Request MakeCommit(const PutOp& op, format::LogAddress address) {
  format::Request request{};
  request.op = static_cast<uint8_t>(format::RequestOp::kCommit);
  request.key_hash = op.key_hash;
  request.address = address.raw();
  request.head = op.places.reserved.head;
  request.version = op.places.reserved.header.version;
  return request;
}

// Returns a request that the key follows. address: where the value is. For kPutDelegated that is in the log, and for
// kPutStaged in the staging buffer. value_crc: for kPutDelegated.
[[nodiscard, gnu::always_inline]] inline format::Request MakeKeyed(const PutOp& op, format::RequestOp kind, Ack ack,
                                                                   uint32_t address = 0, uint32_t value_crc = 0) {
  format::Request request{};
  request.op = static_cast<uint8_t>(kind);
  request.ack = static_cast<uint8_t>(ack);
  request.key_size = op.key_size;
  request.value_size = op.value_size;
  request.address = address;
  request.value_crc = value_crc;
  request.ttl = op.ttl;
  if (op.if_version) {
    request.condition = static_cast<uint8_t>(format::Condition::kVersion);
    request.version = *op.if_version;
  }
  return request;
}

// Returns a report that the key's newest version is broken. The key follows it.
[[nodiscard]] inline format::Request MakeReport(std::string_view key) {
  format::Request request{};
  request.op = static_cast<uint8_t>(format::RequestOp::kReport);
  request.key_size = static_cast<uint16_t>(key.size());
  return request;
}

// Returns the request for a chunk of `wanted` bytes, or of fewer, and at least `least`.
[[nodiscard]] inline format::Request MakeDelegate(uint32_t head, uint64_t wanted, uint64_t least) {
  format::Request request{};
  request.op = static_cast<uint8_t>(format::RequestOp::kDelegate);
  request.head = head;
  request.value_size = static_cast<uint32_t>(wanted);
  request.version = least;
  return request;
}

// Returns the request that gives a chunk back. version: the one in the chunk's header.
[[nodiscard]] inline format::Request MakeGiveBack(uint32_t head, format::LogAddress chunk, uint64_t version) {
  format::Request request{};
  request.op = static_cast<uint8_t>(format::RequestOp::kGiveBack);
  request.head = head;
  request.address = chunk.raw();
  request.version = version;
  return request;
}

}  // namespace erda::client
