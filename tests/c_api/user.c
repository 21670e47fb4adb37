#include "c_api/user.h"

#include <string.h>

#define REQUIRE(holds) \
  if (!(holds)) return __LINE__

static void Count(void* user, const erda_result* result) {
  if (result->code == ERDA_OK) ++*(int*)user;
}

const erda_operation_stats* OperationOfKind(const erda_activity* activity, const char* kind) {
  size_t i;
  for (i = 0; i < activity->operation_count; ++i) {
    if (strcmp(activity->operations[i]->kind, kind) == 0) return activity->operations[i];
  }
  return NULL;
}

int UseClientFromC(const char* address) {
  erda_client_options options;
  erda_client* client = NULL;
  erda_result* result = NULL;
  erda_put_options put;
  char out[8];
  erda_activity* activity = NULL;
  const erda_operation_stats* operation;
  size_t size = 0;
  uint64_t version = 0;
  int done = 0;

  erda_client_options_init(&options, sizeof options);
  options.ack = ERDA_ACK_PLACED;
  REQUIRE(erda_client_connect(address, &options, &client) == ERDA_OK);
  REQUIRE(erda_client_put(client, "c", 1, "value", 5, NULL, &version) == ERDA_OK && version > 0);
  REQUIRE(erda_client_get(client, "c", 1, out, sizeof out, &size) == ERDA_OK);
  REQUIRE(size == 5 && memcmp(out, "value", 5) == 0);
  erda_client_put_options_init(&put, sizeof put);
  put.conditional = 1;
  put.if_version = version + 1;
  REQUIRE(erda_client_put(client, "c", 1, "other", 5, &put, NULL) == ERDA_CONFLICT);
  REQUIRE(strstr(erda_client_error(), "version") != NULL);
  REQUIRE(erda_client_get_alloc(client, "c", 1, &result) == ERDA_OK && result->version == version);
  erda_client_free(result);
  REQUIRE(erda_client_get_async(client, "c", 1, Count, &done) == ERDA_OK);
  REQUIRE(erda_client_drain(client) == ERDA_OK && done == 1);
  REQUIRE(erda_client_delete(client, "c", 1, NULL) == ERDA_OK);
  REQUIRE(erda_client_get(client, "c", 1, out, sizeof out, &size) == ERDA_NOT_FOUND && size == 0);
  REQUIRE(erda_client_get_activity(client, &activity) == ERDA_OK);
  operation = OperationOfKind(activity, "delete");
  REQUIRE(operation != NULL && operation->count == 1 && operation->outcomes[ERDA_OK] == 1);
  REQUIRE(activity->fabric_count == 1 && strcmp(activity->fabrics[0]->scheme, "shm") == 0);
  REQUIRE(activity->persist->upper_bounds_ns[0] == 256);
  erda_client_free(activity);
  erda_client_close(client);
  return 0;
}

static void Ignore(void* user, const char* line) {
  (void)user;
  (void)line;
}

int UseServerFromC(const char* address) {
  erda_server_options options;
  erda_server* server = NULL;
  erda_server_addresses* addresses = NULL;
  erda_activity* activity = NULL;
  const erda_operation_stats* operation;
  const erda_latency_histogram* time;
  erda_server_stats stats;
  erda_recovery_report report;
  int line;

  erda_server_options_init(&options, sizeof options);
  options.pool = "dram:";
  options.listen = &address;
  options.listen_count = 1;
  options.on_event = Ignore;
  REQUIRE(erda_server_open(&options, &server) == ERDA_INVALID_ARGUMENT && server == NULL);
  REQUIRE(strstr(erda_server_error(), "size") != NULL);
  options.pool_size = 64 << 20;
  REQUIRE(erda_server_open(&options, &server) == ERDA_OK);
  REQUIRE(erda_server_start(server) == ERDA_OK);
  REQUIRE(erda_server_get_addresses(server, &addresses) == ERDA_OK);
  REQUIRE(addresses->count == 1 && strcmp(addresses->addresses[0], address) == 0);
  erda_server_free(addresses);
  line = UseClientFromC(address);
  if (line != 0) return line;
  stats.size = sizeof stats;
  REQUIRE(erda_server_get_stats(server, &stats) == ERDA_OK && stats.deletes == 1);
  REQUIRE(erda_server_get_activity(server, &activity) == ERDA_OK);
  operation = OperationOfKind(activity, "put_inline");
  REQUIRE(operation != NULL && operation->count == 2 && operation->outcomes[ERDA_CONFLICT] == 1);
  time = operation->time;
  REQUIRE(time->count == 2 && erda_server_quantile_ns(time->counts, time->buckets, 1) >= time->upper_bounds_ns[0]);
  erda_server_free(activity);
  report.size = sizeof report;
  REQUIRE(erda_server_get_recovery(server, &report) == ERDA_NOT_FOUND);
  REQUIRE(strcmp(erda_server_durability(server), "volatile") == 0);
  REQUIRE(erda_server_stop(server) == ERDA_OK);
  erda_server_close(server);
  return 0;
}
