/* noctule_peer.h: the node side of the Noctule peer protocol for C99 and C++17, with one include.
 *
 * This header speaks the protocol (docs/spec/peer-protocol.md), places the process on its core, keeps the record and
 * plays the five roles; the author of a peer writes what is particular to a middleware: open, connect, send, receive,
 * close. `peers/udp_c` is the shortest complete user.
 *
 * The hot path is noctule_deliver, np_send, noctule_fill and np_receive. Between two messages they make no system call,
 * allocate nothing, and read the clock once per delivered message: every further reading (about 25 ns) would be charged
 * to the middleware. The price: time-outs are noticed only after receive calls that came back empty.
 *
 * Threads of the middleware inherit the core and the scheduling class: both are set before `open`. */
#ifndef NOCTULE_PEER_H
#define NOCTULE_PEER_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* sched_setaffinity; include this header first */
#endif
#include "noctule_line.h"
#include "noctule_body.h"
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "messages and records are little-endian; this header writes them from memory as they are"
#endif
#define NP_FORMAT(f, a) __attribute__((format(printf, f, a), unused))
#define NP_UNUSED __attribute__((unused))

/* ---- Limits ------------------------------------------------------------------------------------- */
#define NP_SETTINGS_BYTES 4096                  /* all setting.K=V together */
#define NP_FACTS_BYTES 1024                     /* all fact.K=N together */
#define NP_MAX_MESSAGES (UINT64_C(1) << 24)     /* slots of a record: 512 MiB */
#define NP_MARK_WARMUP (UINT64_C(1) << 63)
#define NP_IDLE_NS INT64_C(20000000)            /* silence after which standard input is looked at */
#define NP_QUIET_NS INT64_C(200000000)          /* silence after `stop` that ends a receiving node, unless `run` says it */
#define NP_HYBRID_SPIN_NS INT64_C(50000)
#define NP_LEAD_NS INT64_C(100000)              /* open loop: spin this long before the schedule */
#define NOCTULE_MATCH_TIMEOUT_NS INT64_C(10000000000) /* `connect` gives up after this */

/* ---- What the author of a peer provides --------------------------------------------------------- */

enum noctule_role { NOCTULE_INITIATOR, NOCTULE_ECHO, NOCTULE_SOURCE, NOCTULE_FORWARDER, NOCTULE_SINK };
enum noctule_wait { NOCTULE_SPIN, NOCTULE_BLOCK, NOCTULE_HYBRID };
struct noctule_node;

/* Functions that return int give -1 after noctule_fail(node, "sentence") and 0 or a count otherwise. */
struct noctule_peer {
    const char *name;                   /* one word */
    const char *links, *waits, *modes;  /* lists joined by commas, words of the protocol */
    const char *options;                /* "option.K=V,… …": values that are all there are; NULL if nothing is limited */
    uint64_t max_payload_bytes;
    bool receives_in_thread;            /* the middleware has a thread that must run for messages to arrive */
    const char *(*version)(void);       /* the middleware's own, asked at run time */
    /* Creates everything for node->publish and node->subscribe; writes node->address if publishers need it. */
    int (*open)(struct noctule_node *node);
    /* Returns when node->readers readers and, for node->subscribe, a writer are really matched. */
    int (*connect)(struct noctule_node *node);
    /* Sends one message. NULL if the middleware lends memory to write into: */
    int (*send)(struct noctule_node *node, const void *message, size_t length);
    /* takes memory for `length` bytes, calls noctule_fill(node, memory), publishes. NULL otherwise. */
    int (*send_in_place)(struct noctule_node *node, size_t length);
    /* Hands what has arrived to noctule_deliver, never waits; returns how many messages. */
    int (*try_receive)(struct noctule_node *node);
    /* The same, but sleeps in the kernel until something arrives, at most timeout_ns (NP_IDLE_NS wherever
       no schedule is to be met, so that a peer may set it once). 0 = nothing arrived. */
    int (*receive_blocking)(struct noctule_node *node, int64_t timeout_ns);
    /* Reports the middleware's own counts by noctule_fact; asked for once, after a run. NULL if there are none. */
    void (*facts)(struct noctule_node *node);
    void (*close)(struct noctule_node *node); /* must be fine after a failed open */
};

