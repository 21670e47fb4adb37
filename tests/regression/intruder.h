// A client of shm that speaks the greetings of the fabric itself, and writes into its rings directly.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/bytes.h"
#include "base/shared_memory.h"
#include "fabric/shm/ring.h"
#include "fabric/shm/socket.h"
#include "format/hello.h"
#include "format/messages.h"

namespace erda {

class Intruder {
 public:
  using Descriptor = fabric::shm::Descriptor;
  using Greeting = fabric::shm::Greeting;
  using OpKind = fabric::OpKind;
  using Ring = fabric::shm::Ring;
  static constexpr uint32_t kSlots = 4;
  static constexpr size_t kReplyBytes = kSlots * sizeof(format::Reply);

  static constexpr auto kReadWrite = static_cast<uint32_t>(fabric::Access::kRemoteReadWrite);

  [[nodiscard]] static format::HelloRequest Hello() {
    format::HelloRequest hello{};
    hello.magic = format::kHelloMagic;
    hello.protocol_version = format::kProtocolVersion;
    hello.slots = kSlots;
    return hello;
  }

  explicit Intruder(const std::string& path, uint32_t reply_access = kReadWrite,
                    const format::HelloRequest& hello = Hello())
      : rings_(*SharedMemory::Create("rings", 2 * Ring::Bytes(kSlots))),
        replies_(*SharedMemory::Create("replies", kReplyBytes)),
        transmit_(rings_.bytes().data(), kSlots),
        receive_(rings_.bytes().data() + Ring::Bytes(kSlots), kSlots) {
    auto socket = fabric::shm::ConnectTo(path);
    EXPECT_TRUE(socket.ok()) << socket.status().ToString();
    if (!socket.ok()) return;
    socket_ = *std::move(socket);
    Greeting ask;
    ask.message_depth = kSlots;
    ask.regions = 1;
    ask.region_sizes[0] = kReplyBytes;
    ask.region_access[0] = reply_access;
    ask.data_bytes = sizeof(hello);
    std::memcpy(ask.data.data(), &hello, sizeof(hello));
    const int fds[] = {rings_.view().fd, replies_.view().fd};
    const Status sent = fabric::shm::SendGreeting(socket_.get(), ask, fds);
    EXPECT_TRUE(sent.ok()) << sent.ToString();
    Status status(Code::kTimeout);
    Until([&] {
      status = fabric::shm::ReceiveGreeting(socket_.get(), &answer_, &fds_);
      return status.code() != Code::kTimeout;
    });
    connected_ = status.ok() && answer_.kind == Greeting::kAccept;
    EXPECT_NE(status.code(), Code::kTimeout) << "no answer";
    if (!connected_) return;
    const size_t at = 1 + format::kRequestRegion;
    const UniqueFd& fd = fds_.at(at);
    auto requests =
        SharedMemory::Map(UniqueFd(fcntl(fd.get(), F_DUPFD_CLOEXEC, 0)), answer_.region_sizes[at - 1], true);
    EXPECT_TRUE(requests.ok()) << requests.status().ToString();
    if (requests.ok()) requests_ = *std::move(requests);
  }

  [[nodiscard]] bool connected() const { return connected_; }
  [[nodiscard]] int socket() const { return socket_.get(); }
  [[nodiscard]] const Greeting& answer() const { return answer_; }
  [[nodiscard]] int beacon() const { return fds_.at(0).get(); }
  [[nodiscard]] int region(uint32_t number) const { return fds_.at(1 + number).get(); }
  [[nodiscard]] std::byte* rings() const { return rings_.bytes().data(); }

  // Sends a delete, and asks the server to wake this client when it answers.
  void Ask() {
    format::Request request{};
    request.op = static_cast<uint8_t>(format::RequestOp::kDelete);
    request.key_size = 1;
    std::memcpy(requests_.bytes().data(), &request, sizeof(request));
    requests_.bytes()[sizeof(request)] = std::byte{'k'};
    receive_.BeginSleep();
    transmit_.Push({static_cast<uint32_t>(OpKind::kReceiveImm), 0, sizeof(request) + 1, 0}, {});
    if (transmit_.Publish()) fabric::shm::RingDoorbell(socket_.get());
  }
  bool TakeAnswer() {
    Descriptor descriptor{};
    const auto answered = [&] { return receive_.Peek(&descriptor) == Ring::Look::kMessage; };
    for (int i = 0; i < 1000 && !answered(); ++i) std::this_thread::yield();
    if (!answered() && !Until(answered)) return false;
    receive_.Advance();
    return true;
  }

 private:
  // Waits until `holds` returns true, or for a minute. Returns the last answer of `holds`.
  static bool Until(const std::function<bool()>& holds) {
    for (int tries = 0; tries < 60'000; ++tries) {
      if (holds()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(tries < 10 ? 0 : 1));
    }
    return false;
  }

  SharedMemory rings_;
  SharedMemory replies_;
  Ring transmit_;
  Ring receive_;
  UniqueFd socket_;
  Greeting answer_;
  std::vector<UniqueFd> fds_;
  SharedMemory requests_;
  bool connected_ = false;
};

}  // namespace erda
