/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * An agent for tests: one client, topics joined by name, everything on one thread. It follows the protocol and trusts its
 * client; it is no model of an agent to use. Written from the bytes of the protocol, not from the client.
 */
#ifndef SCRIPTED_AGENT_H
#define SCRIPTED_AGENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    AGENT_MESSAGE_MAX = 1024,
    AGENT_WINDOW = 4,
    AGENT_PENDING = 4096,
    AGENT_OBJECTS = 64,
    AGENT_LARGE = 70000
};

typedef struct {
    uint16_t id, topic, request;
    uint8_t stream;
    bool reading;
    char name[64];
} agent_object_t;

typedef struct {
    uint16_t length;
    int64_t sent_ns;
    uint8_t bytes[AGENT_MESSAGE_MAX];
} agent_message_t;

typedef struct agent {
    bool noctule, has_client, in_present[16];
    uint16_t mtu;
    uint32_t key;
    agent_object_t objects[AGENT_OBJECTS];
    uint16_t object_count;
    uint16_t in_next, in_end, best_effort_in, best_effort_out, out_first, out_sent, out_end;
    agent_message_t in_stored[16], pending[AGENT_PENDING];
    /* A stamp belongs to the next sample of its own stream. */
    bool in_reliable;
    int64_t heartbeat_ns, clock_offset_ns, stamp_ns[2], last_stamp_ns, fourth[3];
    uint8_t large[AGENT_LARGE];
    uint32_t large_length;
    uint32_t sessions, fourths, writes, ignored, refuse_request;
    void *context;
    void (*send)(void *context, const uint8_t *message, size_t length);
    /* A sample arrived on a topic. */
    void (*on_write)(void *context, const char *topic, const uint8_t *bytes, uint32_t length);
} agent_t;

void agent_init(agent_t *self, bool noctule);
void agent_handle(agent_t *self, const uint8_t *message, size_t length, int64_t now_ns);
/* Sends a sample to every reader of the topic. False: no reader, or no room. */
bool agent_publish(agent_t *self, const char *topic, const uint8_t *bytes, uint32_t length, int64_t now_ns);
/* Heartbeats and what the window held back. */
void agent_handle_timeout(agent_t *self, int64_t now_ns);
int64_t agent_next_timeout(const agent_t *self);

/* Frames, for a serial line. */
typedef struct {
    uint8_t bytes[2 * AGENT_MESSAGE_MAX];
    size_t length;
    bool in_frame, escape;
} agent_deframer_t;

/* Wraps a message into `out` (twice as long and 13 more): its length. */
size_t agent_frame(const uint8_t *message, size_t length, uint8_t source, uint8_t destination, uint8_t *out);
/* Takes a byte; true if `bytes + 4` holds a message of `*length` bytes. */
bool agent_deframe(agent_deframer_t *self, uint8_t byte, size_t *length);

#endif
