// The values that the clients of a crash test put, and the records that they write about it.
//
// Each client has a separate file with a line for each record. It writes each line by one write(2) before its next
// step, so a SIGKILL of the client loses no record. Times are CLOCK_MONOTONIC, so that the files of one machine fit
// together.
//
//   client 7 placed inline            its number and options
//   begin 12 30567891234 put 5        its operation 12, on key 5: before it is started
//   end 12 30567899876 ok             after it ended; a get that found something adds 7:12 (client and operation of the
//                                     put), or "damaged"
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"
#include "erda/client.h"
#include "sim/history.h"

namespace erda::crash {

using sim::Action;

// A put has an id that is made of its client and its operation.
constexpr uint64_t kDamaged = 0;
constexpr uint64_t ValueId(uint32_t client, uint64_t operation) { return uint64_t{client} << 32 | operation; }
std::string ValueName(uint64_t id);

// Makes the value of a put. It holds the id and the key, and then a pattern that follows from both up to its end.
constexpr size_t kLeastValueBytes = 32;
std::string MakeValue(uint64_t id, uint32_t key, size_t size);
// Returns the id in such a value, or kDamaged.
uint64_t ValueIn(std::string_view value, uint32_t key);

std::string KeyName(uint32_t key);

struct Operation {
  uint32_t client = 0;
  uint64_t number = 0;
  uint32_t key = 0;
  Action action = Action::kGet;
  uint64_t begin = 0;
  uint64_t end = sim::Record::kNever;
  Code code = Code::kUnavailable;  // also for an operation without an end
  uint64_t value = 0;              // the value that a put stores or that a get found
  bool placed = false;             // true for a put with Ack::kPlaced
};

class Recorder {
 public:
  // Ends the program if it cannot make or write the file: a client must not do anything that is not recorded.
  Recorder(const std::string& path, uint32_t client, const ClientOptions& options);
  void Begin(uint64_t operation, Action action, uint32_t key);
  void End(uint64_t operation, Code code);
  void EndGet(uint64_t operation, uint64_t value);

 private:
  void Write(const std::string& line);

  std::string path_;
  UniqueFd fd_;
};

// Reads the records of a file. Leaves out an unfinished last line: its client was killed before it went on.
Result<std::vector<Operation>> ReadRecords(const std::string& path);

// Returns a text like "client 7 put 7:12 placed: ok".
std::string ToText(const Operation& operation);

}  // namespace erda::crash
