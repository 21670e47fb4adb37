// A server and its clients on the simulated fabric. One seeded loop drives the production shard and client engine in
// virtual time, and records the operations of the clients.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "erda/client.h"
#include "erda/server.h"
#include "sim/history.h"
#include "sim/plan.h"

namespace erda::sim {

// Counts of the events of one run, or of many.
enum class Fact : uint8_t {
  kRuns,
  kOperations,
  kUnknownOutcomes,  // operations that ended without an answer
  kKills,
  kPauses,
  kRestarts,
  kProcessDeaths,
  kPowerCuts,
  kRecoveriesCutOff,
  kDamages,
  kDroppedChannels,
  kTornWrites,
  kTornReads,
  kLatePieces,
  kLostPieces,
  kGetsAtOnce,
  kOlderVersions,
  kSecondLooks,
  kReports,
  kTakenBack,
  kRegionsCleaned,
  kVersionsMoved,
  kPutsDelayed,
  kPutsExpiring,
  kExpired,
  kSplits,
  kScans,
  kKeysScanned,
  kPutsRefused,
  kRunsWithRoom,
  kPutsStaged,
  kForged,  // headers in chunks
  kGrown,   // pools that grew between two lives of the server
  kFlips,   // flipped bits of index entries
  kCount
};
inline constexpr std::array kFactNames = {
    "runs",
    "operations",
    "operations without an answer",
    "clients killed",
    "clients paused",
    "clean restarts",
    "deaths of the server's process",
    "power cuts",
    "recoveries cut off",
    "values damaged on the medium",
    "channels broken",
    "Writes torn",
    "Reads torn",
    "pieces of Writes placed after their completion",
    "pieces of Writes lost",
    "gets at once",
    "gets that returned an older version",
    "second looks",
    "reports of what was not whole",
    "versions taken back",
    "regions cleaned",
    "versions moved by the cleaner",
    "puts that waited for room",
    "puts with a time to live",
    "versions freed since they had expired",
    "blocks of the index split",
    "pages of scans",
    "keys that scans told",
    "puts refused for want of room",
    "runs that had to have room",
    "puts through a staging buffer",
    "headers forged in chunks",
    "pools grown",
    "bits of index entries flipped",
};
static_assert(kFactNames.size() == static_cast<size_t>(Fact::kCount));

struct Facts {
  std::array<uint64_t, kFactNames.size()> counts{};
  uint64_t& operator[](Fact fact) { return counts.at(static_cast<size_t>(fact)); }
  uint64_t operator[](Fact fact) const { return counts.at(static_cast<size_t>(fact)); }
  Facts& operator+=(const Facts& other) {
    for (size_t i = 0; i < counts.size(); ++i) counts.at(i) += other.counts.at(i);
    return *this;
  }
};

struct Outcome {
  History history;
  std::string failure;  // any failure but a history that is not linearizable
  uint64_t network_hash = 0;
  std::array<uint64_t, 10> codes{};  // the number of operations that ended with each code
  ClientStats clients;               // the sum over all clients
  Facts facts;
  uint64_t settled = 0;
  RecoveryReport recovered;
};

Outcome RunPlan(const Plan& plan);
// Returns the fault of a run, or nothing.
std::string ProblemOf(const Outcome& outcome);

}  // namespace erda::sim
