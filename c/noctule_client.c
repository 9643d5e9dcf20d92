/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The client of noctule_client.h: frames, session, outgoing samples, incoming messages, from the bottom up.
 * Section numbers are those of OMG DDS-XRCE 1.0 (formal/20-02-01).
 *
 * Invariants:
 * 1. out_first .. out_next are the reliable messages in flight, never more than slots_out; numbers are 16 bits wide and
 *    compared by the sign of their difference, and slots are powers of two, so that a number's slot survives the wrap.
 * 2. Only the last reliable message may grow, and only before it is sent for the first time.
 * 3. in_next is the next reliable message to hand over; stored ones lie less than slots_in ahead of it.
 * 4. Objects are created in one order and answered in the same order: two numbers say how far it is.
 */
#include "noctule_client.h"

#include <string.h>

enum {
    HEADER = 4, /* of a message with a session that has no key in it, 8.3.2 */
    SUBMESSAGE = 4,
    SESSION = 0x81,
    NO_SESSION = 0x80,
    BEST_EFFORT = 0x01,
    RELIABLE = 0x80
};

enum { /* Submessages, 8.3.5; STAMP is Noctule's own. */
    CREATE_CLIENT = 0,
    CREATE = 1,
    GET_INFO = 2,
    DELETE = 3,
    STATUS_AGENT = 4,
    STATUS = 5,
    INFO = 6,
    WRITE_DATA = 7,
    READ_DATA = 8,
    DATA = 9,
    ACKNACK = 10,
    HEARTBEAT = 11,
    FRAGMENT = 13,
    TIMESTAMP = 14,
    TIMESTAMP_REPLY = 15,
    STAMP = 0xC0
};

enum { LITTLE = 1, LAST_FRAGMENT = 2, REUSE_OR_REPLACE = 6 };
enum { PARTICIPANT = 1, TOPIC = 2, PUBLISHER = 3, SUBSCRIBER = 4, WRITER = 5, READER = 6 };
enum { PARTICIPANT_ID = 0x0011, PUBLISHER_ID = 0x0013, SUBSCRIBER_ID = 0x0014 };
enum { REQUEST_DELETE_CLIENT = 2, REQUEST_CREATE = 10, REQUEST_WRITE = 0x4000, REQUEST_READ = 0x8000 };
enum { STEPS_BEFORE_ENDPOINTS = 3, ANSWER_TO_CLOSE_TRIES = 5, QUICK_QUESTIONS = 8, STAMP_BYTES = 12 };
enum { SENT = 1, MISSED = 2, WHOLE = 4, RESENT = 8 };
enum { STATUS_ERROR = 0x80 };
enum { AHEAD_BYTES_MAX = 128 }; /* Longest message that goes ahead of an acknowledgement on a serial line. */

#define QUICK_QUESTION_NS INT64_C(20000000)
#define ANSWER_NS INT64_C(500000000)
#define SECOND_NS INT64_C(1000000000)
#define SHORTEST_ROUND_TRIP_NS INT64_C(2000000)

static const uint8_t cookie[4] = {'X', 'R', 'C', 'E'};
static const uint8_t vendor[2] = {'N', 'C'};

/* ---- numbers on the wire ---- */

static uint8_t *put16(uint8_t *at, uint16_t value) {
    at[0] = (uint8_t)value;
    at[1] = (uint8_t)(value >> 8);
    return at + 2;
}

static uint16_t take16(const uint8_t *at) { return (uint16_t)(at[0] | at[1] << 8); }

static uint8_t *put32(uint8_t *at, uint32_t value) { return put16(put16(at, (uint16_t)value), (uint16_t)(value >> 16)); }
static uint32_t take32(const uint8_t *at) { return take16(at) | (uint32_t)take16(at + 2) << 16; }

/* Identifiers travel with the high octet first, whatever the flags say. */
static uint8_t *put_id(uint8_t *at, uint16_t value) {
    at[0] = (uint8_t)(value >> 8);
    at[1] = (uint8_t)value;
    return at + 2;
}

/* memcmp brings 94 bytes for what is at most four. */
static bool is_same(const uint8_t *a, const uint8_t *b, unsigned length) {
    while (length > 0 && a[length - 1] == b[length - 1]) length--;
    return length == 0;
}

static uint16_t take_id(const uint8_t *at) { return (uint16_t)(at[0] << 8 | at[1]); }

/* Seconds and nanoseconds, 8 bytes. Long division by hand: the library's costs more flash than all of this file's other
 * arithmetic. */
static uint8_t *put_time(uint8_t *at, int64_t time_ns) {
    uint64_t rest = (uint64_t)time_ns;
    uint32_t seconds = 0;
    int bit;
    for (bit = 31; bit >= 0; bit--) {
        const uint64_t part = (uint64_t)SECOND_NS << bit;
        if (rest >= part) {
            rest -= part;
            seconds |= UINT32_C(1) << bit;
        }
    }
    return put32(put32(at, seconds), (uint32_t)rest);
}

/* -1 if it is no time. */
static int64_t take_time(const uint8_t *at) {
    const uint32_t seconds = take32(at), nanoseconds = take32(at + 4);
    return nanoseconds >= SECOND_NS ? -1 : (int64_t)seconds * SECOND_NS + nanoseconds;
}

/* How far `a` is ahead of `b`, in numbers that wrap. */
static int16_t ahead(uint16_t a, uint16_t b) { return (int16_t)(uint16_t)(a - b); }

static uint8_t *put_header(uint8_t *at, uint8_t session, uint8_t stream, uint16_t number) {
    at[0] = session;
    at[1] = stream;
    return put16(at + 2, number);
}

static uint8_t *put_submessage(uint8_t *at, uint8_t id, uint8_t flags, uint32_t length) {
    at[0] = id;
    at[1] = (uint8_t)(flags | LITTLE);
    return put16(at + 2, (uint16_t)length);
}

static uint32_t aligned(uint32_t length) { return (length + 3u) & ~UINT32_C(3); }

/* ---- frames of a serial line: 7E, source, destination, length, payload, checksum; all but the first escaped ---- */

enum { BEGIN = 0x7E, ESCAPE = 0x7D, FLIP = 0x20 };
enum { IDLE, SOURCE, DESTINATION, LENGTH_LOW, LENGTH_HIGH, PAYLOAD, CRC_LOW, CRC_HIGH };

/* CRC-16/ARC, a nibble at a time: a table of 32 bytes instead of 512, and a quarter of the steps of none. */
static uint16_t crc16(uint16_t crc, uint8_t byte) {
    static const uint16_t table[16] = {0x0000, 0xCC01, 0xD801, 0x1400, 0xF001, 0x3C00, 0x2800, 0xE401,
                                       0xA001, 0x6C00, 0x7800, 0xB401, 0x5000, 0x9C01, 0x8801, 0x4400};
    crc = (uint16_t)(table[(crc ^ byte) & 15] ^ crc >> 4);
    return (uint16_t)(table[(crc ^ byte >> 4) & 15] ^ crc >> 4);
}

