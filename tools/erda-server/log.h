// The log of erda-server: a line for each event, on stderr or in a file.
//
//   2026-11-25T04:35:04.123Z warning: client 00000000000003e8 (...), shard 0: it broke the protocol: ...
//
// If stderr is systemd's journal, which has the time, lines begin with their priority instead: <4>client ...
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

namespace spdlog {
class logger;
namespace details {
class thread_pool;
}
}  // namespace spdlog

namespace erda::tools {

enum class LogLevel : uint8_t { kDebug, kInfo, kWarning, kError };

class Log {
 public:
  explicit Log(LogLevel least) : least_(least) {}  // Lower levels are not written.
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;
  ~Log();  // Writes the remaining lines.

  // Call it before the first Write. Appends to the file, or writes to stderr if the name is empty. Returns the error,
  // or an empty text.
  [[nodiscard]] std::string Open(const std::string& file);

  // Changes the lowest level and the file. Returns the error, or an empty text. After an error nothing has changed.
  [[nodiscard]] std::string Change(LogLevel least, const std::string& file);

  // Call it from any thread. It does not wait: a separate thread writes the lines. If that thread is late, and there
  // is no room for more lines, it leaves out the oldest. Each text becomes one printable line.
  void Write(LogLevel level, std::string_view text);
  // Call it from the thread that opens and changes the log.
  [[nodiscard]] bool to_file() const { return !file_.empty(); }

 private:
  using Writer = std::shared_ptr<spdlog::details::thread_pool>;
  [[nodiscard]] static std::shared_ptr<spdlog::logger> MakeLogger(const std::string& file, const Writer& writer);

  std::atomic<LogLevel> least_;  // Relaxed: a line on its way may still use the old level.
  std::string file_;
  Writer writer_;
  std::mutex mutex_;  // Guards writer_ and logger_ while they are copied or exchanged.
  std::shared_ptr<spdlog::logger> logger_;
};

}  // namespace erda::tools
