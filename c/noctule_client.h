/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Publish and subscribe from a microcontroller: a DDS-XRCE client that never waits.
 *
 * C99, no heap, no globals, no recursion. The client opens nothing and reads no clock: bytes that arrived go in, bytes to
 * send come out, and `now_ns` is an argument. It speaks to any DDS-XRCE agent; two extensions that only Noctule's agent
 * supports (docs/spec/xrce.md) are sent to no other agent.
 *
 * Trusted: the configuration and the caller. Not trusted: every byte from the line. No number of the agent's is used as a
 * size or an index before it is compared with a limit of ours.
 *
 * The loop of a program, whenever bytes came in or noctule_client_next_timeout has passed:
 *
 *     noctule_client_handle_bytes(&client, received, received_bytes, now_ns);       // serial; or _handle_datagram
 *     ... noctule_client_publish(&client, endpoint, payload, payload_bytes, now_ns) ...
 *     while ((n = noctule_client_poll_transmit(&client, now_ns, out, sizeof out)) > 0)
 *         send(out, n);
 *     sleep until bytes come in or until noctule_client_next_timeout(&client);
 *
 * Poll when the line is idle, not ahead of it: what is polled is stamped with `now_ns`.
 */
#ifndef NOCTULE_CLIENT_H
#define NOCTULE_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "noctule_cdr.h" /* what goes into a sample */
#include "noctule_sync.h" /* noctule_exchange_t; nothing of it is linked unless the program uses it */

