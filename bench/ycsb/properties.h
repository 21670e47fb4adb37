// YCSB's properties: the workload files and assignments that go-ycsb, YCSB and YCSB-cpp take, as options of erda-ycsb.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/ycsb/workload.h"
#include "erda/status.h"

namespace erda::bench {

// Names and values. A later assignment of a name replaces an earlier one.
class Properties {
 public:
  // Adds the lines "name=value" of a file. Empty lines, and lines that begin with # or !, are comments. Returns the
  // fault with the file and line.
  Status AddFile(const std::string& path);
  // Adds an assignment "name=value".
  Status Add(std::string_view assignment);

  [[nodiscard]] const std::map<std::string, std::string, std::less<>>& all() const { return all_; }
  // Returns the value, or `otherwise` if the name has none.
  [[nodiscard]] std::string_view Value(std::string_view name, std::string_view otherwise) const;

 private:
  std::map<std::string, std::string, std::less<>> all_;
};

// The work that properties describe.
struct TranslatedProperties {
  // Options of erda-ycsb, with their values: {"--records", "1000"}. A flag has the value "true".
  std::vector<std::pair<std::string, std::string>> options;
  std::optional<Workload> workload;  // Set if a proportion is given.
  std::optional<Distribution> distribution;
  std::vector<std::string> unused;  // Names that say nothing to erda-ycsb.
};

// Returns kInvalidArgument for work that erda-ycsb cannot do, as scans. Proportions that are missing have the values
// of YCSB's core workload: 0.95 reads, 0.05 updates, and a uniform choice of records.
[[nodiscard]] Result<TranslatedProperties> Translate(const Properties& properties);

}  // namespace erda::bench
