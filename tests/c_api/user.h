// A C program's use of the client and of the server, in C99: user.c. Returns 0, or the line that found a fault.
#pragma once

#include <erda/erda.h>

#ifdef __cplusplus
extern "C" {
#endif
// Returns the requests of a kind. Returns NULL if there is no such kind.
const erda_operation_stats* OperationOfKind(const erda_activity* activity, const char* kind);
int UseClientFromC(const char* address);
// Serves at this address, and uses a client there.
int UseServerFromC(const char* address);
#ifdef __cplusplus
}
#endif