#ifdef __cplusplus
extern "C" {
#endif

/* ---- limits and times; define them for the compiler to change them ---- */

/* Reliable messages in flight each way. A power of two, at most 16: the width of an ACKNACK. */
#ifndef NOCTULE_CLIENT_SLOTS_MAX
#define NOCTULE_CLIENT_SLOTS_MAX 8
#endif
/* CREATE_CLIENT is repeated this often until an agent answers. */
#ifndef NOCTULE_CLIENT_CONNECT_NS
#define NOCTULE_CLIENT_CONNECT_NS INT64_C(50000000)
#endif
/* The agent is pinged after so much silence, and again after so much more. */
#ifndef NOCTULE_CLIENT_PING_NS
#define NOCTULE_CLIENT_PING_NS INT64_C(300000000)
#endif
/* Silence after which the session is taken for dead, and a new one begun. */
#ifndef NOCTULE_CLIENT_SILENCE_NS
#define NOCTULE_CLIENT_SILENCE_NS INT64_C(2400000000)
#endif
/* A missing acknowledgement is requested after twice the shortest recent round trip, then after twice as long
 * each time, but never later than this. */
#ifndef NOCTULE_CLIENT_HEARTBEAT_NS
#define NOCTULE_CLIENT_HEARTBEAT_NS INT64_C(50000000)
#endif
/* A session whose objects are not all answered for is given up after so long without an answer or acknowledgement. */
#ifndef NOCTULE_CLIENT_CREATE_NS
#define NOCTULE_CLIENT_CREATE_NS INT64_C(3000000000)
#endif
/* So is one in which nothing reliable is acknowledged for so long, though messages of the agent come. */
#ifndef NOCTULE_CLIENT_STALL_NS
#define NOCTULE_CLIENT_STALL_NS INT64_C(10000000000)
#endif

/* Topics a client may have. Object identifiers have 12 bits. */
#define NOCTULE_CLIENT_ENDPOINTS_MAX 4094
/* The shortest and longest message of XRCE that this client builds or takes, headers included. */
#define NOCTULE_CLIENT_MESSAGE_MIN 64
#define NOCTULE_CLIENT_MESSAGE_MAX 16384
/* Bytes of a message beside a sample's own: message header, submessage header, request and object. */
#define NOCTULE_CLIENT_SAMPLE_OVERHEAD 12
/* Largest sample of all, sent in fragments. */
#define NOCTULE_CLIENT_SAMPLE_MAX 65527
/* Largest large_bytes. */
#define NOCTULE_CLIENT_LARGE_MAX (UINT32_C(1) << 30)
/* Room that noctule_client_poll_transmit needs: every byte of a frame may have to be escaped. */
#define NOCTULE_CLIENT_TRANSMIT_BYTES(message_bytes) (2 * (message_bytes) + 13)
/* Memory that a client needs. `large_bytes`: see noctule_client_config_t. */
#define NOCTULE_CLIENT_MEMORY_BYTES(message_bytes, slots_out, slots_in, large_bytes) \
    ((size_t)(message_bytes) * (2u + (slots_out) + (slots_in)) + (large_bytes))

/* Bytes of a clock question and of its answer on a serial line, if none has to be escaped: what the wire takes for them
 * (bytes * 10 / baud) belongs into the estimator's wire_forward_ns and wire_back_ns. */
#define NOCTULE_CLIENT_QUESTION_BYTES 23
#define NOCTULE_CLIENT_ANSWER_BYTES 39

/* Error of a function, returned in place of its result. Zero: done. */
typedef enum {
    NOCTULE_CLIENT_OK = 0,
    NOCTULE_CLIENT_NOT_READY = -1,        /* No session, or the agent has not answered for this endpoint: try later. */
    NOCTULE_CLIENT_FULL = -2,             /* Every slot waits for the line or for an acknowledgement: poll, try later. */
    NOCTULE_CLIENT_TOO_LARGE = -3,        /* The sample fits no message (best effort) or not all slots (reliable). */
    NOCTULE_CLIENT_WRONG_ENDPOINT = -4,   /* No such endpoint, or a subscriber. */
    NOCTULE_CLIENT_NO_ROOM = -5,          /* Give at least NOCTULE_CLIENT_TRANSMIT_BYTES(message_bytes). */
    NOCTULE_CLIENT_KEY_IS_ZERO = -6,      /* Zero is no key; give every client of an agent its own. */
    NOCTULE_CLIENT_MESSAGE_BYTES = -7,    /* Not from NOCTULE_CLIENT_MESSAGE_MIN to _MAX, or not a multiple of 4. */
    NOCTULE_CLIENT_SLOTS = -8,            /* Not a power of two up to NOCTULE_CLIENT_SLOTS_MAX. */
    NOCTULE_CLIENT_MEMORY = -9,           /* Less than NOCTULE_CLIENT_MEMORY_BYTES says. */
    NOCTULE_CLIENT_ENDPOINTS = -10,       /* More than NOCTULE_CLIENT_ENDPOINTS_MAX. */
    NOCTULE_CLIENT_NAME_TOO_LONG = -11    /* The object of this name and type does not fit one message. */
} noctule_client_error_t;

/* Direction and reliability of an endpoint. Combine with |. */
enum {
    NOCTULE_PUBLISH = 0,
    NOCTULE_SUBSCRIBE = 1,
    NOCTULE_RELIABLE = 2,        /* In DDS and on the line: lost messages are retransmitted. Otherwise best effort in both. */
    NOCTULE_TRANSIENT_LOCAL = 4, /* Late subscribers get the last samples. */
    NOCTULE_STAMPED = 8          /* Publisher: the time of each sample travels with it (12 bytes), to Noctule's agent only. */
};

/* One topic, as publisher or subscriber. A table of them may lie in flash. */
typedef struct {
    const char *topic;      /* As DDS calls it; "rt/imu" is what ROS 2 shows as "/imu". */
    const char *type;       /* As DDS calls it: "sensor_msgs::msg::dds_::Imu_". */
    uint8_t flags;          /* Of the enumeration above. */
    uint16_t history_depth; /* Samples that the agent keeps. 0: its default. */
} noctule_endpoint_t;

/* A sample arrived on subscriber number `endpoint`. `bytes` hold until the function returns; publishing from it is fine,
 * every other call to this client is not. */
typedef void (*noctule_on_sample_t)(void *context, uint16_t endpoint, const uint8_t *bytes, uint32_t length,
                                    int64_t arrived_ns);
/* An exchange of stamps with the agent's clock was completed: hand it to noctule_bounded_handle_exchange. The same rule. */
typedef void (*noctule_on_exchange_t)(void *context, const noctule_exchange_t *exchange);

typedef enum { NOCTULE_SERIAL = 0, NOCTULE_DATAGRAM = 1 } noctule_line_t;

/* Configuration of a client. Everything that pointers show must live as long as the client. */
typedef struct {
    uint32_t key;             /* Names this client to the agent. Not zero; keep it over restarts. */
    noctule_line_t line;      /* NOCTULE_SERIAL: frames with a checksum; NOCTULE_DATAGRAM: UDP and the like. */
    uint8_t address;          /* NOCTULE_SERIAL: own address in frames; 1 with stock agents. 0 means 1. */
    uint16_t domain;          /* DDS domain. */
    const char *participant;  /* Name of the participant, or NULL. */
    const noctule_endpoint_t *endpoints;
    uint16_t endpoint_count;
    uint16_t message_bytes;   /* Longest message, both ways; a multiple of 4. 512 is common; a line with noise wants less. */
    uint8_t slots_out;        /* Reliable messages that may wait for acknowledgement: 1, 2, 4, 8 or 16. */
    uint8_t slots_in;         /* Reliable messages that may wait for one lost before them: 0, 2, 4, 8 or 16. */
    uint32_t large_bytes;     /* Largest sample that may arrive in fragments, plus 8. 0: none may. */
    uint8_t *memory;          /* NOCTULE_CLIENT_MEMORY_BYTES of it, any alignment. */
    size_t memory_bytes;
    int64_t sync_interval_ns; /* An exchange of stamps this often; eight quick ones at first. 0: never. */
    void *context;            /* Handed to both functions. */
    noctule_on_sample_t on_sample;     /* NULL: samples are only counted. */
    noctule_on_exchange_t on_exchange; /* NULL: exchanges are only counted. */
} noctule_client_config_t;

typedef enum {
    NOCTULE_CONNECTING = 0, /* No agent has answered yet, or none does any more. */
    NOCTULE_CREATING = 1,   /* The agent is making the endpoints; those it has answered for can be used. */
    NOCTULE_READY = 2,      /* All endpoints are answered for. */
    NOCTULE_CLOSING = 3,    /* Waiting for the agent to take leave. */
    NOCTULE_CLOSED = 4
} noctule_client_state_t;

/* Counts since init. Every sample is in one of them: published = acknowledged + abandoned + still waiting (reliable). */
typedef struct {
    uint32_t sessions;             /* Sessions begun; 1 after the first connection. */
    uint32_t published;            /* Samples taken in by noctule_client_publish. */
    uint32_t acknowledged;         /* Reliable samples the agent has. */
    uint32_t abandoned;            /* Samples of which it is not known whether the agent got them: their session ended. */
    uint32_t refused_samples;      /* Not taken in: not ready, full, too large. */
    uint32_t received;             /* Samples handed over. */
    uint32_t lost_messages;        /* Best effort: gaps in the agent's numbers. Reliable: given up by the agent. */
    uint32_t repeated_messages;    /* Arrived twice; the second was dropped. */
    uint32_t resent_messages;      /* Retransmitted because the agent missed them. */
    uint32_t unstorable_messages;  /* Reliable, too far ahead of a lost one; the agent sends them again. */
    uint32_t too_large_samples;    /* Arrived in fragments and larger than large_bytes. */
    uint32_t malformed;            /* Messages that break the protocol, or are not for this session. */
    uint32_t frame_errors;         /* NOCTULE_SERIAL: frames with a wrong checksum, length or escape. */
    uint32_t exchanges;            /* Clock exchanges completed. */
    uint32_t stale_answers;        /* Answers to a clock question that was not the last one. */
    uint32_t refused_objects;      /* Objects the agent would not make; see refusal. */
    uint32_t bytes_in, bytes_out;  /* On the line, frames included; wrap around. */
} noctule_client_counts_t;

/* The last object that the agent refused. */
typedef struct {
    uint16_t object; /* 12 bits of number (endpoint + 1), 4 bits of kind: 1 participant, 2 topic, 5 writer, 6 reader. */
    uint8_t status;  /* STATUS of DDS-XRCE: 0x80 DDS error, 0x81 mismatch, 0x83 denied, 0x84 unknown reference, ... */
} noctule_refusal_t;

/* Private from here to noctule_client_t. */
typedef struct { int64_t sent_ns; uint16_t length; uint8_t samples, flags; } noctule_slot_t;
typedef struct { uint16_t expected, got, crc; uint8_t state; bool escape; } noctule_deframer_t;

/* The client. Make it with noctule_client_init; do not look inside. */
typedef struct {
    noctule_client_config_t config;
    noctule_client_counts_t counts;
    noctule_refusal_t refusal;
    noctule_client_state_t state;
    uint8_t *best_effort, *incoming, *slots_out, *slots_in, *large;
    bool agent_is_noctule, ack_due, ack_overtaken, restart, large_dropped, question_open, fourth_due;
    uint8_t close_tries, questions, heartbeats;
    uint16_t steps_sent, steps_answered;
    uint16_t best_effort_out, best_effort_in;
    uint16_t out_first, out_next, in_next, in_end;
    uint16_t best_effort_length, in_length[NOCTULE_CLIENT_SLOTS_MAX];
    uint8_t best_effort_samples;
    uint32_t large_length;
    noctule_slot_t out[NOCTULE_CLIENT_SLOTS_MAX];
    noctule_deframer_t deframer;
    int64_t connect_ns, heard_ns, ping_ns, heartbeat_ns, progress_ns, nudge_ns, round_trip_ns;
    int64_t question_ns, t1_ns, t4_ns;
    uint8_t t3[8];
} noctule_client_t;

/* Makes a client that is about to connect. The configuration is copied; what it points to is not. */
noctule_client_error_t noctule_client_init(noctule_client_t *self, const noctule_client_config_t *config);

/* NOCTULE_SERIAL: bytes came off the line, in any pieces. `now_ns`: when the last of them was there, on the local clock,
 * which must not go back nor be negative. Calls on_sample and on_exchange. False: they completed no message, and there is
 * nothing new to poll for. */
bool noctule_client_handle_bytes(noctule_client_t *self, const uint8_t *bytes, size_t length, int64_t now_ns);

/* NOCTULE_DATAGRAM: a datagram came from the agent. */
void noctule_client_handle_datagram(noctule_client_t *self, const uint8_t *bytes, size_t length, int64_t now_ns);

/* The next frame or datagram to send: its length, 0 if there is none now, NOCTULE_CLIENT_NO_ROOM if `capacity` is too
 * small. Order: connection, acknowledgements, clock, repeats, samples. Poll until 0. */
int32_t noctule_client_poll_transmit(noctule_client_t *self, int64_t now_ns, uint8_t *out, size_t capacity);

/* When to poll next if nothing arrives before. INT64_MAX: never; at most `now_ns`: at once. */
int64_t noctule_client_next_timeout(const noctule_client_t *self, int64_t now_ns);

/* Publishes one sample of CDR bytes (little-endian, no encapsulation header) on endpoint number `endpoint` of the
 * configuration. The bytes are copied. `source_ns`: when it was measured; travels if the endpoint is NOCTULE_STAMPED. */
noctule_client_error_t noctule_client_publish(noctule_client_t *self, uint16_t endpoint, const uint8_t *bytes,
                                              uint32_t length, int64_t source_ns);

/* True if noctule_client_publish can succeed on this endpoint, room aside. */
bool noctule_client_is_ready(const noctule_client_t *self, uint16_t endpoint);

/* Reliable samples and messages not yet acknowledged, in messages. 0: the agent has everything. */
uint16_t noctule_client_unacknowledged(const noctule_client_t *self);

/* Takes leave of the agent, which deletes the objects. Go on polling until NOCTULE_CLOSED; it comes also if the agent does not answer. */
void noctule_client_close(noctule_client_t *self, int64_t now_ns);

noctule_client_state_t noctule_client_state(const noctule_client_t *self);
const noctule_client_counts_t *noctule_client_counts(const noctule_client_t *self);
noctule_refusal_t noctule_client_refusal(const noctule_client_t *self);

/* True if the agent of this session is Noctule's. */
bool noctule_client_agent_is_noctule(const noctule_client_t *self);

/* The error in one sentence. */
const char *noctule_client_error_text(noctule_client_error_t error);

#ifdef __cplusplus
}
#endif
#endif
