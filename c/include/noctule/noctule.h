/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Messaging for robots, in which every sample has its age.
 *
 * A node joins a swarm; a publisher writes samples of a topic, a subscriber reads them, each with its age in the
 * reader's own clock and a bound for it. Samples are plain bytes. A wait set waits for many subscribers at once; a dispatcher
 * calls back. C99; C++17 programs use noctule.hpp.
 *
 * Results. Functions that return int give NOCTULE_OK, NOCTULE_NOTHING or a count, and a negative number of
 * noctule_status_t if they failed; noctule_last_error() then gives the reason. On failure what a result pointer points to is NULL
 * (handles) or unchanged (info). NULL where something must be is an error and changes nothing.
 *
 * Text is UTF-8 and ends with a zero byte. Text, options and bytes are copied: they may go when the call returns.
 *
 * Threads. A node may be used by all threads at once. A publisher or subscriber may move between threads, but only one may
 * use it at a time: a second call with the same publisher is NOCTULE_ERROR_BUSY; with a subscriber it is undefined. A sample may be read by several threads and is released by one. A handle is not used after it was
 * closed. Handles may be closed in any order: publishers and subscribers keep their node alive, samples their memory.
 * A process that forks opens its nodes afterwards. noctule_wake and noctule_stop may be called by any thread at any time, also
 * by signal handlers.
 *
 * Times are nanoseconds on the node's clock (CLOCK_MONOTONIC_RAW, since the machine started).
 */
#ifndef NOCTULE_H
#define NOCTULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct noctule_node noctule_node_t;
typedef struct noctule_publisher noctule_publisher_t;
typedef struct noctule_subscriber noctule_subscriber_t;
typedef struct noctule_sample noctule_sample_t;
typedef struct noctule_wait_set noctule_wait_set_t;
typedef struct noctule_dispatcher noctule_dispatcher_t;
typedef struct noctule_client noctule_client_t;
typedef struct noctule_server noctule_server_t;
typedef struct noctule_parameters noctule_parameters_t;
typedef struct noctule_parameter_client noctule_parameter_client_t;
typedef struct noctule_parameter noctule_parameter_t;
typedef struct noctule_request noctule_request_t;
typedef struct noctule_reply noctule_reply_t;

/* Result of a call. */
typedef enum {
    NOCTULE_OK = 0,
    NOCTULE_NOTHING = 1,         /* There is no sample (in time). No error. */
    NOCTULE_WOKEN = 2,           /* noctule_wake or noctule_stop was called. No error. */
    NOCTULE_ERROR_ARGUMENT = -1, /* NULL, not UTF-8, or a value that is not possible. */
    NOCTULE_ERROR_SYSTEM = -2,   /* No sockets, memory or threads to be had, or no room for another topic. */
    NOCTULE_ERROR_TOO_LONG = -3, /* The sample is longer than payload_bytes_max or than the network carries; it was not published. */
    NOCTULE_ERROR_BORROWED = -4, /* All samples that may be borrowed at once are; release one. The next one stays. */
    NOCTULE_ERROR_BUFFER = -5,   /* The buffer is too short. The sample stays. */
    NOCTULE_ERROR_BROKEN = -6,   /* A publisher wrote what cannot be; its sample is passed over. */
    NOCTULE_ERROR_BUG = -7,      /* A bug in the library; close the handle. */
    NOCTULE_ERROR_WOULD_BLOCK = -8, /* keep_all, and a reader is behind; the sample was not published. */
    NOCTULE_ERROR_BUSY = -9,     /* Another thread is in a call with this publisher; nothing was published. */
    NOCTULE_ERROR_NO_REPLY = -10 /* A call has no response, or a reply came too late; the sentence says why. */
} noctule_status_t;

/* One sentence about the last failure on the calling thread; "" if there was none. Never NULL. It stays until the next
 * failure on this thread. */
const char *noctule_last_error(void);

/* ---- Node ---- */

/* A node's number, drawn at random at every start. */
typedef struct {
    uint8_t bytes[16];
} noctule_node_id_t;

/* Called with one notice: a word for its kind ("mismatch", "gone", "by_udp" ...) and a sentence. Both go when it returns. On the node's
 * thread: it must not wait and closes nothing. */
typedef void (*noctule_notice_callback_t)(void *context, const char *kind, const char *sentence);

