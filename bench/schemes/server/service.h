// The server's side of a scheme: sessions, requests, answers. A state machine in the manner of Erda's shard
// (src/server/shard.h), with its care: requests are checked from a private copy, what arrived together shares one
// fence, and each session's answers go behind one doorbell.
#pragma once

#include <array>
#include <deque>
#include <memory>
#include <string_view>
#include <vector>

#include "base/shared_memory.h"
#include "bench/schemes/messages.h"
#include "bench/schemes/server/storage.h"
#include "fabric/fabric.h"
#include "format/messages.h"

namespace erda::schemes {

struct ServiceOptions {
  Scheme scheme = Scheme::kRedoLogging;
  uint32_t max_clients = 1024;
  uint32_t slot_bytes = 16384;  // of a request and of an answer, and so of the largest value
  format::FlushMethod flush_method = format::FlushMethod::kNone;
};

class Service {
 public:
  // All that is passed by reference outlives it.
  static Result<std::unique_ptr<Service>> Create(Storage& storage, fabric::Fabric& fabric,
                                                 fabric::CompletionQueue& queue, const ServiceOptions& options);
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;
  ~Service() = default;

  // A peer that asks: becomes a session, or is refused with a message.
  void Admit(std::unique_ptr<fabric::Incoming> incoming);
  // Serves what has arrived and answers; then, in the background of the answers, applies what is in the log. How much
  // that was.
  size_t Poll();
  // Something may arrive that nobody tells of: an entry that a client writes one-sidedly.
  [[nodiscard]] bool expects_entries() const { return storage_.unapplied() > 0; }
  // Ends all sessions, and leaves the pool with an empty log.
  void Close();

  static Refusal MakeRefusal(Code code, std::string_view message);

 private:
  struct Session {
    Owner id = 0;
    uint32_t slots = 0;
    SharedMemory request_memory;
    std::vector<std::byte> reply_memory;
    std::unique_ptr<fabric::Region> request_region;
    std::unique_ptr<fabric::Region> reply_region;
    std::unique_ptr<fabric::Channel> channel;  // goes first: it uses the regions
    std::vector<fabric::WorkRequest> replies;  // not posted yet
    std::vector<bool> waits;                   // by slot: its request does
    bool doomed = false;
  };
  struct Waiting {
    Owner session;
    uint32_t slot;
  };

  Service(Storage& storage, fabric::Fabric& fabric, fabric::CompletionQueue& queue, const ServiceOptions& options)
      : storage_(storage), fabric_(fabric), queue_(queue), options_(options) {}
  Status RegisterPool();
  Status Accept(fabric::Incoming& incoming);
  Result<std::unique_ptr<Session>> MakeSession(uint32_t slots);
  void Doom(Session& session);
  void EndDoomed();

  void Handle(const fabric::Completion& completion);
  void Wait(Session& session, uint32_t slot);
  void ServeWaiting();
  // False if the request breaks the protocol.
  bool Serve(Session& session, uint32_t slot);
  bool ServePut(Session& session, uint32_t slot, const Request& request, std::span<const std::byte> pair);
  bool ServeGet(Session& session, uint32_t slot, std::string_view key);
  void ServeCounters(Session& session, uint32_t slot);
  void AnswerAdmission(Session& session, uint32_t slot, Admission admission, uint64_t position);
  [[nodiscard]] uint64_t ReplyStride() const { return uint64_t{options_.slot_bytes} + kCacheLine; }
  [[nodiscard]] std::span<std::byte> ReplySlot(Session& session, uint32_t slot) const;
  // With so many bytes, which stand behind the Reply in its slot already.
  void Answer(Session& session, uint32_t slot, Code code, uint32_t value_size = 0, uint64_t position = 0);
  void PostReplies();

  Storage& storage_;
  fabric::Fabric& fabric_;
  fabric::CompletionQueue& queue_;
  const ServiceOptions options_;
  std::unique_ptr<fabric::Region> pool_region_;     // Read After Write's clients write into the log
  std::vector<std::unique_ptr<Session>> sessions_;  // by id; null where free
  std::vector<Session*> answered_;
  std::vector<Owner> doomed_;
  std::deque<Waiting> waiting_;  // for room in the log, in their order
  Counters counters_{};
  std::array<fabric::Completion, 64> completions_;
};

}  // namespace erda::schemes
