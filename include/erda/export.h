// Marks what the shared libraries export. Everything else is hidden.
#pragma once

#define ERDA_EXPORT __attribute__((visibility("default")))