/* Zero (or NULL) in a field means its default. So does NULL instead of the options. */
typedef struct {
    uint32_t domain;                 /* Nodes of different domains do not see each other. 0 to 5000. */
    const char *const *static_peers; /* Nodes to announce to by unicast where multicast does not reach: "192.168.1.7" (all */
    size_t static_peers_count;       /* nodes there) or "192.168.1.7:40123" (one). Default: none. */
    const char *swarm_key;           /* File with the swarm's key. Default: what the environment names, or no key. */
    const char *interface_address;   /* Only the interface with this IPv4 address. Default: all that are up. */
    bool shares_with_group;          /* Members of a group may read samples through shared memory, too ... */
    uint32_t group;                  /* ... this one, by number. Default: only processes of the same user. */
    bool without_shared_memory;      /* Samples go by UDP even to nodes of this host. */
    size_t unacknowledged_bytes_max; /* Kept in all for readers of other hosts that have not acknowledged. Default 256 MiB. */
    noctule_notice_callback_t on_notice; /* Gets what would go to standard error: a log hook. */
    void *on_notice_context;         /* Passed on. */
    void (*on_notice_done)(void *context); /* Called once the node has ended and nothing will be passed on any more. Default: nothing. */
} noctule_node_options_t;

/* Starts a node with one thread of its own. The name is for people; it need not be unique.
 * Errors: ARGUMENT, SYSTEM. */
int noctule_node_open(const char *name, const noctule_node_options_t *options, noctule_node_t **node);

/* Describes a type to nodes that request it, so that their tools show samples as fields; generated code does it.
 * The text: docs/spec/type-description.md. Errors: ARGUMENT (it is none), SYSTEM (no room for more types). */
int noctule_node_describe(const noctule_node_t *node, const char *description);

/* Errors: ARGUMENT. */
int noctule_node_id(const noctule_node_t *node, noctule_node_id_t *id);

/* Another node. Texts go when the callback returns. */
typedef struct {
    noctule_node_id_t id;
    const char *name;    /* For people. */
    const char *address; /* Where its socket is: "192.168.1.7:40123". */
    bool same_host;      /* It shares memory with this one. */
} noctule_known_node_t;

typedef void (*noctule_node_callback_t)(void *context, const noctule_known_node_t *node);

/* Calls with each other node, by number, before it returns their count. Errors: ARGUMENT. */
int noctule_nodes(const noctule_node_t *node, noctule_node_callback_t call, void *context);

/* An endpoint of another node. Texts go when the callback returns. */
typedef struct {
    noctule_node_id_t node;
    const char *node_name;
    const char *topic;
    const char *type_name;
    uint64_t type_hash;
    bool same_host;
    bool is_publisher; /* Else a subscriber. */
    bool transient_local;
    int reliability; /* NOCTULE_BEST_EFFORT and so on. */
    uint32_t keep_last;
    uint32_t payload_bytes_max;
} noctule_known_endpoint_t;

typedef void (*noctule_endpoint_callback_t)(void *context, const noctule_known_endpoint_t *endpoint);

/* Calls with each endpoint of other nodes, before it returns their count. Errors: ARGUMENT. */
int noctule_endpoints(const noctule_node_t *node, noctule_endpoint_callback_t call, void *context);

/* Counts of a node's sockets and of its tables. */
typedef struct {
    uint64_t sent_datagrams;
    uint64_t send_calls;           /* System calls for them. */
    uint64_t send_would_block;     /* The socket's buffer was full; what was due waited. */
    uint64_t send_failed;          /* No route, or a network that is down. */
    uint64_t unacknowledged_bytes; /* Now kept for readers of other hosts. */
    uint64_t malformed;            /* Datagrams that break the specification. */
    uint64_t strangers;            /* From nodes that are not known. */
    uint64_t impostors;            /* Sealed by one member in the name of another. */
    uint64_t refused_full;         /* Nodes or their pages, because a table was full. */
    uint64_t refused_matches;      /* Endpoints that fit, because one has too many partners. */
} noctule_node_counters_t;

/* Errors: ARGUMENT. */
int noctule_node_counters(const noctule_node_t *node, noctule_node_counters_t *counters);

/* Counts of the traffic with a node of another host. */
typedef struct {
    uint64_t sent_datagrams, sent_bytes, lost_packets; /* Lost: retransmitted, or given up. */
    uint64_t repeated, given_up;                       /* Fragments; samples, for newer ones or because the writer stopped. */
    uint64_t received_datagrams, duplicates, delivered; /* Duplicates: fragments; delivered: samples. */
} noctule_link_counters_t;

