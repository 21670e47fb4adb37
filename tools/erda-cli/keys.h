// How keys stand on the command line.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "erda/status.h"

namespace erda::cli {

// --key-hex, --key-file: what KEY is, if it is not the key itself.
struct KeyForm {
  bool hex = false;
  bool file = false;

  void AddTo(CLI::App& sub);
  void Check(const std::string& word) const;  // for Bind: throws if that is no number in hexadecimal
  [[nodiscard]] Result<std::string> KeyOf(const std::string& word) const;
};

// One key.
struct KeyOption {
  std::string word;
  KeyForm form;

  void AddTo(CLI::App& sub);
  void Check() const { form.Check(word); }
  [[nodiscard]] Result<std::string> Read() const { return form.KeyOf(word); }
};

// Some keys: KEY..., and those of --file.
struct KeyOptions {
  std::vector<std::string> words;
  std::string list;
  bool null = false;
  KeyForm form;

  void AddTo(CLI::App& sub);
  void Check() const;  // also that there are some
  [[nodiscard]] Result<std::vector<std::string>> Read() const;
};

}  // namespace erda::cli
