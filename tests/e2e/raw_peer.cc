#include "e2e/raw_peer.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstring>
#include <functional>

#include "base/bytes.h"
#include "format/control_block.h"
#include "format/proof.h"

namespace erda {

using fabric::OpKind;
using format::HelloRefusal;
using format::HelloReply;
using format::HelloRequest;
using format::Reply;
using format::Request;
using format::RequestOp;

HelloRequest RawPeer::Hello(uint32_t shard) {
  HelloRequest hello{};
  hello.magic = format::kHelloMagic;
  hello.protocol_version = format::kProtocolVersion;
  hello.shard = static_cast<uint16_t>(shard);
  hello.slots = kSlots;
  hello.client_id = 1;
  return hello;
}

std::optional<HelloRequest> RawPeer::Proved(const std::string& address, std::string_view token, HelloRequest hello) {
  const RawPeer asking(address, BytesOf(hello));
  if (asking.said().size() < sizeof(format::HelloChallenge)) return std::nullopt;
  const auto challenge = LoadAs<format::HelloChallenge>(asking.said());
  if (challenge.is_challenge != 1) return std::nullopt;
  hello.challenge = challenge.challenge;
  hello.proof = format::ClientProof(token, challenge.nonce, hello);
  return hello;
}

RawPeer::RawPeer(const std::string& address, uint32_t shard) : RawPeer(address, BytesOf(Hello(shard))) {
  EXPECT_TRUE(connected());
}

RawPeer::RawPeer(const std::string& address, std::span<const std::byte> hello) : local_(1 << 20) {
  fabric_ = *fabric::OpenFabric(address, fabric::Role::kConnect);
  queue_ = *fabric_->CreateQueue();
  replies_ = *SharedMemory::Create("raw-replies", kSlots * sizeof(Reply));
  reply_region_ = *fabric_->Register(replies_.view(), fabric::Access::kRemoteReadWrite);
  local_region_ = *fabric_->Register(MemoryView{local_, -1, -1}, fabric::Access::kLocal);
  fabric::Region* const offer[] = {reply_region_.get()};
  auto channel = fabric_->Connect(address, {queue_.get(), offer, hello, kSlots});
  EXPECT_TRUE(channel.ok()) << channel.status().ToString();
  if (!channel.ok()) return;
  channel_ = *std::move(channel);
  PollUntil([&] { return connected() || closed_; });
}

HelloReply RawPeer::hello() const {
  const auto data = channel_->peer_data();
  return !connected() || data.size() < sizeof(HelloReply) ? HelloReply{} : LoadAs<HelloReply>(data);
}

HelloRefusal RawPeer::refusal() const {
  const auto data = channel_->peer_data();
  return connected() || data.size() < sizeof(HelloRefusal) ? HelloRefusal{} : LoadAs<HelloRefusal>(data);
}

void RawPeer::Take(std::span<const fabric::Completion> completions) {
  for (const fabric::Completion& completion : completions) {
    // Not what it is asked for: a piece of the log back, say.
    const bool answers = completion.kind == OpKind::kReceiveImm && (completion.imm & format::kRevokes) == 0;
    if (answers) answered_.push_back(completion.imm);
    if (completion.kind == OpKind::kClosed) closed_ = true;
    if (completion.kind == OpKind::kRead) read_done_ = completion.code == Code::kOk;
  }
}

bool RawPeer::PollUntil(const std::function<bool()>& holds) {
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  do {
    std::array<fabric::Completion, 16> completions;
    Take(std::span(completions).first(queue_->Poll(completions)));
    queue_->Wait(std::chrono::milliseconds(1));
    Take(std::span(completions).first(queue_->Poll(completions)));
    if (holds()) return true;
  } while (std::chrono::steady_clock::now() < give_up);
  return false;
}

void RawPeer::Post(const Request& request, std::string_view rest, uint32_t slot) {
  std::memcpy(local_.data(), &request, sizeof(request));
  std::memcpy(local_.data() + sizeof(request), rest.data(), rest.size());
  fabric::WorkRequest work;
  work.kind = OpKind::kWriteImm;
  work.signaled = false;
  work.imm = slot;
  work.local = std::span(local_).first(sizeof(request) + rest.size());
  work.remote = {format::kRequestRegion, uint64_t{slot} * hello().slot_bytes};
  const Status status = channel_->Post({&work, 1});
  EXPECT_TRUE(status.ok()) << status.ToString();
}

void RawPeer::PostImm(uint32_t imm, std::string_view bytes) {
  std::memcpy(local_.data(), bytes.data(), bytes.size());
  fabric::WorkRequest work;
  work.kind = OpKind::kWriteImm;
  work.signaled = false;
  work.imm = imm;
  work.local = std::span(local_).first(bytes.size());
  work.remote = {format::kRequestRegion, 0};
  (void)channel_->Post({&work, 1});
}

void RawPeer::PostSend(std::string_view message) {
  std::memcpy(local_.data(), message.data(), message.size());
  fabric::WorkRequest work;
  work.kind = OpKind::kSend;
  work.signaled = false;
  work.local = std::span(local_).first(message.size());
  (void)channel_->Post({&work, 1});
}

void RawPeer::Write(uint32_t region, uint64_t offset, std::string_view bytes, uint32_t window) {
  std::memcpy(local_.data(), bytes.data(), bytes.size());
  fabric::WorkRequest work;
  work.kind = OpKind::kWrite;
  work.signaled = false;
  work.local = std::span(local_).first(bytes.size());
  work.remote = {region, offset, window};
  (void)channel_->Post({&work, 1});
}

std::optional<std::string> RawPeer::Read(uint32_t region, uint64_t offset, size_t size) {
  fabric::WorkRequest work;
  work.kind = OpKind::kRead;
  work.local = std::span(local_).first(size);
  work.remote = {region, offset};
  read_done_ = false;
  if (!channel_->Post({&work, 1}).ok()) return std::nullopt;
  PollUntil([&] { return read_done_ || closed_; });
  if (!read_done_) return std::nullopt;
  return std::string(AsString(work.local));
}

std::optional<Reply> RawPeer::Answer() {
  PollUntil([&] { return !answered_.empty() || closed_; });
  if (answered_.empty()) return std::nullopt;
  const uint32_t slot = answered_.front();
  answered_.erase(answered_.begin());
  return LoadAs<Reply>(replies_.bytes().subspan(slot * sizeof(Reply), sizeof(Reply)));
}

bool RawPeer::IsClosed() {
  return PollUntil([&] { return closed_; });
}

Request RawPeer::ReserveRequest(std::string_view key, uint32_t value_size, Ack ack) {
  Request request{};
  request.op = static_cast<uint8_t>(RequestOp::kReserve);
  request.ack = static_cast<uint8_t>(ack);
  request.key_size = static_cast<uint16_t>(key.size());
  request.value_size = value_size;
  request.id = 7;
  return request;
}

Request RawPeer::CommitRequest(const Reply& reserved) {
  Request request{};
  request.op = static_cast<uint8_t>(RequestOp::kCommit);
  request.id = 8;
  request.key_hash = reserved.header.key_hash;
  request.address = reserved.address;
  request.head = reserved.head;
  request.version = reserved.header.version;
  return request;
}

Request RawPeer::DelegateRequest(uint32_t bytes) {
  Request request{};
  request.op = static_cast<uint8_t>(RequestOp::kDelegate);
  request.id = 9;
  request.value_size = bytes;
  request.version = bytes / 2;
  return request;
}

Request RawPeer::GiveBackRequest(const Reply& chunk) {
  Request request{};
  request.op = static_cast<uint8_t>(RequestOp::kGiveBack);
  request.id = 10;
  request.address = chunk.address;
  request.head = chunk.head;
  request.version = chunk.header.version;
  return request;
}

uint64_t RawPeer::OffsetOf(const Reply& given) {
  const format::Geometry geometry = hello().geometry;
  const format::LogAddress address(given.address);
  const uint64_t slot_at =
      format::HeadSlotOffset(geometry, given.head % geometry.heads_per_shard, geometry.SlotOf(address));
  const auto slot = Read(format::kControlRegion, slot_at, sizeof(format::HeadSlot));
  const auto region = LoadAs<format::HeadSlot>(AsBytes(slot.value())).region();
  return geometry.RegionOffset(region) + geometry.OffsetInRegion(address);
}

uint64_t RawPeer::BodyOffset(const Reply& reserved) {
  return OffsetOf(reserved) + format::ChecksumOffset(reserved.header.label_size());
}

std::string RawPeer::Body(const Reply& reserved, std::string_view value) const {
  const uint32_t checksum = format::ObjectChecksum(reserved.header, AsBytes(value));
  std::string body(sizeof(checksum), '\0');
  std::memcpy(body.data(), &checksum, sizeof(checksum));
  return body.append(value);
}

}  // namespace erda