/* NOCTULE_NOTHING if there never was any. Errors: ARGUMENT. */
int noctule_link_counters(const noctule_node_t *node, const noctule_node_id_t *other, noctule_link_counters_t *counters);

/* A request and its reply, by this node's clock (sent, received) and the other's, which on one host are the same. */
typedef struct {
    int64_t sent_ns, arrived_ns, replied_ns, received_ns;
} noctule_exchange_t;

/* Requests the time of another node and waits for the reply. Errors: ARGUMENT (no such node), NO_REPLY, SYSTEM. */
int noctule_ping(const noctule_node_t *node, const noctule_node_id_t *other, int64_t timeout_ns, noctule_exchange_t *exchange);

/* Clocks of this machine that others stamp in. */
enum {
    NOCTULE_CLOCK_MONOTONIC = 0, /* CLOCK_MONOTONIC: V4L2, most drivers. */
    NOCTULE_CLOCK_REALTIME = 1,  /* CLOCK_REALTIME: the wall clock, stamps of packets. */
    NOCTULE_CLOCK_TAI = 2        /* CLOCK_TAI: PTP; an error where the kernel has no TAI offset. */
};

/* When a sample was true, on the node's clock, and how far that is known. */
typedef struct {
    int64_t time_ns;
    int64_t bound_ns; /* Proven: the truth is within this of time_ns. -1: nothing is proven. */
    int64_t sigma_ns; /* Standard error. -1: unknown. */
} noctule_source_time_t;

/* A stamp of another clock on the node's. The bound holds unless that clock was stepped between the stamp and now. Errors: ARGUMENT. */
int noctule_source_time_of(const noctule_node_t *node, int clock, int64_t stamp_ns, noctule_source_time_t *source_time);

/* Now, in nanoseconds of the node's clock; INT64_MIN if node is NULL. */
int64_t noctule_now_ns(const noctule_node_t *node);

/* Announces that the node leaves and ends the thread, or leaves that to the last of its publishers and subscribers. NULL is allowed. */
void noctule_node_close(noctule_node_t *node);

/* ---- QoS, in the words of DDS and ROS 2 ---- */

/* How hard the transport tries. A publisher must offer what a subscriber requests, or more. */
enum {
    NOCTULE_BEST_EFFORT = 0,    /* Sent once. */
    NOCTULE_DEADLINE_BOUND = 1, /* Repaired as long as it can still arrive by its deadline. */
    NOCTULE_RELIABLE = 2        /* Repaired until it arrives. */
};

/* QoS that a publisher offers, or a subscriber requests. Zero in a field means its default. */
typedef struct {
    int reliability;      /* NOCTULE_BEST_EFFORT and so on. */
    uint32_t keep_last;   /* HISTORY: samples that a reader may lag behind, 1 to 65535. Default: 8; a subscriber's: its publisher's. */
    bool transient_local; /* DURABILITY: late joiners get the history first. */
    int64_t deadline_ns;  /* DEADLINE: a sample at least this often. Default: no promise. */
    int64_t lifespan_ns;  /* LIFESPAN: older samples are not delivered. Default: they do not expire. */
    uint32_t tolerable_loss_ppm; /* NOCTULE_DEADLINE_BOUND: samples in a million that may miss the deadline. Default 100. */
} noctule_qos_t;

/* ---- Publisher ---- */

/* Zero (or NULL) in a field means its default. So does NULL instead of the options. */
typedef struct {
    const char *type_name;      /* A reader that expects another type gets a notice. Default "bytes". */
    uint64_t type_hash;         /* Of the type's layout; used if type_name is given. */
    const char *format;         /* Format of the bytes, which typed readers decode: "cdr", "json" or another name in */
                                /* docs/spec/formats.md. Default: bytes in no format. */
    noctule_qos_t qos;          /* That is offered. */
    uint32_t payload_bytes_max; /* Longest sample. Default 65536. */
    uint32_t borrows;           /* Samples that all readers of this host together may borrow at once. Default 7. */
    bool multicast;             /* Readers of other hosts are sent each datagram once, to a group. Not with NOCTULE_RELIABLE. */
    bool keep_all;              /* HISTORY: no sample gives way to a newer one. While a reader has qos.keep_last of them still to */
                                /* read (to be sent or acknowledged, on other hosts), publishing fails with WOULD_BLOCK. Both */
                                /* must be NOCTULE_RELIABLE; a reader that has a keep_last of its own is not waited for. */
    int64_t linger_ns;          /* NOCTULE_RELIABLE: how long closing waits for acknowledgements. Default 1 s; negative: not at all. */
} noctule_publisher_options_t;

