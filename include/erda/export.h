// Marks the symbols that the shared libraries export. All others are hidden.
#pragma once

#define ERDA_EXPORT __attribute__((visibility("default")))
