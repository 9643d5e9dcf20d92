/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define _GNU_SOURCE /* ppoll */
#include "noctule_posix.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

int64_t noctule_posix_now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static speed_t speed_of(uint32_t baud) {
    switch (baud) {
    case 9600: return B9600;
    case 57600: return B57600;
    case 115200: return B115200;
    case 230400: return B230400;
#ifdef B460800
    case 460800: return B460800;
    case 500000: return B500000;
    case 921600: return B921600;
    case 1000000: return B1000000;
    case 2000000: return B2000000;
    case 3000000: return B3000000;
#endif
    default: return B0;
    }
}

static int open_device(noctule_posix_t *self) {
    struct termios raw;
    const speed_t speed = speed_of(self->baud);
    if (speed == B0) {
        errno = EINVAL;
        return -1;
    }
    self->descriptor = open(self->path, O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
    if (self->descriptor < 0) return -1;
    if (tcgetattr(self->descriptor, &raw) == 0) {
        cfmakeraw(&raw);
        raw.c_cflag |= CLOCAL | CREAD;
        cfsetspeed(&raw, speed);
        if (tcsetattr(self->descriptor, TCSANOW, &raw) == 0) {
            tcflush(self->descriptor, TCIOFLUSH);
            self->opened++;
            return 0;
        }
    }
    noctule_posix_close(self);
    return -1;
}

int noctule_posix_open_serial(noctule_posix_t *self, const char *path, uint32_t baud) {
    memset(self, 0, sizeof *self);
    self->descriptor = -1;
    self->path = path;
    self->baud = baud;
    return open_device(self);
}

int noctule_posix_open_udp(noctule_posix_t *self, const char *host, uint16_t port) {
    struct sockaddr_in address;
    memset(self, 0, sizeof *self);
    memset(&address, 0, sizeof address);
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    self->descriptor = -1;
    if (inet_pton(AF_INET, host, &address.sin_addr) != 1) {
        errno = EINVAL;
        return -1;
    }
    self->descriptor = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (self->descriptor < 0) return -1;
    self->opened = 1;
    if (connect(self->descriptor, (const struct sockaddr *)&address, sizeof address) == 0) return 0;
    noctule_posix_close(self);
    return -1;
}

void noctule_posix_close(noctule_posix_t *self) {
    if (self->descriptor >= 0) close(self->descriptor);
    self->descriptor = -1;
    self->unsent_at = self->unsent_end = 0;
}

/* False if the device is gone. A datagram without a listener is lost like any other. */
static bool lost(const noctule_posix_t *self) { return self->path != NULL && errno != EAGAIN && errno != EINTR; }

/* Sends until the line is full or nothing is due. True if bytes wait for the line. */
static bool send_due(noctule_posix_t *self, noctule_client_t *client, uint8_t *out, size_t out_bytes) {
    for (;;) {
        ssize_t sent;
        if (self->unsent_at == self->unsent_end) {
            const int32_t length = noctule_client_poll_transmit(client, noctule_posix_now_ns(), out, out_bytes);
            if (length <= 0) return false;
            self->unsent_at = 0;
            self->unsent_end = (size_t)length;
        }
        sent = write(self->descriptor, out + self->unsent_at, self->unsent_end - self->unsent_at);
        if (sent < 0 && lost(self)) {
            noctule_posix_close(self);
            return false;
        }
        if (sent < 0 && self->path != NULL) return true;
        self->unsent_at = sent < 0 ? self->unsent_end : self->unsent_at + (size_t)sent;
    }
}

static void receive(noctule_posix_t *self, noctule_client_t *client) {
    uint8_t bytes[2048];
    /* So many turns and no more: a flood must not keep the program from its other work. */
    int turn;
    for (turn = 0; turn < 16; turn++) {
        const ssize_t got = read(self->descriptor, bytes, sizeof bytes);
        if (got < 0 && !lost(self)) return;
        if (got <= 0) {
            if (self->path != NULL) noctule_posix_close(self);
            return;
        }
        if (self->path != NULL)
            noctule_client_handle_bytes(client, bytes, (size_t)got, noctule_posix_now_ns());
        else
            noctule_client_handle_datagram(client, bytes, (size_t)got, noctule_posix_now_ns());
    }
}

void noctule_posix_turn(noctule_posix_t *self, noctule_client_t *client, uint8_t *out, size_t out_bytes,
                        int64_t wake_ns) {
    struct pollfd ready = {0, POLLIN, 0};
    struct timespec pause;
    int64_t now_ns = noctule_posix_now_ns(), next_ns;
    if (self->descriptor < 0 && self->path != NULL && now_ns >= self->reopen_ns) {
        self->reopen_ns = now_ns + NOCTULE_POSIX_REOPEN_NS;
        open_device(self);
    }
    if (self->descriptor >= 0 && send_due(self, client, out, out_bytes)) ready.events |= POLLOUT;
    now_ns = noctule_posix_now_ns();
    next_ns = self->descriptor < 0 ? self->reopen_ns : INT64_MAX;
    if (self->descriptor >= 0 && !(ready.events & POLLOUT)) next_ns = noctule_client_next_timeout(client, now_ns);
    if (wake_ns < next_ns) next_ns = wake_ns;
    next_ns = next_ns > now_ns ? next_ns - now_ns : 0;
    if (next_ns > INT64_C(1000000000)) next_ns = INT64_C(1000000000);
    pause.tv_sec = (time_t)(next_ns / INT64_C(1000000000));
    pause.tv_nsec = (long)(next_ns % INT64_C(1000000000));
    ready.fd = self->descriptor;
    if (ppoll(&ready, 1, &pause, NULL) > 0 && self->descriptor >= 0 && ready.revents & (POLLIN | POLLERR | POLLHUP))
        receive(self, client);
}