/* Opens a topic (1 to 255 bytes) for writing and announces that. Errors: ARGUMENT, SYSTEM. */
int noctule_publisher_open(const noctule_node_t *node, const char *topic, const noctule_publisher_options_t *options,
                           noctule_publisher_t **publisher);

/* Publishes a copy of length_bytes bytes that are true now. Does not wait for the network or for readers. bytes may
 * be NULL if there are none. Errors: ARGUMENT, TOO_LONG, WOULD_BLOCK. */
int noctule_publish(noctule_publisher_t *publisher, const void *bytes, size_t length_bytes);

/* As noctule_publish, of bytes that were true at source_time_ns, e.g. when the camera's shutter opened. */
int noctule_publish_at(noctule_publisher_t *publisher, const void *bytes, size_t length_bytes, int64_t source_time_ns);

/* As noctule_publish, of bytes whose time is not exactly known, such as from noctule_source_time_of. */
int noctule_publish_uncertain(noctule_publisher_t *publisher, const void *bytes, size_t length_bytes,
                              const noctule_source_time_t *source_time);

/* Lends a place of length_bytes for the next sample: in shared memory if all readers are on this host, so that nothing is copied. *place is
 * aligned to 8 bytes, to 64 if there are more than 32, holds anything, and may be written until the loan is published or dropped, something
 * else is published, or the publisher is closed. There is one loan at a time; another call replaces it. Errors: ARGUMENT, TOO_LONG. */
int noctule_loan(noctule_publisher_t *publisher, size_t length_bytes, void **place);

/* Publishes the first length_bytes of the loan, true at source_time_ns, or now if that is INT64_MIN. Errors: ARGUMENT (nothing, or less,
 * is lent), WOULD_BLOCK (it stays lent). */
int noctule_publish_loan(noctule_publisher_t *publisher, size_t length_bytes, int64_t source_time_ns);

/* Takes a loan back, unpublished. Errors: ARGUMENT. */
int noctule_drop_loan(noctule_publisher_t *publisher);

/* Counts of a publisher's samples. */
typedef struct {
    uint64_t published;
    uint64_t given_up;        /* For some reader on another host, because its path carries less, or it does not acknowledge. */
    uint64_t deadline_missed; /* Periods of the DEADLINE in which nothing was published. */
    uint64_t would_block;     /* Not published: calls that failed with NOCTULE_ERROR_WOULD_BLOCK. */
    uint64_t held_up;         /* Times that a reader that keeps all had read nothing for 5 s; a notice names it. */
} noctule_publisher_counters_t;

/* Errors: ARGUMENT. */
int noctule_publisher_counters(const noctule_publisher_t *publisher, noctule_publisher_counters_t *counters);

/* Waits up to timeout_ns, or for ever if it is negative, until a sample of length_bytes can be published with keep_all.
 * NOCTULE_NOTHING when the time is over. Errors: ARGUMENT. */
int noctule_wait_for_room(noctule_publisher_t *publisher, size_t length_bytes, int64_t timeout_ns);

/* Waits up to timeout_ns, or for ever if it is negative, until readers of other hosts have all that was published, and have
 * acknowledged it if it is reliable. NOCTULE_NOTHING when the time is over, or if something published since the last call was
 * refused or given up because a path carries less than was published. Errors: ARGUMENT. */
int noctule_wait_for_acknowledgments(const noctule_publisher_t *publisher, int64_t timeout_ns);

/* Counts the subscribers that are matched now. Errors: ARGUMENT. */
int noctule_publisher_readers(const noctule_publisher_t *publisher);

/* If it is reliable, waits up to linger_ns until readers of other hosts have acknowledged all. NULL is allowed. */
void noctule_publisher_close(noctule_publisher_t *publisher);

/* ---- Subscriber ---- */

/* How a subscriber waits. */
enum {
    NOCTULE_WAIT_BLOCK = 0, /* Sleeps in the kernel. */
    NOCTULE_WAIT_SPIN = 1,  /* Polls without pause: fastest, and burns a core. */
    NOCTULE_WAIT_HYBRID = 2 /* Polls for 50 us, then sleeps. */
};

