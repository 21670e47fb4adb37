#include "e2e/storm.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <atomic>
#include <cstring>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/unique_fd.h"
#include "e2e/fixture.h"
#include "fabric/shm/socket.h"
#include "regression/intruder.h"

namespace erda {

using format::Reply;
using format::Request;
using format::RequestOp;

namespace {

constexpr uint32_t kSlotBytes = 16384;
constexpr uint32_t kShards = 2;

uint8_t Code8(RequestOp op) { return static_cast<uint8_t>(op); }

}  // namespace

Tally& Tally::operator+=(const Tally& other) {
  sent += other.sent;
  answered += other.answered;
  refused += other.refused;
  closed += other.closed;
  left += other.left;
  return *this;
}

StormClient::StormClient(std::string address, std::string token, uint64_t seed)
    : address_(std::move(address)), token_(std::move(token)), random_(seed) {}

uint64_t StormClient::sent() const {
  Tally sum;
  for (const Tally& tally : tallies_) sum += tally;
  return sum.sent;
}

void StormClient::Send(Input input) {
  tally_ = &tallies_[static_cast<size_t>(input)];
  switch (input) {
    case Input::kSpoiltRequest:
      return SendSpoilt();
    case Input::kRandomRequest:
      return SendRandom();
    case Input::kWrongPlace:
      return SendWrongPlace();
    case Input::kWrongMessage:
      return SendWrongMessage();
    case Input::kChangedRequest:
      return SendChanged();
    case Input::kFlood:
      return SendFlood();
    case Input::kStop:
      return Stop();
    case Input::kRingNonsense:
      return WriteRing();
    case Input::kHello:
      return SayHello();
    case Input::kProof:
      return Prove();
    case Input::kSocket:
      return UseSocket();
    case Input::kReconnect:
      return Reconnect();
    case Input::kCount:
      return;
  }
}

void StormClient::Count(Came came) {
  ++tally_->sent;
  ++(came == Came::kAnswer  ? tally_->answered
     : came == Came::kError ? tally_->refused
     : came == Came::kLeft  ? tally_->left
                            : tally_->closed);
}

void StormClient::CountAnswer() {
  const auto answer = peer_->Answer();
  Count(!answer ? Came::kClosed : answer->code == 0 ? Came::kAnswer : Came::kError);
  if (!answer) peer_.reset();
}

// --- Getting in

format::HelloRequest StormClient::Hello() {
  format::HelloRequest hello = RawPeer::Hello(static_cast<uint32_t>(random_.Uniform(kShards)));
  hello.client_id = 1000 + random_.Uniform(5);
  return hello;
}

std::optional<format::HelloRequest> StormClient::Proved(std::string_view token, uint32_t slots) {
  format::HelloRequest hello = Hello();
  hello.slots = slots;
  return RawPeer::Proved(address_, token, hello);
}

bool StormClient::Enter() {
  if (peer_ && peer_->connected()) return true;
  const auto hello = Proved(token_);
  if (hello) peer_ = std::make_unique<RawPeer>(address_, BytesOf(*hello));
  used_ = hello;
  if (hello && peer_->connected()) {
    said_ = peer_->hello();
    return true;
  }
  peer_.reset();
  // Too many clients of its token are connected or have just come. That is no input, however often it tries.
  return false;
}

// --- Requests

void StormClient::Post(const Request& request, std::string_view rest) {
  std::string bytes(AsString(BytesOf(request)));
  peer_->PostImm(0, bytes.append(rest));
}

std::string StormClient::Key() {
  for (;;) {
    const std::string key = "hostile" + std::to_string(random_.Uniform(100));
    if (said_.geometry.ShardOf(HashKey(key, said_.hash_seed)) == used_->shard) return key;
  }
}

// Makes a good put, delete or other request.
Request StormClient::Sound(std::string* rest) {
  const std::string key = Key();
  Request request{};
  constexpr RequestOp kOps[] = {RequestOp::kPutInline, RequestOp::kPutInline, RequestOp::kDelete, RequestOp::kReport};
  request.op = Code8(kOps[random_.Uniform(std::size(kOps))]);
  request.ack = static_cast<uint8_t>(random_.Uniform(2));
  request.id = random_.Next();
  request.key_size = static_cast<uint16_t>(key.size());
  if (request.op == Code8(RequestOp::kPutInline)) request.value_size = static_cast<uint32_t>(random_.Uniform(1500));
  *rest = key;
  rest->resize(format::InlineValueOffset(key.size()) - sizeof(Request));
  rest->append(Bytes(random_.Next(), request.value_size));
  return request;
}

void StormClient::SendSpoilt() {
  if (!Enter()) return;
  std::string rest;
  Request request = Sound(&rest);
  switch (random_.Uniform(8)) {
    case 0:
      request.op = static_cast<uint8_t>(random_.Uniform(256));
      break;
    case 1:
      request.ack = static_cast<uint8_t>(random_.Uniform(256));
      break;
    case 2:
      request.condition = static_cast<uint8_t>(random_.Uniform(256));
      break;
    case 3:
      request.key_size = static_cast<uint16_t>(random_.Next() >> random_.Uniform(64));
      break;
    case 4:
      request.value_size = static_cast<uint32_t>(random_.Next() >> random_.Uniform(64));
      break;
    case 5:
      request.version = random_.Next();
      request.condition = 1;
      break;
    case 6:
      request.op = Code8(random_.Chance(0.5) ? RequestOp::kReserve : RequestOp::kIncrement);
      request.value_size = static_cast<uint32_t>(random_.Next() >> random_.Uniform(64));
      break;
    default:
      rest = Bytes(random_.Next(), rest.size());  // of any shard
      break;
  }
  Post(request, rest);
  CountAnswer();
}

void StormClient::SendRandom() {
  if (!Enter()) return;
  Request request{};
  const std::string noise = Bytes(random_.Next(), sizeof(request));
  std::memcpy(&request, noise.data(), sizeof(request));
  // Makes many requests pass the first checks.
  request.op = static_cast<uint8_t>(random_.Uniform(13));
  if (random_.Chance(0.8)) request.ack = static_cast<uint8_t>(request.ack % 2);
  if (random_.Chance(0.8)) request.condition = static_cast<uint8_t>(request.condition % 2);
  if (random_.Chance(0.8)) request.key_size = static_cast<uint16_t>(request.key_size % 8);
  if (random_.Chance(0.8)) request.value_size %= 2000;
  Post(request, Bytes(random_.Uniform(50), 2100));
  CountAnswer();
}

void StormClient::SendWrongPlace() {
  if (!Enter()) return;
  std::string rest;
  Request request = Sound(&rest);
  constexpr RequestOp kOps[] = {RequestOp::kCommit, RequestOp::kPutDelegated, RequestOp::kGiveBack,
                                RequestOp::kDelegate};
  request.op = Code8(kOps[random_.Uniform(std::size(kOps))]);
  request.key_hash = random_.Chance(0.5) ? random_.Next()
                                         : HashKey(std::string_view(rest).substr(0, request.key_size), said_.hash_seed);
  request.address = static_cast<uint32_t>(random_.Next() >> random_.Uniform(64));
  request.head = static_cast<uint32_t>(random_.Uniform(3) == 0 ? random_.Next() : random_.Uniform(4));
  request.version = random_.Next() >> random_.Uniform(64);
  request.value_size = static_cast<uint32_t>(random_.Next() >> random_.Uniform(64));
  request.value_crc = static_cast<uint32_t>(random_.Next());
  Post(request, rest);
  CountAnswer();
}

void StormClient::SendWrongMessage() {
  if (!Enter()) return;
  switch (random_.Uniform(4)) {
    case 0:
      peer_->PostImm(RawPeer::kSlots + static_cast<uint32_t>(random_.Uniform(1000)));
      break;
    case 1:
      peer_->PostImm(static_cast<uint32_t>(random_.Next()) | 1U << 31, Bytes(random_.Next(), random_.Uniform(200)));
      break;
    case 2:
      peer_->PostSend(Bytes(random_.Next(), random_.Uniform(fabric::kSendBytesMax + 1)));
      break;
    default:
      peer_->PostImm(format::kAsksTime | static_cast<uint32_t>(random_.Uniform(20)), "some bytes");
      break;
  }
  CountAnswer();
}

void StormClient::SendChanged() {
  if (!Enter()) return;
  std::string rest;
  const Request request = Sound(&rest);
  Post(request, rest);
  for (int i = 0; i < 2; ++i) {
    peer_->Write(format::kRequestRegion, random_.Uniform(64), Bytes(random_.Next(), 1 + random_.Uniform(64)));
  }
  CountAnswer();
}

void StormClient::SendFlood() {
  if (!Enter()) return;
  for (uint32_t i = 0; i < 3 * RawPeer::kSlots; ++i) {
    std::string rest;
    const Request request = Sound(&rest);
    const uint32_t slot = i % RawPeer::kSlots;
    const std::string bytes = std::string(AsString(BytesOf(request))) + rest;
    peer_->Write(format::kRequestRegion, uint64_t{slot} * kSlotBytes, bytes);
    peer_->PostImm(slot);
    Count(Came::kLeft);
  }
  peer_.reset();
}

void StormClient::Stop() {
  if (!Enter()) return;
  const std::string key = Key();
  const auto size = static_cast<uint32_t>(random_.Between(1, 30'000));
  const bool chunk = random_.Chance(0.4);
  if (chunk) {
    Request request{};
    request.op = Code8(RequestOp::kDelegate);
    request.head = said_.geometry.HeadOf(HashKey(key, said_.hash_seed));
    request.version = 200;
    request.value_size = size;
    peer_->Post(request, "");
  } else {
    peer_->Post(RawPeer::ReserveRequest(key, size, random_.Chance(0.5) ? Ack::kPlaced : Ack::kPersisted), key);
  }
  const auto told = peer_->Answer();
  if (!told) {
    peer_.reset();
    return Count(Came::kClosed);
  }
  if (told->code == 0 && !chunk) {
    const std::string body = peer_->Body(*told, Bytes(random_.Next(), size));
    const std::string_view part = std::string_view(body).substr(0, random_.Uniform(body.size() + 1));
    peer_->Write(format::kPoolWriteRegion, peer_->BodyOffset(*told),
                 random_.Chance(0.5) ? std::string(part) : Bytes(random_.Next(), part.size()));
  }
  if (random_.Chance(0.5)) peer_.reset();
  Count(told->code == 0 ? Came::kLeft : Came::kError);
}

// --- Below requests

void StormClient::WriteRing() {
  const auto hello = Proved(token_, Intruder::kSlots);
  if (!hello) return Count(Came::kError);
  Intruder intruder(address_.substr(std::string_view("shm:").size()), Intruder::kReadWrite, *hello);
  if (!intruder.connected()) return Count(Came::kError);
  const size_t bytes = 2 * Intruder::Ring::Bytes(Intruder::kSlots);
  for (int i = 0; i < 8; ++i) {
    // Writes words anywhere: into indexes, descriptors and messages.
    const uint64_t at = random_.Uniform(4) == 0 ? 0 : random_.Uniform(bytes / sizeof(uint64_t)) * sizeof(uint64_t);
    const uint64_t word = random_.Next() >> random_.Uniform(64);
    std::atomic_ref<uint64_t>(*reinterpret_cast<uint64_t*>(intruder.rings() + at)).store(word);
    fabric::shm::RingDoorbell(intruder.socket());
    Count(Came::kLeft);
  }
}

void StormClient::SayHello() {
  format::HelloRequest hello = Hello();
  size_t bytes = sizeof(hello);
  switch (random_.Uniform(4)) {
    case 0:
      bytes = random_.Uniform(sizeof(hello));
      break;
    case 1: {
      const std::string noise = Bytes(random_.Next(), sizeof(hello));
      std::memcpy(&hello, noise.data(), sizeof(hello));
      break;
    }
    case 2:
      hello.protocol_version = static_cast<uint16_t>(random_.Next());
      break;
    default:
      hello.shard = static_cast<uint16_t>(random_.Next());
      hello.challenge = random_.Next();
      break;
  }
  const RawPeer peer(address_, BytesOf(hello).first(bytes));
  Count(peer.connected() ? Came::kAnswer : Came::kError);
}

void StormClient::Prove() {
  if (used_ && random_.Chance(0.3)) {
    const RawPeer again(address_, BytesOf(*used_));
    EXPECT_FALSE(again.connected()) << "a proof counts once";
    return Count(Came::kError);
  }
  auto hello = Proved(random_.Chance(0.5) ? "a-token-that-nobody-has" : token_);
  if (!hello) return Count(Came::kError);
  switch (random_.Uniform(3)) {
    case 0:
      ++hello->client_id;
      break;
    case 1:
      hello->proof[random_.Uniform(hello->proof.size())] ^= 1;
      break;
    default:
      hello->slots += 1;
      break;
  }
  const RawPeer peer(address_, BytesOf(*hello));
  EXPECT_FALSE(peer.connected()) << "it has proved nothing";
  Count(Came::kError);
}

void StormClient::UseSocket() {
  std::vector<UniqueFd> sockets;
  for (uint64_t i = random_.Between(1, 8); i > 0; --i) {
    auto socket = fabric::shm::ConnectTo(address_.substr(std::string_view("shm:").size()));
    if (!socket.ok()) {
      Count(Came::kError);
      continue;
    }
    const std::string garbage = Bytes(random_.Next(), random_.Uniform(600));
    if (random_.Chance(0.4)) {
      (void)::send(socket->get(), garbage.data(), garbage.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    } else if (random_.Chance(0.5)) {
      fabric::shm::Greeting greeting;
      std::memcpy(greeting.data.data(), garbage.data(), std::min(garbage.size(), greeting.data.size()));
      greeting.kind = static_cast<decltype(greeting.kind)>(random_.Uniform(4));
      greeting.message_depth = static_cast<uint32_t>(random_.Next() >> random_.Uniform(64));
      greeting.regions = static_cast<uint32_t>(random_.Uniform(12));
      greeting.data_bytes = static_cast<uint32_t>(random_.Uniform(220));
      for (uint64_t& size : greeting.region_sizes) size = random_.Next() >> random_.Uniform(64);
      const UniqueFd event(::eventfd(0, EFD_CLOEXEC));
      const std::vector<int> fds(random_.Uniform(9), event.get());
      (void)fabric::shm::SendGreeting(socket->get(), greeting, fds);
    }  // otherwise it is silent
    sockets.push_back(*std::move(socket));
    Count(Came::kLeft);
  }
}

void StormClient::Reconnect() {
  peer_.reset();
  if (Enter()) Count(Came::kAnswer);
  peer_.reset();
}

}  // namespace erda
