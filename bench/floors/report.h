// Results of the floors measurement, for people and for programs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/floors/settings.h"
#include "erda/status.h"

namespace erda::floors {

enum class Figure : uint8_t {
  kRawRead64,
  kRawReadObject,
  kGetCold,
  kRawPingPong,
  kRawPutWork,
  kPutInline,
  kRawWriteFlush,
  kPutReserve,
  kDelete,
  kGetWarm,
  kRawReadsDeep,
  kGetsDeep,
  kMemoryWork,
  kRawWriteAsk,
  kPutDelegate,
  kPutTrusted,
  kPutGuarded,
  kCount
};
inline constexpr size_t kFigures = static_cast<size_t>(Figure::kCount);
// Returns the name in the JSON.
[[nodiscard]] std::string_view NameOf(Figure figure);

// Microseconds for one operation. Each sample is the mean of a block.
class Samples {
 public:
  void Add(double us) { us_.push_back(us); }
  [[nodiscard]] size_t count() const { return us_.size(); }
  // Returns the least sample that `percent` of all samples do not exceed. REQUIRES: count() > 0.
  [[nodiscard]] double Percentile(double percent) const;
  [[nodiscard]] double median() const { return Percentile(50); }
  [[nodiscard]] double p99() const { return Percentile(99); }
  // REQUIRES: count() > 0.
  [[nodiscard]] double mean() const;

 private:
  std::vector<double> us_;
};

struct Machine {
  std::string name;
  std::string cpu;
  uint32_t cpus = 0;
  std::string kernel;
  std::string clock;  // The kernel's source of time.
};
[[nodiscard]] Machine ThisMachine();

struct Ratios {
  double get_cold = 0;
  double put_inline = 0;
  double put_bare = 0;  // Of put_inline: the time over that of the bare work of a put, without the engine.
  double put_reserve = 0;
  double put_delegate = 0;  // Of values of kLargeBytes.
  double trust = 0;  // Of delegated puts: the time with the least rights over that of clients that may write anywhere.
  double get_warm = 0;
  double get_rate = 0;               // Of operations in a second: the larger, the better.
  std::optional<double> get_memory;  // Of shm alone: elsewhere a get is more than work in memory.
  // Returns the largest of the ratios of times.
  [[nodiscard]] double worst() const;
};

struct Report {
  Machine machine;
  std::string address;
  std::string durability;
  std::string flush_method;
  std::string least_rights;  // How clients with the least rights place values: `placing` of ServerInfo.
  Plan plan;
  double clock_ns = 0;  // Time of one look at the clock.
  std::array<Samples, kFigures> samples;
  std::optional<double> ib_read_lat_us;
  std::string ib_read_lat_note;  // The reason if there is no value.

  [[nodiscard]] Samples& Of(Figure figure) { return samples[static_cast<size_t>(figure)]; }
  [[nodiscard]] const Samples& Of(Figure figure) const { return samples[static_cast<size_t>(figure)]; }
  [[nodiscard]] double Median(Figure figure) const { return Of(figure).median(); }
  [[nodiscard]] Ratios ratios(const Settings& settings) const;
  // Returns the time of a raw Read of 64 bytes over that of ib_read_lat.
  [[nodiscard]] std::optional<double> ib_read_lat_ratio() const;
};

[[nodiscard]] std::string ToTable(const Settings& settings, const Report& report);
[[nodiscard]] nlohmann::ordered_json ToJson(const Settings& settings, const Report& report);
// Writes all of the file, or leaves it as it was.
Status WriteFileAtomically(const std::string& path, const std::string& content);

}  // namespace erda::floors