static uint8_t *put_escaped(uint8_t *at, uint8_t byte) {
    if (byte == BEGIN || byte == ESCAPE) {
        *at++ = ESCAPE;
        byte ^= FLIP;
    }
    *at++ = byte;
    return at;
}

static size_t put_frame(uint8_t *out, uint8_t source, const uint8_t *message, size_t length) {
    uint8_t *at = out;
    uint16_t crc = 0;
    size_t i;
    *at++ = BEGIN;
    at = put_escaped(at, source);
    at = put_escaped(at, 0);
    at = put_escaped(at, (uint8_t)length);
    at = put_escaped(at, (uint8_t)(length >> 8));
    for (i = 0; i < length; i++) {
        crc = crc16(crc, message[i]);
        at = put_escaped(at, message[i]);
    }
    at = put_escaped(at, (uint8_t)crc);
    return (size_t)(put_escaped(at, (uint8_t)(crc >> 8)) - out);
}

/* Takes one byte off the line. True if it completed a frame: `incoming` holds `got` bytes. */
static bool take_frame_byte(noctule_client_t *self, uint8_t byte) {
    noctule_deframer_t *frame = &self->deframer;
    if (byte == BEGIN) {
        if (frame->state != IDLE) self->counts.frame_errors++;
        frame->state = SOURCE;
        frame->escape = false;
        return false;
    }
    if (frame->state == IDLE) return false;
    if (byte == ESCAPE && !frame->escape) {
        frame->escape = true;
        return false;
    }
    if (frame->escape) {
        frame->escape = false;
        byte ^= FLIP;
    }
    switch (frame->state) {
    case LENGTH_LOW:
        frame->expected = byte;
        break;
    case LENGTH_HIGH:
        frame->expected = (uint16_t)(frame->expected | byte << 8);
        frame->got = 0;
        frame->crc = 0;
        if (frame->expected == 0 || frame->expected > self->config.message_bytes) goto broken;
        break;
    case PAYLOAD:
        frame->crc = crc16(frame->crc, byte);
        self->incoming[frame->got++] = byte;
        if (frame->got < frame->expected) return false;
        break;
    case CRC_LOW:
        if (byte != (uint8_t)frame->crc) goto broken;
        break;
    case CRC_HIGH:
        if (byte != frame->crc >> 8) goto broken;
        frame->state = IDLE;
        return true;
    default: /* The source says nothing on a line of two; a wrong destination is not ours. */
        if (frame->state == DESTINATION && byte != self->config.address) goto broken;
        break;
    }
    frame->state++;
    return false;
broken:
    self->counts.frame_errors++;
    frame->state = IDLE;
    return false;
}

/* ---- objects: in one order, participant, publisher, subscriber, then topic and writer or reader of each endpoint ---- */

static uint16_t steps(const noctule_client_t *self) {
    return (uint16_t)(STEPS_BEFORE_ENDPOINTS + 2 * self->config.endpoint_count);
}

static uint16_t object_of_step(const noctule_client_t *self, uint16_t step) {
    static const uint16_t first[STEPS_BEFORE_ENDPOINTS] = {PARTICIPANT_ID, PUBLISHER_ID, SUBSCRIBER_ID};
    uint16_t endpoint;
    if (step < STEPS_BEFORE_ENDPOINTS) return first[step];
    step = (uint16_t)(step - STEPS_BEFORE_ENDPOINTS);
    endpoint = step / 2;
    return (uint16_t)((endpoint + 1) << 4 |
                      (step % 2 == 0                                                    ? TOPIC
                       : self->config.endpoints[endpoint].flags & NOCTULE_SUBSCRIBE ? READER
                                                                                        : WRITER));
}

static void put_id_cdr(noctule_cdr_writer_t *cdr, uint16_t id) {
    noctule_cdr_put_u8(cdr, (uint8_t)(id >> 8));
    noctule_cdr_put_u8(cdr, (uint8_t)id);
}

/* The binary representation of a writer or reader, 7.7.3: topic, then quality of service. */
static void put_endpoint(noctule_cdr_writer_t *cdr, const noctule_endpoint_t *endpoint, uint16_t object) {
    const bool reader = (object & 15) == READER;
    enum { DDS_RELIABLE = 1, KEEP_LAST = 2, TRANSIENT_LOCAL = 8 };
    put_id_cdr(cdr, (uint16_t)((object & 0xFFF0) | TOPIC));
    noctule_cdr_put_u8(cdr, 1);
    noctule_cdr_put_u16(cdr, (uint16_t)(KEEP_LAST | (endpoint->flags & NOCTULE_RELIABLE ? DDS_RELIABLE : 0) |
                                        (endpoint->flags & NOCTULE_TRANSIENT_LOCAL ? TRANSIENT_LOCAL : 0)));
    noctule_cdr_put_u8(cdr, endpoint->history_depth > 0);
    if (endpoint->history_depth > 0) noctule_cdr_put_u16(cdr, endpoint->history_depth);
    /* No deadline, lifespan, user data; then a writer's strength, or a reader's two filters. */
    noctule_cdr_put_bytes(cdr, (const uint8_t *)"\0\0\0\0\0", reader ? 5 : 4);
}

static void put_read_data(noctule_cdr_writer_t *cdr, const noctule_endpoint_t *endpoint, uint16_t object) {
    /* No filter; unlimited samples, for all time, at any rate. */
    static const uint8_t everything[11] = {0, 0, 1, 0xFF, 0xFF, 0, 0, 0, 0, 0, 0};
    uint8_t *at = noctule_cdr_room(cdr, SUBMESSAGE + 5, 4);
    if (at == NULL) return;
    at = put_submessage(at, READ_DATA, 0, 16);
    at = put_id(put_id(at, (uint16_t)(REQUEST_READ | (object >> 4))), object);
    *at = endpoint->flags & NOCTULE_RELIABLE ? RELIABLE : BEST_EFFORT;
    noctule_cdr_put_bytes(cdr, everything, sizeof everything);
}

