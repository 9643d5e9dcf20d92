/* How long the structures are, for programs that allocate them from another language. */
#include "noctule_client.h"

size_t noctule_board_client_bytes(void) { return sizeof(noctule_client_t); }
size_t noctule_board_config_bytes(void) { return sizeof(noctule_client_config_t); }
size_t noctule_board_counts_bytes(void) { return sizeof(noctule_client_counts_t); }