struct np_slot { int64_t scheduled_ns, sent_ns, received_ns; uint64_t arrivals; };

/* Everything the hot path touches. */
struct np_run {
    struct np_slot *table;      /* NULL: arrivals are thrown away */
    uint64_t slots, index_limit; /* index_limit: the first index that cannot have been sent */
    uint64_t sent, received, duplicated, unexpected, overrun;
    uint64_t out_index;         /* header of the message being sent */
    int64_t out_stamp_ns;
    uint64_t awaited;           /* closed loop: the index whose reply counts */
    int64_t answered_ns, last_ns;
    int64_t cpu_start_ns, cpu_end_ns, recorder_ns;
    bool touch_full, stopping;
    uint64_t messages, warmup_messages, stop_messages;
    int64_t limit_ns, warmup_ns, reply_timeout_ns, quiet_ns, stop_ns;
    double period_ns;           /* 0 = no rate */
};

struct noctule_node {
    const struct noctule_peer *peer;
    void *state;                /* the peer's own */
    enum noctule_role role;
    enum noctule_wait wait;
    const char *session, *publish, *subscribe, *link, *bind_address; /* publish, subscribe: NULL if absent */
    uint64_t node, nodes, readers, payload_bytes, window;
    const char *reader_addresses; /* `connect readers=`, joined by commas, "" if none; valid in connect */
    char address[512];          /* where publishers find this node; "" if they need not know */
    /* from here on private */
    struct np_line open_line;
    struct np_run run;
    unsigned char *message;
    char settings[NP_SETTINGS_BYTES];
    char facts[NP_FACTS_BYTES];
    char error[512];            /* what failed first; "" = nothing did */
    bool opened, connected, ended;
};

/* ---- What the harness offers to peers ----------------------------------------------------------- */

