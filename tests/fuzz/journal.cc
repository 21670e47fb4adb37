// The target `journal`: a server opens a pool with a journal whose files were changed.
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "fuzz/check.h"
#include "fuzz/input.h"
#include "fuzz/journal_input.h"
#include "fuzz/targets.h"
#include "server/readers.h"

namespace erda::fuzz {

namespace {

// The bits of `todo`, for a pool that opens.
constexpr uint8_t kPuts = 1;
constexpr uint8_t kDeletes = 2;
// In the first and in the second life.
constexpr std::array<uint8_t, 2> kCloses = {4, 16};
constexpr std::array<uint8_t, 2> kReboots = {8, 32};

Result<std::unique_ptr<PoolServer>> OpenIn(const JournalFolder& folder) {
  auto pool = journal::JournaledPool::Open(folder.Options());
  if (!pool.ok()) return pool.status();
  return PoolServer::Take(*std::move(pool));
}

// A refusal names the thing that cannot be used, and is no fault of the server.
void CheckRefusal(const Status& status) {
  const std::string message(status.message());
  bool names_a_thing = false;
  for (const char* thing : {"pool", "journal", "image", "shard", "region"}) {
    names_a_thing |= message.find(thing) != std::string::npos;
  }
  Check(names_a_thing && status.code() != Code::kInternal, "a refusal says nothing", status.ToString());
}

using Values = std::vector<std::string>;

Values ReadAll(const PoolServer& server) {
  Values values;
  for (int i = 0; i < kKeys + 2; ++i) {
    const std::string key = KeyAt(i);
    values.push_back(server.Get(key));
    const bool may_be =
        values.back() == server::kAbsent || values.back() == server::kDamaged || values.back().starts_with(key + "#");
    Check(may_be, "a get returns what was never put", values.back());
  }
  return values;
}

// Returns false if the journal fails: the stream in a damaged image may be nonsense.
bool ServeSome(PoolServer* server, uint8_t todo) {
  for (int i = 0; i < kKeys + 2; i += 2) {
    const std::string key = KeyAt(i);
    if ((todo & kPuts) != 0) server->Put(key, ValueOf(key, 20, 10 + static_cast<size_t>(todo) * 4));
    if ((todo & kDeletes) != 0 && i % 4 == 0 && server->Hold().ok()) server->Delete(key);
    if (!server->Hold().ok()) return false;
  }
  server->Sweep();
  return server->Hold().ok();
}

void CheckUnchanged(const Values& values) {
  for (int i = 0; i < kKeys + 2; ++i) {
    const std::string value = JournaledValueOf(i);
    Check(values[static_cast<size_t>(i)] == (value.empty() ? std::string(server::kAbsent) : value),
          "an unchanged pool has another value", KeyAt(i) + ": " + values[static_cast<size_t>(i)]);
  }
}

}  // namespace

void OpenJournaled(std::span<const uint8_t> input) {
  static const JournalFolder folder;
  const JournalInput decoded = DecodeJournal(input);
  folder.Write(decoded.files);
  auto server = OpenIn(folder);
  if (!server.ok()) {
    CheckRefusal(server.status());
    Check(decoded.changes > 0, "an unchanged pool is refused", server.status().ToString());
    return;
  }
  const Values found = ReadAll(**server);
  if (decoded.changes == 0) CheckUnchanged(found);
  // Two damages are exceptions. So is a hidden one: a server that finds its image may not need the damaged part, and
  // the next server does.
  const bool may_lose = decoded.changes > 1 || decoded.hidden || decoded.near_end;
  for (size_t life = 0; life < kCloses.size(); ++life) {
    const bool served = ServeSome(server->get(), decoded.todo);
    const Values held = ReadAll(**server);
    if ((decoded.todo & kCloses.at(life)) != 0) (*server)->Close();
    server->reset();
    if ((decoded.todo & kReboots.at(life)) != 0) folder.Reboot();
    server = OpenIn(folder);
    if (!server.ok()) CheckRefusal(server.status());
    if (!server.ok() && (may_lose || !served)) return;
    Check(server.ok(), "what was opened once is refused", server.status().ToString());
    const Values after = ReadAll(**server);
    Check(!served || may_lose || held == after, "a value that was held is lost");
  }
}

}  // namespace erda::fuzz