/* CREATE of one object, in binary representation, which every agent has; a reader also gets READ_DATA. */
static void put_create(const noctule_client_t *self, uint16_t step, noctule_cdr_writer_t *cdr) {
    const uint32_t begin = cdr->length;
    const uint16_t object = object_of_step(self, step), kind = object & 15;
    const noctule_endpoint_t *endpoint =
        step < STEPS_BEFORE_ENDPOINTS ? NULL : &self->config.endpoints[(object >> 4) - 1];
    uint8_t *head = noctule_cdr_room(cdr, SUBMESSAGE + 12, 4);
    uint32_t body = cdr->length;
    if (head == NULL) return;
    if (kind == TOPIC) {
        noctule_cdr_put_string(cdr, endpoint->topic);
        noctule_cdr_put_u8(cdr, 0);
        noctule_cdr_put_u8(cdr, 1);
        noctule_cdr_put_string(cdr, endpoint->type);
    } else if (kind == WRITER || kind == READER) {
        put_endpoint(cdr, endpoint, object);
    } else {
        const bool named = kind == PARTICIPANT && self->config.participant != NULL;
        noctule_cdr_put_u8(cdr, 0);
        noctule_cdr_put_u8(cdr, named);
        if (named) noctule_cdr_put_string(cdr, self->config.participant);
    }
    body = cdr->length - body;
    if (kind == PARTICIPANT)
        noctule_cdr_put_u16(cdr, self->config.domain);
    else
        put_id_cdr(cdr, kind == WRITER ? PUBLISHER_ID : kind == READER ? SUBSCRIBER_ID : PARTICIPANT_ID);
    head = put_submessage(head, CREATE, REUSE_OR_REPLACE, cdr->length - begin - SUBMESSAGE);
    head = put_id(put_id(head, (uint16_t)(REQUEST_CREATE + step)), object);
    *head++ = (uint8_t)kind;
    *head++ = 3; /* binary */
    put32(put16(head, 0), body);
    if (kind == READER) put_read_data(cdr, endpoint, object);
}

/* ---- session ---- */

static uint8_t *slot_bytes(const noctule_client_t *self, uint16_t number) {
    return self->slots_out + (size_t)(number & (self->config.slots_out - 1)) * self->config.message_bytes;
}

static noctule_slot_t *slot(noctule_client_t *self, uint16_t number) {
    return &self->out[number & (self->config.slots_out - 1)];
}

static uint16_t in_flight(const noctule_client_t *self) { return (uint16_t)(self->out_next - self->out_first); }

static bool in_session(const noctule_client_t *self) {
    return self->state == NOCTULE_CREATING || self->state == NOCTULE_READY;
}

/* Forgets the session; what was in flight belongs to no session any more. */
static void drop_session(noctule_client_t *self) {
    for (; self->out_first != self->out_next; self->out_first++)
        self->counts.abandoned += slot(self, self->out_first)->samples;
    self->counts.abandoned += self->best_effort_samples;
    self->best_effort_samples = 0;
    self->best_effort_length = 0;
    self->restart = false;
}

static void connect(noctule_client_t *self, int64_t now_ns) {
    drop_session(self);
    self->state = NOCTULE_CONNECTING;
    self->connect_ns = now_ns;
}

static int64_t sooner(int64_t a, int64_t b) { return a < b ? a : b; }

/* The shortest of late: a longer one waited for a message lost before it, and forgets the shortest by an eighth. */
static void measure_round_trip(noctule_client_t *self, int64_t took_ns) {
    self->round_trip_ns = sooner(took_ns, self->round_trip_ns + self->round_trip_ns / 8);
    if (self->round_trip_ns < SHORTEST_ROUND_TRIP_NS) self->round_trip_ns = SHORTEST_ROUND_TRIP_NS;
    if (self->round_trip_ns > NOCTULE_CLIENT_HEARTBEAT_NS) self->round_trip_ns = NOCTULE_CLIENT_HEARTBEAT_NS;
}

/* The agent has accepted the session: all streams begin at 0, and it may have none of the objects. */
static void begin_session(noctule_client_t *self, int64_t now_ns) {
    drop_session(self);
    self->state = NOCTULE_CREATING;
    self->counts.sessions++;
    self->steps_sent = self->steps_answered = 0;
    self->best_effort_out = self->best_effort_in = 0;
    self->out_first = self->out_next = self->in_next = self->in_end = 0;
    memset(self->in_length, 0, sizeof self->in_length);
    self->large_length = 0;
    self->large_dropped = self->ack_due = self->ack_overtaken = self->question_open = self->fourth_due = false;
    self->questions = self->heartbeats = 0;
    self->round_trip_ns = NOCTULE_CLIENT_HEARTBEAT_NS;
    measure_round_trip(self, now_ns - (self->connect_ns - NOCTULE_CLIENT_CONNECT_NS));
    self->nudge_ns = now_ns + NOCTULE_CLIENT_HEARTBEAT_NS;
    self->question_ns = self->progress_ns = self->heard_ns = self->ping_ns = self->heartbeat_ns = now_ns;
}

static bool is_power_of_two(uint8_t value) { return (value & (value - 1)) == 0; }

noctule_client_error_t noctule_client_init(noctule_client_t *self, const noctule_client_config_t *config) {
    uint16_t step;
    uint8_t *memory = config->memory;
    const uint16_t bytes = config->message_bytes;
    memset(self, 0, sizeof *self);
    self->state = NOCTULE_CLOSED;
    if (config->key == 0) return NOCTULE_CLIENT_KEY_IS_ZERO;
    if (bytes < NOCTULE_CLIENT_MESSAGE_MIN || bytes > NOCTULE_CLIENT_MESSAGE_MAX || bytes % 4 != 0)
        return NOCTULE_CLIENT_MESSAGE_BYTES;
    if (config->slots_out == 0 || config->slots_out > NOCTULE_CLIENT_SLOTS_MAX || !is_power_of_two(config->slots_out) ||
        config->slots_in > NOCTULE_CLIENT_SLOTS_MAX || !is_power_of_two(config->slots_in))
        return NOCTULE_CLIENT_SLOTS;
    if (config->endpoint_count > NOCTULE_CLIENT_ENDPOINTS_MAX) return NOCTULE_CLIENT_ENDPOINTS;
    if (memory == NULL || config->large_bytes > NOCTULE_CLIENT_LARGE_MAX ||
        config->memory_bytes <
            NOCTULE_CLIENT_MEMORY_BYTES(bytes, config->slots_out, config->slots_in, config->large_bytes))
        return NOCTULE_CLIENT_MEMORY;
    self->config = *config;
    if (self->config.address == 0) self->config.address = 1;
    self->best_effort = memory;
    self->incoming = memory + bytes;
    self->slots_out = self->incoming + bytes;
    self->slots_in = self->slots_out + (size_t)bytes * config->slots_out;
    self->large = self->slots_in + (size_t)bytes * config->slots_in;
    for (step = 0; step < steps(self); step++) {
        noctule_cdr_writer_t scratch = noctule_cdr_writer(self->slots_out + HEADER, bytes - HEADER);
        put_create(self, step, &scratch);
        if (scratch.failed) return NOCTULE_CLIENT_NAME_TOO_LONG;
    }
    self->state = NOCTULE_CONNECTING;
    return NOCTULE_CLIENT_OK;
}

