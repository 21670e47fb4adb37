// Measures small pieces of Erda, and whole operations over the shm fabric, by Google Benchmark. tools/micro counts
// their instructions.
#include <benchmark/benchmark.h>

#include "bench/micro/checksum.h"
#include "bench/micro/copy.h"
#include "bench/micro/entry_word.h"
#include "bench/micro/index.h"
#include "bench/micro/key_hash.h"
#include "bench/micro/memory_get.h"
#include "bench/micro/object.h"
#include "bench/micro/ring.h"
#include "bench/micro/shard.h"
#include "bench/micro/shm_operations.h"
#include "bench/micro/suite.h"

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  erda::micro::Suite suite;
  erda::micro::AddChecksums(suite);
  erda::micro::AddKeyHashes(suite);
  erda::micro::AddEntryWords(suite);
  erda::micro::AddIndexes(suite);
  erda::micro::AddObjects(suite);
  erda::micro::AddRings(suite);
  erda::micro::AddCopies(suite);
  erda::micro::AddShards(suite);
  erda::micro::AddMemoryGets(suite);
  erda::micro::AddShmOperations(suite);
  benchmark::RunSpecifiedBenchmarks();
  return suite.failed() ? 1 : 0;
}
