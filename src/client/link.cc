#include "client/link.h"

namespace erda::client {

Status Link::Open() {
  auto status = connection_.Open(fabric_, queue_, address(), handshake_.Request(), this);
  if (status.ok()) state_ = State::kConnecting;
  return status;
}

Status Link::Prove(std::string token, Connection* refused) {
  handshake_.Answer(channel()->peer_data(), std::move(token));
  *refused = std::exchange(connection_, Connection());
  return Open();
}

Status Link::OnConnected(Nanoseconds now, bool has_token) {
  if (auto status = handshake_.Take(channel()->peer_data(), channel()->peer_regions(), has_token); !status.ok()) {
    return status;
  }
  known.Reset(hello());
  known.time_hint.Learn(now, hello().time);
  slots.Reset(hello().slots, hello().slot_bytes);
  puts.Reset(known, StagingBytes(), handshake_.slots_offered());
  // An operation may wait for these for the first time when the client has been at work for long. It then needs no
  // memory.
  connection_.OnConnected();
  waiting_for_heads.Reserve(handshake_.slots_offered());
  if (auto status = control_.Reset(fabric_, geometry()); !status.ok()) return status;
  state_ = State::kLoading;
  return ReadControl();
}

uint64_t Link::StagingBytes() const {
  const bool stages = placing() == format::Placing::kStaging || placing() == format::Placing::kWindow;
  return stages ? channel()->peer_regions()[format::kStagingRegion].size : 0;
}

Status Link::ReadControl(bool with_activity) {
  if (control_.pending()) return {};
  const fabric::WorkRequest work = control_.ReadWork(with_activity);
  auto status = connection_.Post({&work, 1});
  if (status.ok()) control_.OnPosted();
  return status;
}

void Link::OnControlRead() {
  control_.OnArrived();
  known.LearnControl(control_.bytes());
  if (state_ == State::kLoading) state_ = State::kUp;
}

Connection Link::Close() {
  state_ = State::kDown;
  control_.Forget();
  waiting_for_link.clear();
  waiting_for_heads.clear();
  puts.Forget();
  return std::exchange(connection_, Connection());
}

Status Link::CloseReason() const {
  if (state_ != State::kConnecting) return {Code::kUnavailable, address() + ": the server went away"};
  return handshake_.ReasonOf(channel()->peer_data()).value_or(channel()->error());
}

}  // namespace erda::client