void noctule_client_close(noctule_client_t *self, int64_t now_ns) {
    const bool had_session = in_session(self);
    if (self->state == NOCTULE_CLOSED || self->state == NOCTULE_CLOSING) return;
    drop_session(self);
    self->state = had_session ? NOCTULE_CLOSING : NOCTULE_CLOSED;
    self->connect_ns = now_ns;
    self->close_tries = 0;
}

noctule_client_state_t noctule_client_state(const noctule_client_t *self) { return self->state; }
const noctule_client_counts_t *noctule_client_counts(const noctule_client_t *self) { return &self->counts; }
noctule_refusal_t noctule_client_refusal(const noctule_client_t *self) { return self->refusal; }
uint16_t noctule_client_unacknowledged(const noctule_client_t *self) { return in_flight(self); }

bool noctule_client_agent_is_noctule(const noctule_client_t *self) {
    return in_session(self) && self->agent_is_noctule;
}

bool noctule_client_is_ready(const noctule_client_t *self, uint16_t endpoint) {
    return in_session(self) && endpoint < self->config.endpoint_count &&
           self->steps_answered >= STEPS_BEFORE_ENDPOINTS + 2 * (endpoint + 1);
}

/* ---- outgoing samples ---- */

/* The end of a reliable message that may still grow, or of a new one. NULL if no slot is free. */
static uint8_t *open_slot(noctule_client_t *self, bool fresh, uint32_t *room) {
    uint16_t last = (uint16_t)(self->out_next - 1);
    noctule_slot_t *last_slot = slot(self, last);
    const uint32_t used = fresh || in_flight(self) == 0 || last_slot->flags != 0 ? 0 : aligned(last_slot->length);
    if (used == 0) {
        if (in_flight(self) >= self->config.slots_out) return NULL;
        *room = (uint32_t)self->config.message_bytes - HEADER;
        return slot_bytes(self, self->out_next) + HEADER;
    }
    if (used >= self->config.message_bytes) return NULL;
    *room = self->config.message_bytes - used;
    memset(slot_bytes(self, last) + last_slot->length, 0, used - last_slot->length);
    return slot_bytes(self, last) + used;
}

/* Makes what was written at `at` part of the stream. */
static noctule_slot_t *commit(noctule_client_t *self, const uint8_t *at, uint32_t length, uint8_t samples) {
    if (at == slot_bytes(self, self->out_next) + HEADER && in_flight(self) < self->config.slots_out) {
        noctule_slot_t *fresh = slot(self, self->out_next);
        memset(fresh, 0, sizeof *fresh);
        put_header(slot_bytes(self, self->out_next), SESSION, RELIABLE, self->out_next);
        self->out_next++;
    }
    {
        const uint16_t last = (uint16_t)(self->out_next - 1);
        noctule_slot_t *last_slot = slot(self, last);
        last_slot->length = (uint16_t)((uint32_t)(at - slot_bytes(self, last)) + length);
        last_slot->samples = (uint8_t)(last_slot->samples + samples);
        return last_slot;
    }
}

/* Room for a submessage of `length` bytes in a reliable message. */
static uint8_t *reliable_room(noctule_client_t *self, uint32_t length) {
    uint32_t room = 0;
    uint8_t *at = open_slot(self, false, &room);
    if (at == NULL || room < length || slot(self, (uint16_t)(self->out_next - 1))->samples == UINT8_MAX)
        at = open_slot(self, true, &room);
    return at != NULL && room >= length ? at : NULL;
}

/* Objects that fit into free slots; the rest when answers have freed some. One object a message on a serial line, where
 * every byte may be garbled and short frames get through; as many as fit elsewhere. */
static void create_objects(noctule_client_t *self) {
    bool fresh = self->config.line == NOCTULE_SERIAL;
    while (self->steps_sent < steps(self)) {
        uint32_t room = 0;
        uint8_t *at = open_slot(self, fresh, &room);
        noctule_cdr_writer_t cdr = noctule_cdr_writer(at, room);
        if (at != NULL) put_create(self, self->steps_sent, &cdr);
        if (at != NULL && !cdr.failed) {
            commit(self, at, cdr.length, 0);
            self->steps_sent++;
            fresh = self->config.line == NOCTULE_SERIAL;
        } else if (fresh) {
            return;
        } else {
            fresh = true;
        }
    }
}

static uint8_t *put_stamp(uint8_t *at, int64_t source_ns) {
    return put_time(put_submessage(at, STAMP, 0, STAMP_BYTES - SUBMESSAGE), source_ns);
}

/* WRITE_DATA without its payload, 8 bytes. */
static uint8_t *put_write(uint8_t *at, uint16_t endpoint, uint32_t length) {
    at = put_submessage(at, WRITE_DATA, 0, 4 + length);
    at = put_id(at, (uint16_t)(REQUEST_WRITE + endpoint));
    return put_id(at, (uint16_t)((endpoint + 1) << 4 | WRITER));
}

static uint8_t *put_payload(uint8_t *at, const uint8_t *bytes, uint32_t length) {
    if (length > 0) memcpy(at, bytes, length);
    return at + length;
}

/* A sample that fits no message: the bytes of its WRITE_DATA in as many messages as it takes, or in none. */
static noctule_client_error_t publish_fragments(noctule_client_t *self, uint16_t endpoint, const uint8_t *bytes,
                                                uint32_t length, const int64_t *source_ns) {
    uint32_t piece = (uint32_t)self->config.message_bytes - HEADER - SUBMESSAGE;
    uint32_t first = source_ns != NULL ? STAMP_BYTES : 0, rest = 8 + length, room;
    const uint32_t messages = (first + rest + piece - 1) / piece;
    bool begun = false;
    if (messages > self->config.slots_out) return NOCTULE_CLIENT_TOO_LARGE;
    if (messages > (uint32_t)self->config.slots_out - in_flight(self)) return NOCTULE_CLIENT_FULL;
    while (rest > 0) {
        uint8_t *begin = open_slot(self, true, &room), *at = begin;
        uint32_t now = piece - first;
        if (begin == NULL) return NOCTULE_CLIENT_FULL; /* Cannot be: they were counted. */
        if (now > rest) now = rest;
        if (first > 0) at = put_stamp(at, *source_ns);
        at = put_submessage(at, FRAGMENT, now == rest ? LAST_FRAGMENT : 0, now);
        rest -= now;
        first = 0;
        if (!begun) {
            at = put_write(at, endpoint, length);
            now -= 8;
            begun = true;
        }
        at = put_payload(at, bytes, now);
        bytes += now;
        commit(self, begin, (uint32_t)(at - begin), rest == 0)->flags |= WHOLE;
    }
    return NOCTULE_CLIENT_OK;
}