/* Zero (or NULL) in a field means its default. So does NULL instead of the options. */
typedef struct {
    const char *type_name; /* The type that is expected. Default: any. */
    uint64_t type_hash;    /* Of the type's layout; used if type_name is given. */
    const char *format;    /* The only format that is understood. Default: any. */
    noctule_qos_t qos;     /* That is requested. */
    int wait;              /* NOCTULE_WAIT_BLOCK and so on. */
    uint32_t borrows;      /* Samples of one publisher that may be held at once, 1 to 7. Default 1. */
    bool keep_all;         /* HISTORY, NOCTULE_RELIABLE: while qos.keep_last samples of a publisher of another host wait here, that keeps */
                           /* further ones. Default: the publisher's history; if qos.keep_last is given, older ones give way. */
    bool ignore_local;     /* Samples of publishers of the same node are not received. */
} noctule_subscriber_options_t;

/* How a sample came. */
enum {
    NOCTULE_ROUTE_SHARED_MEMORY = 0,
    NOCTULE_ROUTE_UDP = 1 /* From another host, or where shared memory was refused. */
};

/* Bytes and metadata of a sample. */
typedef struct {
    const void *bytes;       /* Aligned to 8 bytes, to 64 if there are more than 32. Not NULL. */
    size_t length_bytes;
    uint64_t sequence;       /* Counts the samples of one publisher, missed ones too. */
    uint64_t missed;         /* Samples of this publisher missing before this one: lost, or overwritten unread. */
    int64_t source_time_ns;  /* When its content was true, in the reader's clock; INT64_MIN: not known yet. */
    int64_t receive_time_ns; /* When it was taken, in the reader's clock. */
    int64_t age_ns;          /* receive_time_ns - source_time_ns; INT64_MIN: not known yet. */
    int64_t bound_ns;        /* Proven: the true age is within this of age_ns; 0 on one clock. -1: nothing is proven. */
    int64_t sigma_ns;        /* Standard error of age_ns if least delays are equal both ways. -1: unknown. */
    const char *format;      /* Name of the format of the bytes; NULL if the publisher names none. Stays for ever. */
    noctule_node_id_t publisher; /* The node that published it, */
    uint32_t endpoint;       /* and the number of the publisher in it; never used again while the node lives. */
    int route;               /* NOCTULE_ROUTE_SHARED_MEMORY or NOCTULE_ROUTE_UDP. */
} noctule_sample_info_t;

/* Opens a topic for reading and announces that; publishers are found from now on. Errors: ARGUMENT, SYSTEM. */
int noctule_subscriber_open(const noctule_node_t *node, const char *topic, const noctule_subscriber_options_t *options,
                            noctule_subscriber_t **subscriber);

/* Borrows the next sample of any publisher where it lies in shared memory: info->bytes can be read until
 * noctule_sample_release. NOCTULE_NOTHING if there is none. Errors: ARGUMENT, BORROWED, BROKEN. */
int noctule_take(noctule_subscriber_t *subscriber, noctule_sample_t **sample, noctule_sample_info_t *info);

/* As noctule_take, of the newest sample of any publisher; older ones are passed over and count as missed. */
int noctule_take_latest(noctule_subscriber_t *subscriber, noctule_sample_t **sample, noctule_sample_info_t *info);

/* As noctule_take, but waits up to timeout_ns; a negative timeout waits for ever. NOCTULE_NOTHING when the time is over. */
int noctule_receive(noctule_subscriber_t *subscriber, int64_t timeout_ns, noctule_sample_t **sample,
                    noctule_sample_info_t *info);

/* Copies the next sample to the start of buffer, to which info->bytes points then; nothing is to be released.
 * NOCTULE_NOTHING if there is none. Errors: ARGUMENT, BUFFER, BROKEN. */
int noctule_take_into(noctule_subscriber_t *subscriber, void *buffer, size_t buffer_bytes, noctule_sample_info_t *info);

/* Counts the publishers that are matched now. Errors: ARGUMENT. */
int noctule_subscriber_publishers(noctule_subscriber_t *subscriber);

/* A file descriptor for poll, epoll and select that is readable while there may be a sample. When it is, take until there is NOTHING,
 * which makes it wait for the next. Do not read from it or close it; it goes with the subscriber. The first call starts a thread that
 * sleeps while nothing comes. Errors: ARGUMENT, SYSTEM. */
int noctule_subscriber_descriptor(noctule_subscriber_t *subscriber);

