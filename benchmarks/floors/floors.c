/* The smallest programs that bounce a message, to hold the lab's floors against.
 *
 * Usage: floors NAME CORE_A CORE_B ROUND_TRIPS
 * NAME:  cache_line futex eventfd udp_spin udp_block unix_block tcp_block pty_block
 *
 * Prints the median round trip in nanoseconds. Each round trip is one reading of CLOCK_MONOTONIC; the
 * parent starts, a forked child answers; both are pinned; the first tenth is warm-up.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

enum { PAYLOAD_BYTES = 64 };

/* One direction each: two cache lines, two descriptors. */
static _Atomic uint32_t *words[2];
static int reads[2], writes[2];
static int spin;

static void die(const char *what) { perror(what); exit(1); }

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void pin(int core)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(core, &set);
    if (sched_setaffinity(0, sizeof set, &set)) die("sched_setaffinity");
}

/* — memory — */

static void put_word(int direction, uint32_t value, int wake)
{
    atomic_store_explicit(words[direction], value, memory_order_release);
    if (wake) syscall(SYS_futex, words[direction], FUTEX_WAKE, 1, NULL, NULL, 0);
}

static void await_word(int direction, uint32_t value, int sleep)
{
    uint32_t seen;
    while ((seen = atomic_load_explicit(words[direction], memory_order_acquire)) != value)
        if (sleep) syscall(SYS_futex, words[direction], FUTEX_WAIT, seen, NULL, NULL, 0);
}

/* — descriptors — */

static void put_bytes(int direction, int bytes)
{
    static char message[PAYLOAD_BYTES];
    if (write(writes[direction], message, bytes) != bytes) die("write");
}

static void await_bytes(int direction, int bytes)
{
    char message[PAYLOAD_BYTES];
    for (int got = 0; got < bytes;) {
        ssize_t n = spin ? recv(reads[direction], message, bytes - got, MSG_DONTWAIT)
                         : read(reads[direction], message, bytes - got);
        if (n > 0) got += n;
        else if (!spin) die("read");
    }
}

static void udp_pair(void)
{
    struct sockaddr_in at[2];
    for (int i = 0; i < 2; i++) {
        socklen_t length = sizeof at[i];
        memset(&at[i], 0, sizeof at[i]);
        at[i].sin_family = AF_INET;
        at[i].sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        reads[i] = socket(AF_INET, SOCK_DGRAM, 0);
        if (bind(reads[i], (struct sockaddr *)&at[i], sizeof at[i])) die("bind");
        getsockname(reads[i], (struct sockaddr *)&at[i], &length);
    }
    for (int i = 0; i < 2; i++) {
        writes[i] = socket(AF_INET, SOCK_DGRAM, 0);
        if (connect(writes[i], (struct sockaddr *)&at[i], sizeof at[i])) die("connect");
    }
}

static void tcp_pair(void)
{
    for (int i = 0; i < 2; i++) {
        struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        socklen_t length = sizeof at;
        int one = 1, listener = socket(AF_INET, SOCK_STREAM, 0);
        if (bind(listener, (struct sockaddr *)&at, sizeof at) || listen(listener, 1)) die("listen");
        getsockname(listener, (struct sockaddr *)&at, &length);
        writes[i] = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(writes[i], (struct sockaddr *)&at, sizeof at)) die("connect");
        setsockopt(writes[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        reads[i] = accept(listener, NULL, NULL);
    }
}

static void pty_pair(void)
{
    for (int i = 0; i < 2; i++) {
        struct termios raw;
        reads[i] = posix_openpt(O_RDWR | O_NOCTTY);
        if (reads[i] < 0 || grantpt(reads[i]) || unlockpt(reads[i])) die("posix_openpt");
        writes[i] = open(ptsname(reads[i]), O_RDWR | O_NOCTTY);
        tcgetattr(writes[i], &raw);
        cfmakeraw(&raw);
        tcsetattr(writes[i], TCSANOW, &raw);
    }
}

static void unix_pair(void)
{
    for (int i = 0; i < 2; i++) {
        int ends[2];
        if (socketpair(AF_UNIX, SOCK_DGRAM, 0, ends)) die("socketpair");
        reads[i] = ends[0];
        writes[i] = ends[1];
    }
}

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    if (argc != 5) {
        fprintf(stderr, "usage: floors NAME CORE_A CORE_B ROUND_TRIPS\n");
        return 2;
    }
    const char *name = argv[1];
    uint32_t rounds = (uint32_t)atoi(argv[4]), first = rounds / 10 + 1;
    int in_memory = !strcmp(name, "cache_line") || !strcmp(name, "futex"), sleep = name[0] == 'f';
    int bytes = !strcmp(name, "eventfd") ? 8 : PAYLOAD_BYTES;

    char *lines = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    words[0] = (_Atomic uint32_t *)lines;
    words[1] = (_Atomic uint32_t *)(lines + 128);
    if (!strncmp(name, "udp", 3)) udp_pair();
    if (!strncmp(name, "tcp", 3)) tcp_pair();
    if (!strncmp(name, "pty", 3)) pty_pair();
    if (!strncmp(name, "unix", 4)) unix_pair();
    if (!strcmp(name, "eventfd"))
        for (int i = 0; i < 2; i++) reads[i] = writes[i] = eventfd(0, 0);
    spin = strstr(name, "_spin") != NULL;

    pid_t child = fork();
    if (child == 0) {
        pin(atoi(argv[3]));
        for (uint32_t i = 1; i <= rounds; i++) {
            if (in_memory) await_word(0, i, sleep), put_word(1, i, sleep);
            else if (bytes == 8) {
                uint64_t one;
                if (read(reads[0], &one, 8) != 8) die("read");
                one = 1;
                if (write(writes[1], &one, 8) != 8) die("write");
            } else await_bytes(0, bytes), put_bytes(1, bytes);
        }
        _exit(0);
    }
    pin(atoi(argv[2]));
    int64_t *trips = calloc(rounds + 1, sizeof *trips);
    memset(trips, 1, (rounds + 1) * sizeof *trips);
    int64_t start = now_ns();
    for (uint32_t i = 1; i <= rounds; i++) {
        if (in_memory) put_word(0, i, sleep), await_word(1, i, sleep);
        else if (bytes == 8) {
            uint64_t one = 1;
            if (write(writes[0], &one, 8) != 8) die("write");
            if (read(reads[1], &one, 8) != 8) die("read");
        } else put_bytes(0, bytes), await_bytes(1, bytes);
        int64_t end = now_ns();
        trips[i] = end - start;
        start = end;
    }
    waitpid(child, NULL, 0);
    qsort(trips + first, rounds - first + 1, sizeof *trips, by_value);
    printf("%lld\n", (long long)trips[first + (rounds - first + 1) / 2]);
    return 0;
}