static inline int64_t np_clock_ns(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static inline int64_t noctule_now_ns(void) { return np_clock_ns(CLOCK_MONOTONIC); }
static inline int64_t np_cpu_ns(void) { return np_clock_ns(CLOCK_PROCESS_CPUTIME_ID); }

/* Records why a callback returns -1: one sentence that names the fact and the way out. The first one stands. */
NP_FORMAT(2, 3) static int noctule_fail(struct noctule_node *node, const char *format, ...) {
    va_list arguments;
    if (node->error[0]) return -1;
    va_start(arguments, format);
    vsnprintf(node->error, sizeof node->error, format, arguments);
    va_end(arguments);
    for (char *c = node->error; *c; c++)
        if (*c == '\n' || *c == '\r') *c = ' ';
    return -1;
}

/* The scenario's `option.NAME`, or `otherwise`. */
NP_UNUSED static const char *noctule_option(const struct noctule_node *node, const char *name, const char *otherwise) {
    char key[128];
    snprintf(key, sizeof key, "option.%s", name);
    const char *value = np_value(&node->open_line, key);
    return value ? value : otherwise;
}

/* Reports a setting that shapes the result; call it in open or connect. */
NP_FORMAT(3, 4) static void noctule_setting(struct noctule_node *node, const char *key, const char *format, ...) {
    char value[256], escaped[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(value, sizeof value, format, arguments);
    va_end(arguments);
    np_escape(escaped, sizeof escaped, value);
    size_t used = strlen(node->settings);
    if (used + strlen(key) + strlen(escaped) + 12 < sizeof node->settings)
        snprintf(node->settings + used, sizeof node->settings - used, " setting.%s=%s", key, escaped);
}

/* Reports a number the middleware has counted; a unit ends its name. Call it in facts. */
NP_UNUSED static void noctule_fact(struct noctule_node *node, const char *key, double value) {
    size_t used = strlen(node->facts), left = sizeof node->facts - used;
    if (strlen(key) + 40 < left) snprintf(node->facts + used, left, " fact.%s=%.9g", key, value);
}

/* Writes the message being sent into `memory` (payload_bytes long). Hot: 24 bytes unless touch=full. */
static inline void noctule_fill(struct noctule_node *node, void *memory) {
    const struct np_run *run = &node->run;
    unsigned char *bytes = (unsigned char *)memory;
    size_t length = (size_t)node->payload_bytes;
    memcpy(bytes, &run->out_index, 8);
    memcpy(bytes + 8, &run->out_stamp_ns, 8);
    if (run->touch_full && length > 16) memset(bytes + 16, (int)(run->out_index & 0xff), length - 16);
    if (length >= 24) memcpy(bytes + length - 8, &run->out_index, 8);
}

/* Hot: hands one message of the lab's to the middleware. */
static inline int np_send(struct noctule_node *node, uint64_t index, int64_t stamp_ns, int64_t sent_ns) {
    struct np_run *run = &node->run;
    if (!(index & NP_MARK_WARMUP)) {
        run->table[index].scheduled_ns = stamp_ns;
        run->table[index].sent_ns = sent_ns;
        run->sent++;
    }
    run->out_index = index;
    run->out_stamp_ns = stamp_ns;
    if (node->peer->send_in_place) return node->peer->send_in_place(node, (size_t)node->payload_bytes);
    noctule_fill(node, node->message);
    return node->peer->send(node, node->message, (size_t)node->payload_bytes);
}

/* Hot: takes a message that has just been received. The bytes may be lent; nothing is kept. Echo and forwarder answer
 * from here, while the middleware still holds the buffer, as an application would. An echo answers before it stamps:
 * its stamps are part of no figure, but the time they take would be part of every round trip. */
static inline void noctule_deliver(struct noctule_node *node, const void *memory, size_t length) {
    struct np_run *run = &node->run;
    const unsigned char *bytes = (const unsigned char *)memory;
    bool echo = node->role == NOCTULE_ECHO, whole = length == node->payload_bytes;
    int64_t now = echo ? 0 : noctule_now_ns(), stamp = 0;
    uint64_t index = 0, trailer;
    if (!run->table) return;
    if (whole) {
        memcpy(&index, bytes, 8);
        memcpy(&stamp, bytes + 8, 8);
        memcpy(&trailer, length >= 24 ? bytes + length - 8 : bytes, 8);
        whole = trailer == index;
        if (run->touch_full && length >= 24) whole &= np_body_is(bytes + 16, length - 24, (unsigned char)index);
    }
    bool measured = !(index & NP_MARK_WARMUP);
    if (!whole || (measured && index >= run->index_limit)) { run->unexpected++; return; }
    if (measured && index >= run->slots) { run->overrun++; return; }
    bool again = measured && run->table[index].arrivals++ != 0;
    if (echo && !again) np_send(node, index, stamp, 0);
    if (echo) now = noctule_now_ns();
    run->last_ns = now;
    run->duplicated += again;
    if (again) return;
    if (measured) {
        struct np_slot *slot = &run->table[index];
        slot->received_ns = now;
        if (node->role != NOCTULE_INITIATOR) slot->scheduled_ns = stamp;
        if (echo) slot->sent_ns = now;
        run->received++;
    } else if (node->role != NOCTULE_INITIATOR) run->cpu_start_ns = np_cpu_ns(); /* the last one stands */
    if (index == run->awaited) run->answered_ns = now;
    if (node->role == NOCTULE_FORWARDER) np_send(node, index, stamp, noctule_now_ns());
}

/* ---- Replies and arguments ---------------------------------------------------------------------- */

/* The lab's; descriptor 1 is turned to standard error, for middlewares that talk. */
static FILE *np_output;

static void np_reply(struct noctule_node *node, const char *reply) {
    fprintf(np_output, "%s%s\n", node->error[0] ? "error " : "", node->error[0] ? node->error : reply);
    fflush(np_output);
    node->error[0] = 0;
}

/* The number behind `key`, or `otherwise` if absent. Anything else than a decimal number in range fails. */
static double np_number(struct noctule_node *node, const struct np_line *line, const char *key, double otherwise,
                        double least, double most) {
    const char *text = np_value(line, key);
    char *end = NULL;
    if (!text) return otherwise;
    double number = strtod(text, &end);
    bool decimal = end != text && !*end && strspn(text, "0123456789.") == strlen(text);
    if (decimal && number >= least && number <= most) return number;
    noctule_fail(node, "%.40s=%.60s is not a number between %.9g and %.9g", key, text, least, most);
    return otherwise;
}

/* The value of `key`, which must be in `list`; *number is its place in `order`. */
static const char *np_choice(struct noctule_node *node, const char *key, const char *list, const char *const *order,
                             int *number) {
    const char *word = np_value(&node->open_line, key);
    if (!word) word = "";
    if (!np_listed(list, word)) noctule_fail(node, "%s=%.40s is not offered: use one of %s", key, word, list);
    else while (order && strcmp(order[*number], word) != 0) ++*number;
    return word;
}

/* ---- open and connect: place the process, create the endpoints ---------------------------------- */

static void np_place(struct noctule_node *node, const struct np_line *line) {
    int core = (int)np_number(node, line, "core", -1, 0, CPU_SETSIZE - 1);
    int lock = (int)np_number(node, line, "lock_memory", 0, 0, 1);
    struct sched_param parameter;
    memset(&parameter, 0, sizeof parameter);
    parameter.sched_priority = (int)np_number(node, line, "priority", 0, 0, 99);
    cpu_set_t set;
    CPU_ZERO(&set);
    if (core >= 0) CPU_SET((size_t)core, &set);
    if (core >= 0 && parameter.sched_priority && node->wait == NOCTULE_SPIN && node->peer->receives_in_thread)
        noctule_fail(node, "spinning with SCHED_FIFO starves %s's threads on its core: use block", node->peer->name);
    if (core >= 0 && sched_setaffinity(0, sizeof set, &set) != 0)
        noctule_fail(node, "core %d cannot be used: %ld cores are online", core, sysconf(_SC_NPROCESSORS_ONLN));
    if (parameter.sched_priority && sched_setscheduler(0, SCHED_FIFO, &parameter) != 0)
        noctule_fail(node, "SCHED_FIFO was refused (%s): run as root or raise the rtprio limit", strerror(errno));
    if (lock && mlockall(MCL_CURRENT | MCL_FUTURE) != 0)
        noctule_fail(node, "mlockall was refused (%s): run as root or raise the memlock limit", strerror(errno));
}

static void np_parse_open(struct noctule_node *node, const struct np_line *line) {
    static const char *const roles[] = { "initiator", "echo", "source", "forwarder", "sink" };
    static const char *const waits[] = { "spin", "block", "hybrid" };
    int role = 0, wait = 0;
    np_choice(node, "role", "initiator,echo,source,forwarder,sink", roles, &role);
    np_choice(node, "wait", node->peer->waits, waits, &wait);
    node->link = np_choice(node, "link", node->peer->links, NULL, NULL);
    if (np_value(line, "format")) np_choice(node, "format", "raw", NULL, NULL);
    node->role = (enum noctule_role)role;
    node->wait = (enum noctule_wait)wait;
    node->session = np_value(line, "session");
    node->publish = role == NOCTULE_SINK ? NULL : np_value(line, "publish");
    node->subscribe = role == NOCTULE_SOURCE ? NULL : np_value(line, "subscribe");
    node->bind_address = np_value(line, "bind_address");
    if (!node->bind_address) node->bind_address = "127.0.0.1";
    node->node = (uint64_t)np_number(node, line, "node", 0, 0, 1e6);
    node->nodes = (uint64_t)np_number(node, line, "nodes", 1, 1, 1e6);
    node->window = (uint64_t)np_number(node, line, "window", 1, 1, 1e6);
    node->readers = node->publish ? (uint64_t)np_number(node, line, "readers", 1, 1, 1e6) : 0;
    double largest = (double)node->peer->max_payload_bytes;
    node->payload_bytes = (uint64_t)np_number(node, line, "payload_bytes", 0, 16, largest);
    if (!node->session || !node->payload_bytes) noctule_fail(node, "open needs session= and payload_bytes=");
    if (!node->publish && role != NOCTULE_SINK) noctule_fail(node, "role=%s needs publish=", roles[role]);
    if (!node->subscribe && role != NOCTULE_SOURCE) noctule_fail(node, "role=%s needs subscribe=", roles[role]);
}

static void np_open(struct noctule_node *node, const struct np_line *line) {
    char reply[1200] = "opened", *escaped = reply + strlen("opened address=");
    if (node->opened) noctule_fail(node, "this peer is open already: close it first");
    else {
        node->open_line = *line;
        np_parse_open(node, &node->open_line);
        if (!node->error[0]) np_place(node, &node->open_line);
        if (!node->error[0]) {
            node->message = (unsigned char *)malloc((size_t)node->payload_bytes);
            node->opened = true; /* even if the peer fails, so that it is closed */
            if (!node->message) noctule_fail(node, "there is no memory for a message");
            else memset(node->message, 0xA5, (size_t)node->payload_bytes), node->peer->open(node); /* no zero page */
        }
        if (node->address[0]) {
            memcpy(reply, "opened address=", strlen("opened address="));
            np_escape(escaped, sizeof reply - 20, node->address);
        }
    }
    np_reply(node, reply);
}

static void np_connect(struct noctule_node *node, const struct np_line *line) {
    char reply[NP_SETTINGS_BYTES + 8];
    node->reader_addresses = np_value(line, "readers") ? np_value(line, "readers") : "";
    if (!node->opened || node->connected) noctule_fail(node, "connect comes once, after open");
    else node->connected = node->peer->connect(node) == 0;
    snprintf(reply, sizeof reply, "ready%s", node->settings);
    np_reply(node, reply);
}

/* ---- run: the five roles ------------------------------------------------------------------------ */

/* Hot: waits in the node's way until something was delivered (> 0) or nothing came for NP_IDLE_NS (0).
 * The clock is looked at every 256th empty poll only (16th while a hybrid spins). */
static int np_receive(struct noctule_node *node) {
    if (node->wait != NOCTULE_BLOCK) {
        int64_t limit = node->wait == NOCTULE_SPIN ? NP_IDLE_NS : NP_HYBRID_SPIN_NS, start = 0;
        uint32_t mask = node->wait == NOCTULE_SPIN ? 255 : 15;
        for (uint32_t polls = 1;; polls++) {
            int got = node->peer->try_receive(node);
            if (got != 0) return node->error[0] ? -1 : got;
            if (polls & mask) continue;
            int64_t now = noctule_now_ns();
            if (start == 0) start = now;
            if (now - start >= limit) break;
        }
        if (node->wait == NOCTULE_SPIN) return 0;
    }
    int got = node->peer->receive_blocking(node, NP_IDLE_NS);
    return node->error[0] ? -1 : got;
}

/* Looks at standard input during a run. -1: the peer is to close. */
static int np_look_at_input(struct noctule_node *node) {
    static struct np_line line;
    int got;
    while ((got = np_read_line(&line, false)) != 0) {
        const char *verb = got == -1 ? "close" : got == 1 ? line.text + line.word[0].key : "";
        node->ended = strcmp(verb, "close") == 0;
        if (node->ended) return -1;
        if (strcmp(verb, "stop") == 0) {
            node->run.stop_messages = (uint64_t)np_number(node, &line, "messages", 0, 0, (double)NP_MAX_MESSAGES);
            node->run.stop_ns = noctule_now_ns();
            node->run.stopping = true;
        } else {
            noctule_fail(node, "until done only stop and close are understood");
            np_reply(node, "");
        }
    }
    return 0;
}

static int np_closed_loop(struct noctule_node *node, uint64_t mark, uint64_t messages, int64_t limit_ns) {
    struct np_run *run = &node->run;
    int64_t sent_ns = noctule_now_ns(), end_ns = sent_ns + limit_ns;
    for (uint64_t i = 0; i < messages && sent_ns <= end_ns; i++) {
        run->awaited = i | mark;
        run->answered_ns = 0;
        if (!mark) run->index_limit = i + 1;
        if (np_send(node, i | mark, sent_ns, sent_ns) != 0) return -1;
        for (;;) {
            int got = np_receive(node);
            if (got < 0) return -1;
            if (run->answered_ns || noctule_now_ns() - sent_ns >= run->reply_timeout_ns) break;
            if (got == 0 && np_look_at_input(node) != 0) return -1;
        }
        sent_ns = run->answered_ns ? run->answered_ns : noctule_now_ns();
    }
    return 0;
}

/* Waits until the scheduled time; an initiator receives meanwhile. Gives the last clock reading, -1 on failure. */
static int64_t np_wait_until(struct noctule_node *node, int64_t scheduled_ns, int64_t lead_ns) {
    int64_t now = noctule_now_ns(), start = now, wake = scheduled_ns - lead_ns;
    if (!node->subscribe) {
        struct timespec until = { (time_t)(wake / 1000000000), (long)(wake % 1000000000) };
        while (wake > now && clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR) {}
        do now = noctule_now_ns(); while (now < scheduled_ns);
        return now;
    }
    do {
        bool spin = node->wait == NOCTULE_SPIN || (node->wait == NOCTULE_HYBRID && now - start < NP_HYBRID_SPIN_NS);
        if (spin || wake <= now) node->peer->try_receive(node);
        else node->peer->receive_blocking(node, wake - now);
        if (node->error[0]) return -1;
        now = noctule_now_ns();
    } while (now < scheduled_ns);
    return now;
}

/* Open loop at a rate, or back to back without one. */
static int np_open_loop(struct noctule_node *node, uint64_t mark, uint64_t messages, int64_t limit_ns) {
    double period = node->run.period_ns;
    int64_t lead = period / 4 < (double)NP_LEAD_NS ? (int64_t)(period / 4) : NP_LEAD_NS;
    int64_t first = noctule_now_ns() + lead;
    for (uint64_t i = 0; i < messages; i++) {
        int64_t due = first + (int64_t)((double)i * period);
        if (due - first > limit_ns) break;
        int64_t now = period > 0 ? np_wait_until(node, due, lead) : noctule_now_ns();
        if (now < 0) return -1;
        if (now - first > limit_ns) break;
        if (!mark && node->role == NOCTULE_INITIATOR) node->run.index_limit = i + 1;
        if (np_send(node, i | mark, period > 0 ? due : now, now) != 0) return -1;
    }
    return 0;
}

static int np_run_sender(struct noctule_node *node) {
    struct np_run *run = &node->run;
    int (*loop)(struct noctule_node *, uint64_t, uint64_t, int64_t) =
        node->role == NOCTULE_INITIATOR && run->period_ns <= 0 ? np_closed_loop : np_open_loop;
    if (loop(node, NP_MARK_WARMUP, run->warmup_messages, run->warmup_ns) != 0) return -1;
    run->cpu_start_ns = np_cpu_ns();
    if (loop(node, 0, run->messages, run->limit_ns) != 0) return -1;
    run->cpu_end_ns = np_cpu_ns();
    if (node->role != NOCTULE_INITIATOR || loop == np_closed_loop) return 0;
    int64_t end_ns = noctule_now_ns() + run->reply_timeout_ns; /* open loop: the last replies */
    while (run->received < run->sent && noctule_now_ns() < end_ns) {
        int got = np_receive(node);
        if (got < 0 || (got == 0 && np_look_at_input(node) != 0)) return -1;
    }
    return 0;
}

static int np_run_receiver(struct noctule_node *node) {
    struct np_run *run = &node->run;
    uint64_t seen = UINT64_MAX;
    for (;;) {
        int got = np_receive(node);
        if (got < 0) return -1;
        if (got == 0) {
            if (seen != run->received) run->cpu_end_ns = np_cpu_ns(); /* first silence after the last message */
            seen = run->received;
            if (np_look_at_input(node) != 0) return -1;
        }
        if (!run->stopping) continue;
        int64_t since = run->last_ns > run->stop_ns ? run->last_ns : run->stop_ns;
        if (run->received >= run->stop_messages || noctule_now_ns() - since >= run->quiet_ns) return 0;
    }
}

/* The cheapest of 64 batches: what one stamp costs when nothing disturbs. */
static int64_t np_calibrate(void) {
    static struct np_slot scratch[1024];
    volatile int64_t *stamp;
    int64_t best = INT64_MAX;
    for (int batch = 0; batch < 64; batch++) {
        int64_t start = noctule_now_ns();
        for (int i = 0; i < 1024; i++) stamp = &scratch[i].received_ns, *stamp = noctule_now_ns();
        if (noctule_now_ns() - start < best) best = noctule_now_ns() - start;
    }
    return (best + 512) / 1024;
}

static int np_write_record(struct noctule_node *node, const char *path) {
    struct np_run *run = &node->run;
    FILE *file = fopen(path, "wb");
    char header[32] = "NOCTREC1";
    memcpy(header + 8, &run->slots, 8);
    bool good = file && fwrite(header, sizeof header, 1, file) == 1;
    good = good && fwrite(run->table, sizeof *run->table, (size_t)run->slots, file) == run->slots;
    int reason = errno;
    if (file && fclose(file) != 0) good = false, reason = errno;
    return good ? 0 : noctule_fail(node, "the record %.200s could not be written: %s", path, strerror(reason));
}

static void np_parse_run(struct noctule_node *node, const struct np_line *line) {
    struct np_run *run = &node->run;
    const char *touch = np_value(line, "touch");
    double rate_hz = np_number(node, line, "rate_hz", 0, 1e-6, 1e9);
    run->slots = run->messages = (uint64_t)np_number(node, line, "messages", 0, 1, (double)NP_MAX_MESSAGES);
    run->limit_ns = (int64_t)(np_number(node, line, "seconds", 1e6, 0, 1e6) * 1e9);
    run->warmup_ns = (int64_t)(np_number(node, line, "warmup_ms", 1e9, 0, 1e9) * 1e6);
    double warmup_otherwise = np_value(line, "warmup_ms") ? 1e15 : 0;
    run->warmup_messages = (uint64_t)np_number(node, line, "warmup_messages", warmup_otherwise, 0, 1e15);
    run->reply_timeout_ns = (int64_t)(np_number(node, line, "reply_timeout_ms", 1000, 0, 1e9) * 1e6);
    run->quiet_ns = (int64_t)(np_number(node, line, "quiet_ms", NP_QUIET_NS / 1e6, 1, 1e6) * 1e6);
    run->period_ns = rate_hz > 0 ? 1e9 / rate_hz : 0;
    run->touch_full = touch && strcmp(touch, "full") == 0;
    if (touch && !np_listed("header,full", touch)) noctule_fail(node, "touch=%.40s is neither header nor full", touch);
    if (!run->messages || !np_value(line, "record")) noctule_fail(node, "run needs messages= and record=");
    if (!node->connected) noctule_fail(node, "run comes after connect");
}

static int np_run_once(struct noctule_node *node, const struct np_line *line) {
    struct np_run *run = &node->run;
    memset(run, 0, sizeof *run);
    np_parse_run(node, line);
    if (node->error[0]) return -1;
    bool sender = node->role == NOCTULE_INITIATOR || node->role == NOCTULE_SOURCE;
    for (int i = 0; node->subscribe && i < 1000000; i++) /* leftovers of an earlier run; there is no table yet */
        if (node->peer->try_receive(node) <= 0) break;
    /* Populated: a page that is there only at its first use would fault in the middle of the measurement. */
    size_t bytes = (size_t)run->slots * sizeof *run->table;
    void *table = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (table == MAP_FAILED) return noctule_fail(node, "there is no memory for the record: ask for fewer messages");
    run->recorder_ns = np_calibrate();
    run->awaited = UINT64_MAX;
    run->index_limit = node->role == NOCTULE_INITIATOR ? 0 : UINT64_MAX;
    run->table = (struct np_slot *)table;
    run->cpu_start_ns = run->cpu_end_ns = np_cpu_ns();
    np_reply(node, "running");
    int result = sender ? np_run_sender(node) : np_run_receiver(node);
    if (run->cpu_end_ns < run->cpu_start_ns) run->cpu_end_ns = run->cpu_start_ns; /* only warm-up arrived */
    if (result == 0) result = np_write_record(node, np_value(line, "record"));
    run->table = NULL;
    munmap(table, bytes);
    return result;
}

static void np_run(struct noctule_node *node, const struct np_line *line) {
    const struct np_run *run = &node->run;
    char reply[320 + NP_FACTS_BYTES];
    if (np_run_once(node, line) != 0) noctule_fail(node, "the middleware failed without saying why");
    if (node->ended) return;
    node->facts[0] = 0;
    if (node->peer->facts && !node->error[0]) node->peer->facts(node);
    snprintf(reply, sizeof reply,
             "done sent=%llu received=%llu duplicated=%llu unexpected=%llu overrun=%llu cpu_ns=%lld recorder_ns=%lld%s",
             (unsigned long long)run->sent, (unsigned long long)run->received, (unsigned long long)run->duplicated,
             (unsigned long long)run->unexpected, (unsigned long long)run->overrun,
             (long long)(run->cpu_end_ns - run->cpu_start_ns), (long long)run->recorder_ns, node->facts);
    np_reply(node, reply);
}

/* ---- The program -------------------------------------------------------------------------------- */

static void np_hello(struct noctule_node *node, const struct np_line *line) {
    const struct noctule_peer *peer = node->peer;
    const char *protocol = np_value(line, "protocol"), *options = peer->options ? peer->options : "";
    char reply[1024], version[256];
    if (!protocol || strcmp(protocol, "1") != 0)
        noctule_fail(node, "this peer speaks protocol 1, not %.40s", protocol ? protocol : "an unnamed one");
    np_escape(version, sizeof version, peer->version());
    snprintf(reply, sizeof reply, "hello name=%s version=%s links=%s waits=%s modes=%s formats=raw max_payload_bytes=%llu%s%s",
             peer->name, version, peer->links, peer->waits, peer->modes, (unsigned long long)peer->max_payload_bytes, *options ? " " : "", options);
    np_reply(node, reply);
}

static void np_command(struct noctule_node *node, const struct np_line *line) {
    const char *verb = line->words ? line->text + line->word[0].key : "";
    if (strcmp(verb, "hello") == 0) np_hello(node, line);
    else if (strcmp(verb, "open") == 0) np_open(node, line);
    else if (strcmp(verb, "connect") == 0) np_connect(node, line);
    else if (strcmp(verb, "run") == 0) np_run(node, line);
    else if (strcmp(verb, "close") == 0) node->ended = true;
    else if (strcmp(verb, "stop") != 0) { /* a stop that crossed `done` is not answered */
        noctule_fail(node, "%.60s is unknown: hello, open, connect, run, stop and close are understood", verb);
        np_reply(node, "");
    }
}

/* Speaks the protocol on standard input and output until close; gives the exit status. */
static int noctule_peer_main(int argc, char **argv, const struct noctule_peer *peer) {
    static struct noctule_node node;
    static struct np_line line;
    int got;
    if (argc > 1) return fprintf(stderr, "%s takes no arguments: it reads the peer protocol\n", argv[0]), 2;
    np_output = fdopen(dup(1), "w");
    if (!np_output || dup2(2, 1) < 0) return 1;
    prctl(PR_SET_TIMERSLACK, 1UL); /* or sleeps before a schedule end up to 50 us late */
    signal(SIGPIPE, SIG_IGN); /* a lab that went away is seen as end of file, and endpoints are closed */
    node.peer = peer;
    while (!node.ended && (got = np_read_line(&line, true)) != -1) {
        if (got == -2) noctule_fail(&node, "a line is longer than %d bytes", NP_LINE_BYTES), np_reply(&node, "");
        else np_command(&node, &line);
    }
    if (node.opened) peer->close(&node);
    free(node.message);
    return 0;
}

#endif