/* Statistics of a subscriber since it was opened. Ages are those when samples were taken; a quantile is known, within
 * 0.8 %, if ten samples lie beyond it; INT64_MIN: not known. */
typedef struct {
    uint64_t taken;
    uint64_t missed;       /* Missing before those: lost on the way, or overwritten unread; or still missing when their publisher went. */
    uint64_t expired;      /* Older than LIFESPAN, and dropped. */
    uint64_t late;         /* Taken, but older than the DEADLINE that was requested. */
    uint64_t deadline_missed; /* Periods of that DEADLINE in which nothing came. */
    uint64_t bytes;        /* Of those that were taken. */
    uint64_t aged;         /* Taken, and of known age. */
    int64_t age_p50_ns;
    int64_t age_p90_ns;
    int64_t age_p99_ns;
    int64_t age_p99_9_ns;
    int64_t age_max_ns;
    int64_t bound_ns;      /* No age is further from the truth; -1 if that is not proven of every sample. */
} noctule_statistics_t;

/* Errors: ARGUMENT. */
int noctule_subscriber_statistics(const noctule_subscriber_t *subscriber, noctule_statistics_t *statistics);

/* Gives a sample back; its bytes are not to be read any more. NULL is allowed. */
void noctule_sample_release(noctule_sample_t *sample);

/* NULL is allowed. */
void noctule_subscriber_close(noctule_subscriber_t *subscriber);

/* ---- Waiting for many subscribers at once ---- */

/* wait is NOCTULE_WAIT_BLOCK and so on; how the subscribers wait does not matter. Errors: ARGUMENT. */
int noctule_wait_set_open(int wait, noctule_wait_set_t **set);

/* Waits up to timeout_ns, or for ever if it is negative, until one of count subscribers has a sample, and sets *ready to its
 * index. They are looked at in turn, so that a busy one does not keep the others from being served. Taking may still give
 * nothing: the sample was older than its lifespan, or overwritten. The array may be another each time; nothing in it is NULL or
 * there twice. NOCTULE_NOTHING when the time is over, NOCTULE_WOKEN after noctule_wake. Errors: ARGUMENT. */
int noctule_wait(noctule_wait_set_t *set, noctule_subscriber_t *const *subscribers, size_t count, int64_t timeout_ns,
                 size_t *ready);

/* Ends the wait of another thread, or the next one. NULL is allowed. */
void noctule_wake(const noctule_wait_set_t *set);

/* Leaves the subscribers open. NULL is allowed. */
void noctule_wait_set_close(noctule_wait_set_t *set);

/* ---- Callbacks ---- */

/* Called with a sample whose bytes can be read until it returns. Closes neither the dispatcher nor its node. */
typedef void (*noctule_callback_t)(void *context, const noctule_sample_info_t *info);

/* Called with one sentence, which goes when it returns. */
typedef void (*noctule_error_callback_t)(void *context, const char *sentence);

/* As noctule_wait_set_open. A dispatcher calls on the thread that spins, one callback at a time. */
int noctule_dispatcher_open(int wait, noctule_dispatcher_t **dispatcher);

/* From now on call is called for each sample of the subscriber. If this gives NOCTULE_OK the dispatcher has taken the subscriber
 * over and closes it: do not use it any more. Errors: ARGUMENT (also while the dispatcher spins). */
int noctule_on_sample(noctule_dispatcher_t *dispatcher, noctule_subscriber_t *subscriber, noctule_callback_t call, void *context);

/* Sets the callback for a sample that was not received. Default: prints to standard error. */
int noctule_on_error(noctule_dispatcher_t *dispatcher, noctule_error_callback_t call, void *context);

/* Calls until noctule_stop. NOCTULE_OK then, and at once if nothing is registered. Errors: ARGUMENT. */
int noctule_spin(noctule_dispatcher_t *dispatcher);

/* Waits up to timeout_ns, or for ever if it is negative, and calls once. NOCTULE_NOTHING when the time is over, NOCTULE_WOKEN
 * after noctule_stop. Errors: ARGUMENT. */
int noctule_spin_once(noctule_dispatcher_t *dispatcher, int64_t timeout_ns);

/* For good: the callback that runs ends, and no other is called. NULL is allowed. */
void noctule_stop(const noctule_dispatcher_t *dispatcher);

/* Closes its subscribers, too. NULL is allowed. */
void noctule_dispatcher_close(noctule_dispatcher_t *dispatcher);

/* ---- Requests ---- */

