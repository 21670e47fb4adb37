// A client's link to one shard: a connection that is made, lost, and made again, with its parts.
//
// Handshake has the words of connecting, and Connection the channel. RequestSlots are the places for requests,
// ControlCopy and KnownShard have what arrived of the shard's state, and LinkPuts has the state of the puts.
//
// The link owns these parts, and takes them through the states of a connection. A link is never moved: channels and
// operations point at it. Connections (connections.h) decides when it connects and closes. Only the client's thread
// calls it.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/fifo.h"
#include "client/connection.h"
#include "client/control_copy.h"
#include "client/handshake.h"
#include "client/key_order.h"
#include "client/known_shard.h"
#include "client/link_puts.h"
#include "client/request_slots.h"
#include "fabric/fabric.h"
#include "format/hello.h"

namespace erda::client {

class Link {
 public:
  enum class State : uint8_t { kDown, kConnecting, kLoading, kUp };

  Link(fabric::Fabric& fabric, fabric::CompletionQueue& queue, std::string address, uint32_t shard, uint64_t client_id)
      : known(shard), fabric_(fabric), queue_(queue), handshake_(std::move(address), shard, client_id) {}

  // --- The states of a connection

  // kDown -> kConnecting.
  Status Connect(uint32_t slots_wanted) {
    handshake_.Begin(slots_wanted);
    return Open();
  }
  // Returns true if the server has refused, and asks for a proof.
  [[nodiscard]] bool IsChallenged() const {
    return state_ == State::kConnecting && handshake_.IsChallenged(channel()->peer_data());
  }
  // kConnecting -> kConnecting, with the proof that the client knows this token. Gives the refused connection back, as
  // Close does. REQUIRES: IsChallenged().
  Status Prove(std::string token, Connection* refused);
  // kConnecting -> kLoading: takes the server, and asks for the control block. If the client does not take the server,
  // it returns the reason. A client that has a token takes no server that did not ask for it.
  Status OnConnected(Nanoseconds now, bool has_token);
  // Posts a Read of the control block, after the gathered requests. Does nothing if one is under way. Its caller may
  // then get the block without the activity.
  Status ReadControl(bool with_activity = false);
  // The control block has arrived. kLoading -> kUp.
  void OnControlRead();
  // Any -> kDown. Gives the connection back. The caller destroys it when no completion names its channel any more.
  // Needs no memory.
  Connection Close();
  // Returns why the channel was closed, with the server's words if it refused.
  [[nodiscard]] Status CloseReason() const;

  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] bool up() const { return state_ == State::kUp; }

  // --- The server, and the way to it

  [[nodiscard]] const std::string& address() const { return handshake_.address(); }
  [[nodiscard]] uint32_t shard() const { return known.shard(); }
  [[nodiscard]] const format::HelloReply& hello() const { return handshake_.hello(); }
  [[nodiscard]] const format::Geometry& geometry() const { return known.geometry(); }
  [[nodiscard]] format::FlushMethod flush_method() const {
    return static_cast<format::FlushMethod>(hello().flush_method);
  }
  [[nodiscard]] format::Placing placing() const { return static_cast<format::Placing>(hello().placing); }
  // Returns null if the link is down.
  [[nodiscard]] fabric::Channel* channel() const { return connection_.channel(); }
  [[nodiscard]] Connection& connection() { return connection_; }
  [[nodiscard]] const ControlCopy& control() const { return control_; }

  // --- What its users change

  RequestSlots slots;
  KnownShard known;
  LinkPuts puts;
  Fifo<OpIndex> waiting_for_link;   // operations at step kLinkUp
  Fifo<OpIndex> waiting_for_heads;  // operations at step kHeads
  uint32_t times_up = 0;

 private:
  Status Open();
  // Returns the size of the staging buffer that the server offers; 0 if it offers none.
  [[nodiscard]] uint64_t StagingBytes() const;

  fabric::Fabric& fabric_;
  fabric::CompletionQueue& queue_;
  State state_ = State::kDown;
  Handshake handshake_;
  ControlCopy control_;
  Connection connection_;  // last, so that it goes before the memory that it uses
};

}  // namespace erda::client
