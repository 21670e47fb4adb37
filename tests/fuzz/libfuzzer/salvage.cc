#include "fuzz/libfuzzer/main.h"

ERDA_FUZZ_TARGET(erda::fuzz::Salvage, erda::fuzz::kPlaces)