/* Appends to the best-effort message that waits for the line. */
static uint8_t *best_effort_room(noctule_client_t *self, uint32_t length) {
    const uint32_t used = self->best_effort_length == 0 ? HEADER : aligned(self->best_effort_length);
    if (used > self->config.message_bytes || length > self->config.message_bytes - used ||
        self->best_effort_samples == UINT8_MAX)
        return NULL;
    if (self->best_effort_length > 0)
        memset(self->best_effort + self->best_effort_length, 0, used - self->best_effort_length);
    self->best_effort_length = (uint16_t)(used + length);
    self->best_effort_samples++;
    return self->best_effort + used;
}

static noctule_client_error_t publish(noctule_client_t *self, uint16_t endpoint, const uint8_t *bytes, uint32_t length,
                                      int64_t source_ns) {
    const noctule_endpoint_t *topic;
    bool stamped;
    uint32_t size;
    uint8_t *at;
    if (endpoint >= self->config.endpoint_count) return NOCTULE_CLIENT_WRONG_ENDPOINT;
    topic = &self->config.endpoints[endpoint];
    if (topic->flags & NOCTULE_SUBSCRIBE) return NOCTULE_CLIENT_WRONG_ENDPOINT;
    if (!noctule_client_is_ready(self, endpoint)) return NOCTULE_CLIENT_NOT_READY;
    if (length > NOCTULE_CLIENT_SAMPLE_MAX) return NOCTULE_CLIENT_TOO_LARGE;
    stamped = topic->flags & NOCTULE_STAMPED && self->agent_is_noctule;
    size = (stamped ? STAMP_BYTES : 0u) + 8 + length;
    if (size > (uint32_t)self->config.message_bytes - HEADER) {
        if (!(topic->flags & NOCTULE_RELIABLE)) return NOCTULE_CLIENT_TOO_LARGE;
        return publish_fragments(self, endpoint, bytes, length, stamped ? &source_ns : NULL);
    }
    at = topic->flags & NOCTULE_RELIABLE ? reliable_room(self, size) : best_effort_room(self, size);
    if (at == NULL) return NOCTULE_CLIENT_FULL;
    if (topic->flags & NOCTULE_RELIABLE) commit(self, at, size, 1);
    if (stamped) at = put_stamp(at, source_ns);
    put_payload(put_write(at, endpoint, length), bytes, length);
    return NOCTULE_CLIENT_OK;
}

noctule_client_error_t noctule_client_publish(noctule_client_t *self, uint16_t endpoint, const uint8_t *bytes,
                                              uint32_t length, int64_t source_ns) {
    const noctule_client_error_t error = publish(self, endpoint, bytes, length, source_ns);
    if (error == NOCTULE_CLIENT_OK)
        self->counts.published++;
    else
        self->counts.refused_samples++;
    return error;
}

/* ---- what goes out ---- */

static int32_t transmit(noctule_client_t *self, const uint8_t *message, uint32_t length, uint8_t *out) {
    size_t sent = length;
    if (self->config.line == NOCTULE_SERIAL)
        sent = put_frame(out, self->config.address, message, length);
    else
        memcpy(out, message, length);
    self->counts.bytes_out += (uint32_t)sent;
    return (int32_t)sent;
}

/* The stations of a session that is not there yet, or not any more. */
static int32_t transmit_outside(noctule_client_t *self, int64_t now_ns, uint8_t *out) {
    uint8_t message[24], *at = message;
    if (now_ns < self->connect_ns) return 0;
    self->connect_ns = now_ns + NOCTULE_CLIENT_CONNECT_NS;
    if (self->state == NOCTULE_CONNECTING) {
        at = put_submessage(put_header(at, NO_SESSION, 0, 0), CREATE_CLIENT, 0, 16);
        memcpy(at, cookie, 4);
        at[4] = 1; /* version 1.0 */
        at[5] = 0;
        memcpy(at + 6, vendor, 2);
        at = put_id(put_id(at + 8, (uint16_t)(self->config.key >> 16)), (uint16_t)self->config.key);
        *at++ = SESSION;
        *at++ = 0; /* no properties */
        at = put16(at, self->config.message_bytes);
    } else {
        if (self->close_tries++ >= ANSWER_TO_CLOSE_TRIES) {
            self->state = NOCTULE_CLOSED;
            return 0;
        }
        at = put_submessage(put_header(at, SESSION, 0, 0), DELETE, 0, 4);
        at = put_id(put_id(at, REQUEST_DELETE_CLIENT), 0xFFFE);
    }
    return transmit(self, message, (uint32_t)(at - message), out);
}

static uint8_t *put_acknack(noctule_client_t *self, uint8_t *at) {
    uint16_t bit, missing = 0;
    for (bit = 0; bit < 16; bit++) {
        const uint16_t number = (uint16_t)(self->in_next + bit);
        const bool stored = bit < self->config.slots_in && self->in_length[number & (self->config.slots_in - 1)] > 0;
        if (ahead(self->in_end, number) > 0 && !stored) missing = (uint16_t)(missing | 1 << bit);
    }
    self->ack_due = self->ack_overtaken = false;
    at = put_id(put16(put_submessage(at, ACKNACK, 0, 5), self->in_next), missing);
    *at++ = RELIABLE;
    return at;
}

static bool ping_due(const noctule_client_t *self, int64_t now_ns) {
    return now_ns - self->heard_ns >= NOCTULE_CLIENT_PING_NS && now_ns - self->ping_ns >= NOCTULE_CLIENT_PING_NS;
}

/* A heartbeat too early costs one short message, a late one stops the stream for as long. */
static int64_t heartbeat_interval(const noctule_client_t *self) {
    return sooner(self->round_trip_ns << (1 + self->heartbeats), NOCTULE_CLIENT_HEARTBEAT_NS);
}

static bool heartbeat_due(const noctule_client_t *self, int64_t now_ns) {
    return in_flight(self) > 0 && now_ns - self->heartbeat_ns >= heartbeat_interval(self);
}

/* A lost answer to a CREATE that nothing follows shows no gap, and agents are slow to ask: miss it aloud. */
static void nudge(noctule_client_t *self, int64_t now_ns) {
    if (self->state != NOCTULE_CREATING || now_ns < self->nudge_ns) return;
    self->nudge_ns = now_ns + sooner(4 * self->round_trip_ns, NOCTULE_CLIENT_HEARTBEAT_NS);
    if (self->steps_answered == self->steps_sent) return;
    if (self->in_end == self->in_next) self->in_end++;
    self->ack_due = true;
}

