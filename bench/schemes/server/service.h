// The server's side of a scheme: sessions, requests, answers. A state machine like Erda's shard (src/server/shard.h),
// and as careful. It checks requests from a private copy. Requests that arrive together share one fence. The answers of
// each session share one doorbell.
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
#include "format/hello.h"

namespace erda::schemes {

struct ServiceOptions {
  Scheme scheme = Scheme::kRedoLogging;
  uint32_t max_clients = 1024;
  uint32_t slot_bytes = 16384;  // Of a request and of an answer, and so of the largest value.
  format::FlushMethod flush_method = format::FlushMethod::kNone;
};

class Service {
 public:
  // Requires: all arguments that are references outlive the service.
  static Result<std::unique_ptr<Service>> Create(Storage& storage, fabric::Fabric& fabric,
                                                 fabric::CompletionQueue& queue, const ServiceOptions& options);
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;
  ~Service() = default;

  // Makes a session for a peer that asks, or refuses it with a message.
  void Admit(std::unique_ptr<fabric::Incoming> incoming);
  // Serves and answers the requests that have arrived. Then, while the answers travel, applies entries of the log.
  // Returns the amount of work.
  size_t Poll();
  // Returns true if a client may write an entry one-sidedly, which sends no message.
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
    std::unique_ptr<fabric::Channel> channel;  // Destroyed first: it uses the regions.
    std::vector<fabric::WorkRequest> replies;  // Not posted yet.
    std::vector<bool> waits;                   // By slot: its request waits.
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
  // Returns false if the request breaks the protocol.
  bool Serve(Session& session, uint32_t slot);
  bool ServePut(Session& session, uint32_t slot, const Request& request, std::span<const std::byte> pair);
  bool ServeGet(Session& session, uint32_t slot, std::string_view key);
  void ServeCounters(Session& session, uint32_t slot);
  void AnswerAdmission(Session& session, uint32_t slot, Admission admission, uint64_t position);
  [[nodiscard]] uint64_t ReplyStride() const { return uint64_t{options_.slot_bytes} + kCacheLine; }
  [[nodiscard]] std::span<std::byte> ReplySlot(Session& session, uint32_t slot) const;
  // Answers. Requires: value_size bytes stand after the Reply in its slot already.
  void Answer(Session& session, uint32_t slot, Code code, uint32_t value_size = 0, uint64_t position = 0);
  void PostReplies();

  Storage& storage_;
  fabric::Fabric& fabric_;
  fabric::CompletionQueue& queue_;
  const ServiceOptions options_;
  std::unique_ptr<fabric::Region> pool_region_;     // Clients of Read After Write write into the log.
  std::vector<std::unique_ptr<Session>> sessions_;  // By id; null if the id is free.
  std::vector<Session*> answered_;
  std::vector<Owner> doomed_;
  std::deque<Waiting> waiting_;  // Requests that wait for room in the log, in their order.
  Counters counters_{};
  std::array<fabric::Completion, 64> completions_;
};

}  // namespace erda::schemes
