/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The client on Linux and other POSIX systems: a serial device or pseudo terminal, or UDP. One descriptor, no thread; it
 * sleeps in poll(2) until bytes come or something is due. A device that goes away is opened again as soon as it is back.
 */
#ifndef NOCTULE_POSIX_H
#define NOCTULE_POSIX_H

#include "../../noctule_client.h"

/* A device that is not there is looked for this often. */
#define NOCTULE_POSIX_REOPEN_NS INT64_C(50000000)

/* The line. `path` must live as long as it. */
typedef struct {
    int descriptor; /* -1: the device is not there */
    const char *path;
    uint32_t baud;
    int64_t reopen_ns;
    uint32_t opened; /* times */
    size_t unsent_at, unsent_end;
} noctule_posix_t;

/* Opens a device, raw, 8N1. Zero, or -1 with errno: EINVAL is a baud rate that this system does not support. */
int noctule_posix_open_serial(noctule_posix_t *self, const char *path, uint32_t baud);

/* A socket that exchanges datagrams with `host` (a numeric IPv4 address) only. Zero, or -1 with errno. */
int noctule_posix_open_udp(noctule_posix_t *self, const char *host, uint16_t port);

void noctule_posix_close(noctule_posix_t *self);

/* CLOCK_MONOTONIC. */
int64_t noctule_posix_now_ns(void);

/* One turn: sends what is due, sleeps until bytes come or `wake_ns`, hands over what came. `out` is the client's own
 * transmit buffer from one turn to the next, NOCTULE_CLIENT_TRANSMIT_BYTES of it. */
void noctule_posix_turn(noctule_posix_t *self, noctule_client_t *client, uint8_t *out, size_t out_bytes, int64_t wake_ns);

#endif