/* Short submessages that belong to no stream, the most urgent first. NULL if none is due. */
static uint8_t *put_control(noctule_client_t *self, int64_t now_ns, uint8_t *at) {
    if (self->ack_due) return put_acknack(self, at);
    if (self->fourth_due) {
        self->fourth_due = false;
        at = put_time(put_time(put_submessage(at, TIMESTAMP_REPLY, 0, 24), now_ns), self->t4_ns);
        memcpy(at, self->t3, 8);
        return at + 8;
    }
    if (self->config.sync_interval_ns > 0 && now_ns >= self->question_ns) {
        self->question_open = true;
        self->t1_ns = now_ns;
        self->question_ns = now_ns + ANSWER_NS;
        return put_time(put_submessage(at, TIMESTAMP, 0, 8), now_ns);
    }
    if (ping_due(self, now_ns)) {
        static const uint8_t ping[8] = {0x00, 0x0A, 0xFF, 0xFD, 2, 0, 0, 0};
        self->ping_ns = now_ns;
        at = put_submessage(at, GET_INFO, 0, sizeof ping);
        memcpy(at, ping, sizeof ping);
        return at + sizeof ping;
    }
    return NULL;
}

static uint8_t *put_heartbeat(noctule_client_t *self, int64_t now_ns, uint8_t *at) {
    self->heartbeat_ns = now_ns;
    if (self->heartbeats < 5) self->heartbeats++;
    at = put16(put_submessage(at, HEARTBEAT, 0, 5), self->out_first);
    at = put16(at, (uint16_t)(self->out_next - 1));
    *at++ = RELIABLE;
    return at;
}

/* The first reliable message that was never sent, or that the agent misses, if it is no longer than `limit`. */
static int32_t transmit_reliable(noctule_client_t *self, int64_t now_ns, uint32_t limit, uint8_t *out) {
    uint16_t number;
    for (number = self->out_first; number != self->out_next; number++) {
        noctule_slot_t *message = slot(self, number);
        if (message->flags & SENT && !(message->flags & MISSED)) continue;
        if (message->length > limit) return 0;
        if (message->flags & MISSED) {
            self->counts.resent_messages++;
            message->flags |= RESENT;
        }
        if (number == self->out_first && !(message->flags & SENT)) self->progress_ns = now_ns;
        message->flags = (uint8_t)((message->flags | SENT) & ~MISSED);
        message->sent_ns = self->heartbeat_ns = now_ns;
        return transmit(self, slot_bytes(self, number), message->length, out);
    }
    return 0;
}

/* Whether something reliable waits for its acknowledgement. */
static bool is_waiting(const noctule_client_t *self) {
    return in_flight(self) > 0 && self->out[self->out_first & (self->config.slots_out - 1)].flags & SENT;
}

static bool session_is_over(const noctule_client_t *self, int64_t now_ns) {
    const bool is_creating = self->state == NOCTULE_CREATING;
    const int64_t timeout_ns = is_creating ? NOCTULE_CLIENT_CREATE_NS : NOCTULE_CLIENT_STALL_NS;
    return self->restart || now_ns - self->heard_ns >= NOCTULE_CLIENT_SILENCE_NS ||
           ((is_creating || is_waiting(self)) && now_ns - self->progress_ns >= timeout_ns);
}

int32_t noctule_client_poll_transmit(noctule_client_t *self, int64_t now_ns, uint8_t *out, size_t capacity) {
    uint8_t message[HEADER + SUBMESSAGE + 24], *at, *end;
    int32_t sent;
    if (self->state == NOCTULE_CLOSED) return 0;
    if (capacity < (self->config.line == NOCTULE_SERIAL
                        ? (size_t)NOCTULE_CLIENT_TRANSMIT_BYTES((size_t)self->config.message_bytes)
                        : self->config.message_bytes))
        return NOCTULE_CLIENT_NO_ROOM;
    if (in_session(self) && session_is_over(self, now_ns)) connect(self, now_ns);
    if (!in_session(self)) return transmit_outside(self, now_ns, out);
    create_objects(self);
    nudge(self, now_ns);
    if (self->ack_due && !self->ack_overtaken && self->config.line == NOCTULE_SERIAL) {
        /* The agent can do something with an answer, and waits for the acknowledgement at leisure. */
        self->ack_overtaken = true;
        sent = transmit_reliable(self, now_ns, AHEAD_BYTES_MAX, out);
        if (sent > 0) return sent;
    }
    at = put_header(message, SESSION, 0, 0);
    end = put_control(self, now_ns, at);
    if (end != NULL) return transmit(self, message, (uint32_t)(end - message), out);
    sent = transmit_reliable(self, now_ns, UINT32_MAX, out);
    if (sent > 0) return sent;
    if (heartbeat_due(self, now_ns))
        return transmit(self, message, (uint32_t)(put_heartbeat(self, now_ns, at) - message), out);
    if (self->best_effort_length > 0) {
        const uint16_t length = self->best_effort_length;
        put_header(self->best_effort, SESSION, BEST_EFFORT, self->best_effort_out++);
        self->best_effort_length = 0;
        self->best_effort_samples = 0;
        return transmit(self, self->best_effort, length, out);
    }
    return 0;
}

int64_t noctule_client_next_timeout(const noctule_client_t *self, int64_t now_ns) {
    int64_t next;
    uint16_t number;
    if (self->state == NOCTULE_CLOSED) return INT64_MAX;
    if (!in_session(self)) return self->connect_ns;
    if (self->restart || self->ack_due || self->fourth_due || self->best_effort_length > 0 ||
        (self->steps_sent < steps(self) && in_flight(self) < self->config.slots_out))
        return now_ns;
    for (number = self->out_first; number != self->out_next; number++) {
        const uint8_t flags = self->out[number & (self->config.slots_out - 1)].flags;
        if (!(flags & SENT) || flags & MISSED) return now_ns;
    }
    next = self->heard_ns > self->ping_ns ? self->heard_ns : self->ping_ns;
    next = sooner(next + NOCTULE_CLIENT_PING_NS, self->heard_ns + NOCTULE_CLIENT_SILENCE_NS);
    if (in_flight(self) > 0) next = sooner(next, self->heartbeat_ns + heartbeat_interval(self));
    if (self->config.sync_interval_ns > 0) next = sooner(next, self->question_ns);
    if (self->state == NOCTULE_CREATING)
        next = sooner(next, sooner(self->nudge_ns, self->progress_ns + NOCTULE_CLIENT_CREATE_NS));
    return next;
}

/* ---- what comes in ---- */

static bool handle_status_agent(noctule_client_t *self, const uint8_t *body, uint32_t length, int64_t now_ns) {
    if (length < 10 || !is_same(body + 2, cookie, sizeof cookie)) return false;
    /* More than one question may have been on the way; the agent had them all before what we sent after the first answer. */
    if (self->state != NOCTULE_CONNECTING || body[0] >= STATUS_ERROR) return true;
    self->agent_is_noctule = is_same(body + 8, vendor, sizeof vendor);
    begin_session(self, now_ns);
    return true;
}

