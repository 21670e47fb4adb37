#include "fuzz/libfuzzer/main.h"

ERDA_FUZZ_TARGET(erda::fuzz::OpenAndServe, erda::fuzz::kPlaces)
