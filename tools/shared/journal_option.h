// Options for the journal of a pool, in erda-server and erda-pool.
#pragma once

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tools/shared/command_line.h"

namespace erda::tools {

struct JournalFile {
  std::string path;
  uint64_t size = 0;  // 0: the default of a new journal.
};

inline std::optional<JournalFile> ParseJournalFile(const std::string& text) {
  constexpr std::string_view kSize = ",size=";
  const size_t comma = text.rfind(kSize);
  if (comma == std::string::npos) return text.empty() ? std::nullopt : std::optional(JournalFile{text, 0});
  const auto size = ParseSize(std::string_view(text).substr(comma + kSize.size()));
  if (!size || *size == 0 || comma == 0) return std::nullopt;
  return JournalFile{text.substr(0, comma), *size};
}

inline void AddJournalFile(CLI::App& app, std::string& path, uint64_t& size, const std::string& help) {
  const auto check = [](const std::string& text) {
    if (ParseJournalFile(text)) return std::string();
    return fmt::format("'{}' is not a journal: give a file, such as /srv/erda.journal or /srv/erda.journal,size=1G",
                       text);
  };
  const auto take = [&path, &size](const std::string& text) {
    const JournalFile file = *ParseJournalFile(text);
    path = file.path;
    size = file.size;
  };
  app.add_option_function<std::string>("--journal", take, help)
      ->check(CLI::Validator(check, "", "journal"))
      ->type_name("FILE[,size=SIZE]")
      ->group("Journal");
}

inline void AddJournalOnTmpfs(CLI::App& app, bool& on_tmpfs) {
  app.add_flag("--journal-on-tmpfs", on_tmpfs,
               "Accept a pool and a journal that are in memory themselves, and survive no power cut; for tests")
      ->group("Journal");
}

}  // namespace erda::tools