/* Messages are bytes of CDR with their encapsulation header (noctule_cdr.h). As with subscribers, one thread at a time uses a client or a
 * server. What a call may end with: docs/guide/requests.md. */

/* Zero (or NULL) in a field means its default. So does NULL instead of the options. */
typedef struct {
    const char *request_type;   /* Both sides must name the same types. Default "bytes". */
    uint64_t request_hash;      /* Used if request_type is given. */
    const char *response_type;
    uint64_t response_hash;
    uint32_t payload_bytes_max; /* Longest request of a client, longest response of a server. Default 65536. */
    int64_t deadline_ns;        /* Of a client: how long a call waits. Default 5 s. */
    bool idempotent;            /* Of a client: another server is asked if the first one ends; it may be executed twice. */
} noctule_service_options_t;

/* Opens a client of a service (1 to 243 bytes, with or without a leading '/'). Errors: ARGUMENT, SYSTEM. */
int noctule_client_open(const noctule_node_t *node, const char *service, const noctule_service_options_t *options,
                        noctule_client_t **client);

/* Sends a request and waits for its response: info->bytes until noctule_reply_release, with its age and the server's node.
 * Errors: ARGUMENT, SYSTEM (1,024 calls are under way), TOO_LONG, NO_REPLY. */
int noctule_call(noctule_client_t *client, const void *bytes, size_t length_bytes, noctule_reply_t **reply,
                 noctule_sample_info_t *info);

/* Begins a call with a deadline of its own (0: the client's) and sets *call to its number. It goes on only in calls with this client. Errors: as noctule_call. */
int noctule_call_start(noctule_client_t *client, const void *bytes, size_t length_bytes, int64_t deadline_ns, int64_t *call);

/* Waits up to timeout_ns, or for ever if it is negative, until a call has ended, and sets *call to its number, or to 0. NOCTULE_NOTHING when the time
 * is over or no call is under way. Errors: NO_REPLY (of the call *call), ARGUMENT, BROKEN. */
int noctule_call_next(noctule_client_t *client, int64_t timeout_ns, int64_t *call, noctule_reply_t **reply,
                      noctule_sample_info_t *info);

/* Ends a call, and notifies its server. NOCTULE_NOTHING if it has ended. Errors: ARGUMENT. */
int noctule_call_cancel(noctule_client_t *client, int64_t call);

/* NULL is allowed. */
void noctule_reply_release(noctule_reply_t *reply);

/* Calls under way end without a reply. NULL is allowed. */
void noctule_client_close(noctule_client_t *client);

/* Opens a server of a service. Errors: ARGUMENT, SYSTEM. */
int noctule_server_open(const noctule_node_t *node, const char *service, const noctule_service_options_t *options,
                        noctule_server_t **server);

/* Waits up to timeout_ns, or for ever if it is negative, for a request: info->bytes until noctule_request_release, with its age and the node that
 * sent it. *deadline_ns, if not NULL: the age at which the caller waits no longer. NOCTULE_NOTHING when the time is over. Errors: ARGUMENT, BROKEN. */
int noctule_server_receive(noctule_server_t *server, int64_t timeout_ns, noctule_request_t **request,
                           noctule_sample_info_t *info, int64_t *deadline_ns);

/* Answers a request, once, in any order. Errors: ARGUMENT (answered before), TOO_LONG, NO_REPLY (too late, or cancelled). */
int noctule_server_reply(noctule_server_t *server, const noctule_request_t *request, const void *bytes, size_t length_bytes);

/* The same with the reason why there is no response. */
int noctule_server_fail(noctule_server_t *server, const noctule_request_t *request, const char *why);

/* 1 if the client does not wait for the answer any more: it was cancelled, or its deadline is over; else 0. A cancellation is seen by
 * noctule_server_receive. Errors: ARGUMENT. */
int noctule_server_is_cancelled(noctule_server_t *server, const noctule_request_t *request);

/* Does not answer it. NULL is allowed. */
void noctule_request_release(noctule_request_t *request);

/* NULL is allowed. */
void noctule_server_close(noctule_server_t *server);

/* ---- Parameters ---- */

/* Named values of a node that other programs read and set, with ROS 2's semantics: docs/guide/parameters.md. */

