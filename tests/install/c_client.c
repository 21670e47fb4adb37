/* A C program that uses an installed client: c_client <socket path where nobody listens>. */
#include <erda/erda.h>
#include <stdio.h>

int main(int argc, char** argv) {
  char address[1024];
  erda_client_options options;
  erda_client* client = NULL;
  erda_code code;
  if (argc != 2) {
    fprintf(stderr, "usage: c_client <socket path>\n");
    return 2;
  }
  snprintf(address, sizeof address, "shm:%s", argv[1]);
  erda_client_options_init(&options, sizeof options);
  options.timeout_ms = 100;
  code = erda_client_connect(address, &options, &client);
  printf("%s: %s\n", erda_client_code_name(code), erda_client_error());
  erda_client_close(client);
  return code == ERDA_UNAVAILABLE || code == ERDA_TIMEOUT ? 0 : 1;
}
