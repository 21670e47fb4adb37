#include "fuzz/libfuzzer/main.h"

ERDA_FUZZ_TARGET(erda::fuzz::Inspect, erda::fuzz::kPlaces)
