// 10: a server and a client in C99. The C API, erda/erda.h, has all that the C++ API has.
//
// Prints:
//   greeting: hello
//   2 of 2 asynchronous gets found it
//   put if absent: conflict, the key exists
//   server: 1 puts
#define _POSIX_C_SOURCE 200809L  // mkdtemp

#include <erda/erda.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int Fail(const char* what, erda_code code, const char* message) {
  fprintf(stderr, "%s: %s: %s\n", what, erda_client_code_name(code), message);
  return 1;
}

// Each of the two libraries keeps the message of its last failure.
static int ClientFailed(const char* what, erda_code code) { return Fail(what, code, erda_client_error()); }
static int ServerFailed(const char* what, erda_code code) { return Fail(what, code, erda_server_error()); }

// A callback. It runs inside erda_client_poll, erda_client_drain or another call that waits, on the client's thread.
static void CountFound(void* user, const erda_result* result) {
  if (result->code == ERDA_OK) ++*(int*)user;
}

static int UseClient(erda_client* client) {
  erda_result* result = NULL;
  erda_put_options if_absent;
  int found = 0;
  erda_code code = erda_client_put(client, "greeting", 8, "hello", 5, NULL, NULL);
  if (code != ERDA_OK) return ClientFailed("put", code);

  code = erda_client_get_alloc(client, "greeting", 8, &result);
  if (code != ERDA_OK) return ClientFailed("get", code);
  printf("greeting: %.*s\n", (int)result->value.size, (const char*)result->value.data);
  erda_client_free(result);

  for (int i = 0; i < 2; ++i) {
    code = erda_client_get_async(client, "greeting", 8, CountFound, &found);
    if (code != ERDA_OK) return ClientFailed("start a get", code);
  }
  code = erda_client_drain(client);
  if (code != ERDA_OK) return ClientFailed("drain", code);
  printf("%d of 2 asynchronous gets found it\n", found);

  erda_client_put_options_init(&if_absent, sizeof if_absent);  // always call this: it sets the size and the defaults
  if_absent.conditional = 1;
  code = erda_client_put(client, "greeting", 8, "hi", 2, &if_absent, NULL);
  if (code != ERDA_CONFLICT) return ClientFailed("put if absent", code);
  printf("put if absent: %s, the key exists\n", erda_client_code_name(code));
  return 0;
}

static int Connect(const char* address) {
  erda_client_options options;
  erda_client* client = NULL;
  erda_code code;
  int failed;
  erda_client_options_init(&options, sizeof options);
  options.timeout_ms = 2000;
  code = erda_client_connect(address, &options, &client);
  if (code != ERDA_OK) return ClientFailed("connect", code);
  failed = UseClient(client);
  erda_client_close(client);
  return failed;
}

static int Serve(const char* address) {
  erda_server_options options;
  erda_server_stats stats;
  erda_server* server = NULL;
  erda_code code;
  int failed = 0;
  erda_server_options_init(&options, sizeof options);
  options.pool = "dram:";
  options.pool_size = (uint64_t)64 << 20;
  options.listen = &address;
  options.listen_count = 1;
  code = erda_server_open(&options, &server);
  if (code != ERDA_OK) return ServerFailed("open", code);
  code = erda_server_start(server);
  if (code != ERDA_OK) failed = ServerFailed("start", code);
  if (!failed) failed = Connect(address);
  if (!failed) {
    stats.size = sizeof stats;
    code = erda_server_get_stats(server, &stats);
    if (code != ERDA_OK) failed = ServerFailed("counts", code);
  }
  if (!failed) printf("server: %" PRIu64 " puts\n", stats.puts);
  code = erda_server_stop(server);
  if (code != ERDA_OK) failed = ServerFailed("stop", code);
  erda_server_close(server);
  return failed;
}

int main(void) {
  char folder[] = "/tmp/erda-example.XXXXXX";
  char address[64];
  int failed;
  if (mkdtemp(folder) == NULL) {
    perror(folder);
    return 1;
  }
  snprintf(address, sizeof address, "shm:%s/socket", folder);
  failed = Serve(address);
  rmdir(folder);
  return failed;
}
