// A C program's use of the client and of the server, in C99: user.c. 0, or the line that found a fault.
#pragma once

#ifdef __cplusplus
extern "C" {
#endif
int UseClientFromC(const char* address);
// Serves at this address, and uses a client there.
int UseServerFromC(const char* address);
#ifdef __cplusplus
}
#endif