static bool handle_status(noctule_client_t *self, const uint8_t *body, uint32_t length, int64_t now_ns) {
    uint16_t request, step;
    if (length < 6) return false;
    request = take_id(body);
    step = (uint16_t)(request - REQUEST_CREATE);
    if (self->state == NOCTULE_CLOSING) {
        if (request == REQUEST_DELETE_CLIENT) self->state = NOCTULE_CLOSED;
        return true;
    }
    if (body[4] >= STATUS_ERROR) {
        self->counts.refused_objects++;
        self->refusal.object = take_id(body + 2);
        self->refusal.status = body[4];
    }
    if (step < self->steps_answered || step >= self->steps_sent) return true;
    self->steps_answered = (uint16_t)(step + 1);
    self->progress_ns = now_ns;
    self->nudge_ns = now_ns + sooner(4 * self->round_trip_ns, NOCTULE_CLIENT_HEARTBEAT_NS);
    if (self->steps_answered == steps(self)) self->state = NOCTULE_READY;
    return true;
}

static bool handle_sample(noctule_client_t *self, const uint8_t *body, uint32_t length, int64_t now_ns) {
    uint16_t object, endpoint;
    if (length < 4) return false;
    object = take_id(body + 2);
    endpoint = (uint16_t)((object >> 4) - 1);
    if ((object & 15) != READER || endpoint >= self->config.endpoint_count ||
        !(self->config.endpoints[endpoint].flags & NOCTULE_SUBSCRIBE))
        return false;
    self->counts.received++;
    if (self->config.on_sample != NULL) self->config.on_sample(self->config.context, endpoint, body + 4, length - 4, now_ns);
    return true;
}

static bool handle_acknack(noctule_client_t *self, const uint8_t *body, uint32_t length, int64_t now_ns) {
    uint16_t first, missing, bit;
    if (length < 5 || body[4] != RELIABLE) return false;
    first = take16(body);
    missing = take_id(body + 2);
    if (ahead(first, self->out_next) > 0) return false;
    self->heartbeats = 0;
    for (; ahead(first, self->out_first) > 0; self->out_first++) {
        noctule_slot_t *done = slot(self, self->out_first);
        if (!(done->flags & SENT)) return false;
        if (!(done->flags & RESENT)) measure_round_trip(self, now_ns - done->sent_ns);
        self->counts.acknowledged += done->samples;
        self->progress_ns = now_ns;
    }
    for (bit = 0; bit < 16; bit++) {
        const uint16_t number = (uint16_t)(first + bit);
        noctule_slot_t *message = slot(self, number);
        if (!(missing >> bit & 1) || ahead(number, self->out_first) < 0 || ahead(number, self->out_next) >= 0) continue;
        if (message->flags & SENT && now_ns - message->sent_ns >= self->round_trip_ns) message->flags |= MISSED;
    }
    return true;
}

static bool handle_timestamp_reply(noctule_client_t *self, const uint8_t *body, uint32_t length, int64_t now_ns) {
    noctule_exchange_t exchange;
    if (length < 24) return false;
    exchange.t1_ns = take_time(body + 16);
    exchange.t2_ns = take_time(body + 8);
    exchange.t3_ns = take_time(body);
    exchange.t4_ns = now_ns;
    if (!self->question_open || exchange.t1_ns != self->t1_ns) {
        self->counts.stale_answers++;
        return true;
    }
    if (exchange.t2_ns < 0 || exchange.t3_ns < 0) return false;
    self->question_open = false;
    if (self->questions < QUICK_QUESTIONS) self->questions++;
    self->question_ns = self->t1_ns + (self->questions < QUICK_QUESTIONS
                                           ? sooner(QUICK_QUESTION_NS, self->config.sync_interval_ns)
                                           : self->config.sync_interval_ns);
    self->fourth_due = self->agent_is_noctule;
    self->t4_ns = now_ns;
    memcpy(self->t3, body, 8);
    self->counts.exchanges++;
    if (self->config.on_exchange != NULL) self->config.on_exchange(self->config.context, &exchange);
    return true;
}

/* One submessage, whole. False if it breaks the protocol. */
static bool handle_submessage(noctule_client_t *self, uint8_t id, const uint8_t *body, uint32_t length, int64_t now_ns) {
    /* Leftovers of an older session are no fault. */
    if (self->state == NOCTULE_CONNECTING) return id != STATUS_AGENT || handle_status_agent(self, body, length, now_ns);
    if (self->state == NOCTULE_CLOSING) return id != STATUS || handle_status(self, body, length, now_ns);
    switch (id) {
    case STATUS_AGENT:
        return handle_status_agent(self, body, length, now_ns);
    case STATUS:
        return handle_status(self, body, length, now_ns);
    case INFO:
        /* Request, object, status, then what an agent says of the session: 0, it has none with us. */
        if (length < 6) return false;
        if (body[5] == 0) self->restart = true;
        return true;
    case DATA:
        return handle_sample(self, body, length, now_ns);
    case ACKNACK:
        return handle_acknack(self, body, length, now_ns);
    case TIMESTAMP_REPLY:
        return handle_timestamp_reply(self, body, length, now_ns);
    default:
        return false;
    }
}

/* A piece of a submessage that fits no message. */
static bool handle_fragment(noctule_client_t *self, const uint8_t *body, uint32_t length, bool last, int64_t now_ns) {
    bool good = true;
    if (self->large_dropped || length > self->config.large_bytes - self->large_length) {
        if (!self->large_dropped) self->counts.too_large_samples++;
        self->large_dropped = true;
    } else {
        put_payload(self->large + self->large_length, body, length);
        self->large_length += length;
    }
    if (!last) return true;
    if (!self->large_dropped) {
        const uint32_t room = self->large_length < SUBMESSAGE ? 0 : self->large_length - SUBMESSAGE;
        const uint32_t said = self->large_length < SUBMESSAGE ? 0 : take16(self->large + 2);
        /* A length of 0 is that of a sample whose length 16 bits cannot say. */
        good = self->large_length >= SUBMESSAGE && said <= room && self->large[1] & LITTLE &&
               handle_submessage(self, self->large[0], self->large + SUBMESSAGE, said == 0 ? room : said, now_ns);
    }
    self->large_length = 0;
    self->large_dropped = false;
    return good;
}

static bool handle_heartbeat(noctule_client_t *self, const uint8_t *body, uint32_t length) {
    uint16_t end, i;
    int16_t gap;
    if (length < 5 || body[4] != RELIABLE) return false;
    end = (uint16_t)(take16(body + 2) + 1);
    if (ahead(end, self->in_end) > 0) self->in_end = end;
    gap = ahead(take16(body), self->in_next);
    if (gap > 0) {
        /* The agent has given up messages; a sample of which they were fragments is gone with them. */
        for (i = 0; i < self->config.slots_in && i < gap; i++)
            self->in_length[(self->in_next + i) & (self->config.slots_in - 1)] = 0;
        self->in_next = take16(body);
        self->counts.lost_messages += (uint16_t)gap;
        self->large_dropped = self->large_dropped || self->large_length > 0;
    }
    if (ahead(self->in_next, self->in_end) > 0) self->in_end = self->in_next;
    self->ack_due = true;
    return true;
}

