// The specification of Versions as plain lists of versions, without addresses, entry words and chains. The tests of all
// orders and the random tests compare both after each step.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "erda/client.h"
#include "format/hello.h"
#include "server/versions/in_flight.h"

namespace erda::server {

class Reference {
 public:
  struct Version {
    std::string key;
    std::string value;
    Ack ack = Ack::kPersisted;
    SessionId session = 0;
    bool awaits_commit = false;
    bool flushed_by_read = false;  // its writer makes it persistent, and so does each reader
    bool open = false;             // reserved, and its reservation is kept
    bool live = false;             // its writer may still bring it
    bool whole = false;
    bool settled = false;
    bool superseded = false;
  };
  using Handle = std::shared_ptr<Version>;

  // flush: the method of each session without a SetFlush.
  explicit Reference(format::FlushMethod flush) : flush_(flush) {}
  void SetFlush(SessionId session, format::FlushMethod flush) { flushes_[session] = flush; }

  void Inline(const std::string& key, const std::string& value, Ack ack);
  Handle Reserve(const std::string& key, const std::string& value, Ack ack, SessionId session);
  void Land(const Handle& version) { version->whole = true; }
  // The writer's Read after its Write came back.
  void Flushed(const Handle& version) { Raise(keys_[version->key], version); }
  // Returns the answer to a commit. nullopt: the commit breaks the protocol.
  std::optional<Code> Commit(const Handle& version);
  Code Delete(const std::string& key);
  void EndSession(SessionId session);
  void Sweep();

  [[nodiscard]] std::string Get(const std::string& key) const;
  // A reader has seen this value. If it was put with kPersisted, no power cut may undo it from now on.
  Handle Seen(const std::string& key, const std::string& value);
  // Returns the value that is left after the server's process dies.
  [[nodiscard]] std::string AfterCrash(const std::string& key) const;
  // Returns the values that may be left after a power cut.
  [[nodiscard]] std::set<std::string> AfterPowerCut(const std::string& key) const;

  [[nodiscard]] size_t in_flight() const;
  [[nodiscard]] size_t in_flight(SessionId session) const;
  // Returns the number of keys with an entry.
  [[nodiscard]] size_t keys() const;

 private:
  // The versions of one key since its last delete, in the order of publication.
  struct Key {
    std::vector<Handle> versions;
    Handle floor;  // acknowledged or seen, with kPersisted. Nothing older can come back
  };

  // Returns the version that the entry names.
  [[nodiscard]] static Handle Newest(const Key& key);
  void Settle(const Handle& version);
  static void Raise(Key& key, const Handle& version);
  [[nodiscard]] bool Visible(const Version& version) const {
    return version.whole && (version.settled || version.ack == Ack::kPlaced || version.flushed_by_read ||
                             flush_ == format::FlushMethod::kNone);
  }

  format::FlushMethod flush_;
  std::map<SessionId, format::FlushMethod> flushes_;
  std::map<std::string, Key> keys_;
  std::vector<Handle> reservations_;
};

}  // namespace erda::server
