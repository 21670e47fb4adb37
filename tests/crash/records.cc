#include "crash/records.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <unordered_map>

#include "base/clock.h"
#include "base/random.h"

namespace erda::crash {

namespace {

constexpr std::array<const char*, 3> kActions = {"get", "put", "delete"};

// Returns the name of a code in one word.
std::string Word(Code code) {
  std::string word(CodeName(code));
  for (char& c : word) c = c == ' ' ? '-' : c;
  return word;
}

std::optional<Code> CodeOf(const std::string& word) {
  for (int i = 0; i <= static_cast<int>(Code::kInternal); ++i) {
    if (Word(static_cast<Code>(i)) == word) return static_cast<Code>(i);
  }
  return std::nullopt;
}

std::optional<Action> ActionOf(const std::string& word) {
  for (size_t i = 0; i < kActions.size(); ++i) {
    if (kActions[i] == word) return static_cast<Action>(i);
  }
  return std::nullopt;
}

int64_t Now() { return SteadyClock::Instance().Now().count(); }

}  // namespace

std::string ValueName(uint64_t id) { return fmt::format("{}:{}", id >> 32, id & 0xffffffff); }

std::string MakeValue(uint64_t id, uint32_t key, size_t size) {
  const std::array<uint64_t, 3> head = {id, key, size};
  std::string value(size, '\0');
  std::memcpy(value.data(), head.data(), sizeof(head));
  Random random(Random::Mix(id) + key);
  for (size_t at = sizeof(head); at < size; at += sizeof(uint64_t)) {
    const uint64_t word = random.Next();
    std::memcpy(value.data() + at, &word, std::min(sizeof(word), size - at));
  }
  return value;
}

uint64_t ValueIn(std::string_view value, uint32_t key) {
  if (value.size() < kLeastValueBytes) return kDamaged;
  uint64_t id = 0;
  std::memcpy(&id, value.data(), sizeof(id));
  return value == MakeValue(id, key, value.size()) ? id : kDamaged;
}

std::string KeyName(uint32_t key) {
  // Keys have many different lengths.
  return fmt::format("key {} ", key) + std::string(key * 7 % 60, 'k');
}

Recorder::Recorder(const std::string& path, uint32_t client, const ClientOptions& options)
    : path_(path), fd_(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0644)) {
  constexpr std::array<const char*, 4> kPaths = {"auto", "reserve", "inline", "delegate"};
  Write(fmt::format("client {} {} {}\n", client, options.ack == Ack::kPlaced ? "placed" : "persisted",
                    kPaths[static_cast<size_t>(options.put_path)]));
}

void Recorder::Write(const std::string& line) {
  if (write(fd_.get(), line.data(), line.size()) == static_cast<ssize_t>(line.size())) return;
  fmt::print(stderr, "erda-crash: cannot write {}: {}\n", path_, std::strerror(errno));
  std::_Exit(1);
}

void Recorder::Begin(uint64_t operation, Action action, uint32_t key) {
  Write(fmt::format("begin {} {} {} {}\n", operation, Now(), kActions[static_cast<size_t>(action)], key));
}

void Recorder::End(uint64_t operation, Code code) {
  Write(fmt::format("end {} {} {}\n", operation, Now(), Word(code)));
}

void Recorder::EndGet(uint64_t operation, uint64_t value) {
  Write(fmt::format("end {} {} ok {}\n", operation, Now(), value == kDamaged ? "damaged" : ValueName(value)));
}

Result<std::vector<Operation>> ReadRecords(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string all(std::istreambuf_iterator<char>(file), {});
  std::vector<Operation> operations;
  std::unordered_map<uint64_t, size_t> index;  // by number of the operation
  uint32_t client = 0;
  bool placed = false;
  for (size_t at = 0, end = 0; (end = all.find('\n', at)) != std::string::npos; at = end + 1) {
    std::istringstream line(all.substr(at, end - at));
    const auto bad = [&] { return Status(Code::kCorruption, path + ": not a record: " + line.str()); };
    std::string kind;
    std::string word;
    Operation operation;
    line >> kind;
    if (kind == "client") {
      line >> client >> word;
      placed = word == "placed";
    } else if (kind == "begin") {
      line >> operation.number >> operation.begin >> word >> operation.key;
      const auto action = ActionOf(word);
      if (!action || !index.emplace(operation.number, operations.size()).second) return bad();
      operation.client = client;
      operation.action = *action;
      if (action == Action::kPut) {
        operation.value = ValueId(client, operation.number);
        operation.placed = placed;
      }
      operations.push_back(operation);
    } else if (kind == "end") {
      uint64_t number = 0;
      uint64_t time = 0;
      line >> number >> time >> word;
      const auto code = CodeOf(word);
      const auto found = index.find(number);
      if (!code || found == index.end()) return bad();
      Operation& begun = operations[found->second];
      begun.end = time;
      begun.code = *code;
      if (line && begun.action == Action::kGet && code == Code::kOk && line >> word && word != "damaged") {
        std::istringstream name(word);
        uint32_t writer = 0;
        char colon = 0;
        if (!(name >> writer >> colon >> number) || colon != ':') return bad();
        begun.value = ValueId(writer, number);
      }
    } else {
      return bad();
    }
    if (!line) return bad();
  }
  if (client == 0 && !operations.empty()) return Status(Code::kCorruption, path + ": it does not say whose it is");
  return operations;
}

std::string ToText(const Operation& o) {
  std::string text = fmt::format("client {} {}", o.client, kActions[static_cast<size_t>(o.action)]);
  if (o.action == Action::kPut) text += " " + ValueName(o.value) + (o.placed ? " placed" : " persisted");
  if (o.end == sim::Record::kNever) return text + ": no answer";
  text += ": " + std::string(CodeName(o.code));
  if (o.action != Action::kGet || o.code != Code::kOk) return text;
  return text + ", " + (o.value == kDamaged ? "damaged" : ValueName(o.value));
}

}  // namespace erda::crash