enum {
    NOCTULE_PARAMETER_NOT_SET = 0,
    NOCTULE_PARAMETER_BOOL = 1,
    NOCTULE_PARAMETER_INTEGER = 2,
    NOCTULE_PARAMETER_DOUBLE = 3,
    NOCTULE_PARAMETER_STRING = 4,
    NOCTULE_PARAMETER_BYTE_ARRAY = 5,
    NOCTULE_PARAMETER_BOOL_ARRAY = 6,
    NOCTULE_PARAMETER_INTEGER_ARRAY = 7,
    NOCTULE_PARAMETER_DOUBLE_ARRAY = 8,
    NOCTULE_PARAMETER_STRING_ARRAY = 9
};

/* A value; its type selects the field that holds it. */
typedef struct {
    int type;             /* NOCTULE_PARAMETER_BOOL and so on. */
    bool boolean;
    int64_t integer;
    double real;
    const char *text;     /* UTF-8. */
    const void *elements; /* Of an array: uint8_t, bool, int64_t, double or const char * each. */
    size_t count;
} noctule_parameter_value_t;

/* Zero (or NULL) in a field means none. So does NULL instead of the options. */
typedef struct {
    const char *description;
    const char *constraints; /* For people: what the callback asks for beside the range. */
    bool read_only;
    bool dynamic_typing;     /* It may be set to values of other types, and be deleted by one that is not set. */
    bool has_range;          /* Both ends belong to it; steps count from the first, 0: any. */
    int64_t integer_from, integer_to;
    uint64_t integer_step;
    double from, to, step;
} noctule_parameter_options_t;

/* Opens the parameters of a node under the name that the node has in ROS 2, such as "/arm": none at first. A thread of the library answers
 * others; any thread may use the handle. Errors: ARGUMENT, SYSTEM. */
int noctule_parameters_open(const noctule_node_t *node, const char *name, noctule_parameters_t **parameters);

/* Declares a parameter of the type of this value. Errors: ARGUMENT, with the reason. */
int noctule_parameters_declare(const noctule_parameters_t *parameters, const char *name, const noctule_parameter_value_t *value,
                               const noctule_parameter_options_t *options);

/* The value of a parameter; what it points to stays until noctule_parameter_release(*kept). NOCTULE_NOTHING if it is not declared. Errors: ARGUMENT. */
int noctule_parameters_get(const noctule_parameters_t *parameters, const char *name, noctule_parameter_t **kept,
                           noctule_parameter_value_t *value);

/* Sets a parameter as others do. Errors: ARGUMENT, with the reason why it was refused. */
int noctule_parameters_set(const noctule_parameters_t *parameters, const char *name, const noctule_parameter_value_t *value);

/* Called before a parameter is set, for each of those that are set together; not 0 refuses all of them, with the sentence that it writes into
 * why. Name and value go when it returns. It may read the parameters, but neither set nor close them. */
typedef int (*noctule_parameter_callback_t)(void *context, const char *name, const noctule_parameter_value_t *value, char *why,
                                            size_t why_bytes);

/* From now on call is called, by any thread, one at a time. Errors: ARGUMENT. */
int noctule_parameters_on_set(const noctule_parameters_t *parameters, noctule_parameter_callback_t call, void *context);

/* NULL is allowed. */
void noctule_parameters_close(noctule_parameters_t *parameters);

/* Opens a client of another node's parameters; each call waits up to deadline_ns, 0: 5 s. One thread at a time uses it. Errors: ARGUMENT, SYSTEM. */
int noctule_parameter_client_open(const noctule_node_t *node, const char *name, int64_t deadline_ns,
                                  noctule_parameter_client_t **client);

/* Calls for each name of the node's parameters, in the order of the alphabet; a name goes when the call returns. Errors: ARGUMENT, NO_REPLY. */
int noctule_parameter_client_list(noctule_parameter_client_t *client, void (*call)(void *context, const char *name), void *context);

/* As noctule_parameters_get. Errors: ARGUMENT, NO_REPLY. */
int noctule_parameter_client_get(noctule_parameter_client_t *client, const char *name, noctule_parameter_t **kept,
                                 noctule_parameter_value_t *value);

/* Sets a parameter. Errors: ARGUMENT, with the node's reason why it was refused; NO_REPLY. */
int noctule_parameter_client_set(noctule_parameter_client_t *client, const char *name, const noctule_parameter_value_t *value);

/* NULL is allowed. */
void noctule_parameter_release(noctule_parameter_t *kept);

/* NULL is allowed. */
void noctule_parameter_client_close(noctule_parameter_client_t *client);

#ifdef __cplusplus
}
#endif

#include <noctule/action.h>
#endif