/* The submessages of one message, each on a multiple of four bytes. */
static void handle_submessages(noctule_client_t *self, const uint8_t *message, uint32_t length, int64_t now_ns) {
    uint32_t at = HEADER;
    const bool reliable = message[1] == RELIABLE;
    while (at + SUBMESSAGE <= length) {
        const uint8_t id = message[at], flags = message[at + 1];
        uint32_t size = take16(message + at + 2);
        const uint8_t *body = message + at + SUBMESSAGE;
        bool good = flags & LITTLE;
        at += SUBMESSAGE;
        if (id == DATA && size == 0) size = length - at;
        if (size > length - at) good = false;
        if (good && id == FRAGMENT)
            good = reliable && handle_fragment(self, body, size, flags & LAST_FRAGMENT, now_ns);
        else if (good && id == HEARTBEAT && in_session(self))
            good = handle_heartbeat(self, body, size);
        else if (good)
            good = handle_submessage(self, id, body, size, now_ns);
        if (!good) {
            self->counts.malformed++;
            return;
        }
        at = aligned(at + size);
    }
}

/* Hands over every stored message that is next. */
static void handle_stored(noctule_client_t *self, int64_t now_ns) {
    const uint16_t mask = (uint16_t)(self->config.slots_in - 1);
    while (self->config.slots_in > 0 && self->in_length[self->in_next & mask] > 0) {
        const uint16_t index = self->in_next & mask, length = self->in_length[index];
        self->in_length[index] = 0;
        self->in_next++;
        handle_submessages(self, self->slots_in + (size_t)index * self->config.message_bytes, length, now_ns);
    }
}

static void handle_reliable(noctule_client_t *self, const uint8_t *message, uint32_t length, int64_t now_ns) {
    const uint16_t number = take16(message + 2);
    const int16_t distance = ahead(number, self->in_next);
    self->ack_due = true;
    if (distance < 0) {
        self->counts.repeated_messages++;
        return;
    }
    if (ahead((uint16_t)(number + 1), self->in_end) > 0) self->in_end = (uint16_t)(number + 1);
    if (distance == 0) {
        self->in_next++;
        handle_submessages(self, message, length, now_ns);
        handle_stored(self, now_ns);
        return;
    }
    if (distance < self->config.slots_in && length <= self->config.message_bytes) {
        const uint16_t index = number & (self->config.slots_in - 1);
        if (self->in_length[index] > 0)
            self->counts.repeated_messages++;
        else
            memcpy(self->slots_in + (size_t)index * self->config.message_bytes, message, length);
        self->in_length[index] = (uint16_t)length;
        return;
    }
    self->counts.unstorable_messages++;
}

static void handle_best_effort(noctule_client_t *self, const uint8_t *message, uint32_t length, int64_t now_ns) {
    const uint16_t number = take16(message + 2);
    const int16_t distance = ahead(number, self->best_effort_in);
    if (distance < 0) {
        self->counts.repeated_messages++;
        return;
    }
    self->counts.lost_messages += (uint16_t)distance;
    self->best_effort_in = (uint16_t)(number + 1);
    handle_submessages(self, message, length, now_ns);
}

static void handle_message(noctule_client_t *self, const uint8_t *message, size_t length, int64_t now_ns) {
    if (self->state == NOCTULE_CLOSED) return;
    /* A message is at most as long as the limit that CREATE_CLIENT announced. */
    if (length < HEADER + SUBMESSAGE || length > self->config.message_bytes || message[0] != SESSION) {
        self->counts.malformed++;
        return;
    }
    if (message[1] == 0) {
        self->heard_ns = now_ns;
        handle_submessages(self, message, (uint32_t)length, now_ns);
        if (in_session(self)) handle_stored(self, now_ns);
        return;
    }
    /* A leftover of an older session. */
    if (!in_session(self)) return;
    self->heard_ns = now_ns;
    if (message[1] == RELIABLE)
        handle_reliable(self, message, (uint32_t)length, now_ns);
    else if (message[1] == BEST_EFFORT)
        handle_best_effort(self, message, (uint32_t)length, now_ns);
    else
        self->counts.malformed++;
}

bool noctule_client_handle_bytes(noctule_client_t *self, const uint8_t *bytes, size_t length, int64_t now_ns) {
    bool handled = false;
    self->counts.bytes_in += (uint32_t)length;
    for (; length > 0; length--) {
        if (!take_frame_byte(self, *bytes++)) continue;
        handle_message(self, self->incoming, self->deframer.expected, now_ns);
        handled = true;
    }
    return handled;
}

void noctule_client_handle_datagram(noctule_client_t *self, const uint8_t *bytes, size_t length, int64_t now_ns) {
    self->counts.bytes_in += (uint32_t)length;
    handle_message(self, bytes, length, now_ns);
}

const char *noctule_client_error_text(noctule_client_error_t error) {
    switch (error) {
    case NOCTULE_CLIENT_OK:
        return "no error";
    case NOCTULE_CLIENT_NOT_READY:
        return "no agent has made this endpoint yet; try again later";
    case NOCTULE_CLIENT_FULL:
        return "no room until the line or the agent has taken what waits; poll, and try again later";
    case NOCTULE_CLIENT_TOO_LARGE:
        return "the sample does not fit; take larger messages, or more slots and a reliable endpoint";
    case NOCTULE_CLIENT_WRONG_ENDPOINT:
        return "this number is not that of a publisher in the configuration";
    case NOCTULE_CLIENT_NO_ROOM:
        return "the buffer is too small; give NOCTULE_CLIENT_TRANSMIT_BYTES(message_bytes)";
    case NOCTULE_CLIENT_KEY_IS_ZERO:
        return "the key is 0; give each client of an agent a number of its own";
    case NOCTULE_CLIENT_MESSAGE_BYTES:
        return "message_bytes is not a multiple of 4 from NOCTULE_CLIENT_MESSAGE_MIN to NOCTULE_CLIENT_MESSAGE_MAX";
    case NOCTULE_CLIENT_SLOTS:
        return "slots are not a power of two up to NOCTULE_CLIENT_SLOTS_MAX, with at least one outgoing";
    case NOCTULE_CLIENT_MEMORY:
        return "memory is smaller than NOCTULE_CLIENT_MEMORY_BYTES says";
    case NOCTULE_CLIENT_ENDPOINTS:
        return "more endpoints than NOCTULE_CLIENT_ENDPOINTS_MAX";
    case NOCTULE_CLIENT_NAME_TOO_LONG:
        return "a topic with its type, or the participant's name, does not fit one message";
    }
    return "unknown error";
}
