#include "fuzz/journal_input.h"
#include "fuzz/libfuzzer/main.h"

ERDA_FUZZ_TARGET(erda::fuzz::OpenJournaled, erda::fuzz::kJournalPlaces)
