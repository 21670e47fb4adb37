// top: shows the rates of a server again every second.
#include "tools/erda-cli/top.h"

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "erda/client.h"
#include "erda/status.h"
#include "tools/erda-cli/command.h"
#include "tools/erda-cli/interval.h"
#include "tools/erda-cli/screen.h"

namespace erda::cli {

namespace {

struct TopOptions {
  uint32_t count = 0;
  uint32_t interval_ms = 1000;
};

std::string TimeOfDay() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  std::string text(sizeof("00:00:00"), '\0');
  text.resize(std::strftime(text.data(), text.size(), "%T", ::localtime_r(&now, &parts)));
  return text;
}

int Top(Session& session, const TopOptions& options) {
  Status failed;
  {
    Screen screen;
    std::optional<Reading> before;
    for (uint32_t frame = 0; options.count == 0 || frame < options.count; ++frame) {
      const auto interval = std::chrono::milliseconds(options.interval_ms);
      if (before && !screen.WaitUntil(before->at + interval)) return 0;
      auto now = Read(*session.client);
      if (!now.ok()) {
        failed = now.status();
        break;
      }
      std::vector<std::string> lines = LinesOf(before ? &*before : nullptr, *now);
      lines.front() = TimeOfDay() + "  " + session.address + "  " + lines.front();
      if (const int code = screen.Show(std::move(lines)); code != 0) return code;
      before = *std::move(now);
    }
  }
  return Finish(session, failed);  // The terminal is restored already.
}

}  // namespace

void AddTop(CLI::App& sub, Session& session) {
  TopOptions& options = Bind(sub, session, Top);
  tools::AddNumber<uint32_t>(sub, "-n,--count", options.count, 0, UINT32_MAX,
                             "The number of screens; default 0, until q or a signal");
  tools::AddNumber<uint32_t>(sub, "--interval-ms", options.interval_ms, 100, 3'600'000,
                             "Milliseconds from one screen to the next; default 1000");
}

}  // namespace erda::cli
