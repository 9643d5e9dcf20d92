/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "scripted_agent.h"

#include <assert.h>
#include <string.h>

/* A message that no client of ours sends may be noise that passed the checksum: not taken, and counted. */
#define EXPECT(what)      \
    do {                  \
        if (!(what)) {    \
            self->ignored++; \
            return;       \
        }                 \
    } while (0)

static uint16_t le16(const uint8_t *p) { return (uint16_t)(p[0] + 256 * p[1]); }
static uint32_t le32(const uint8_t *p) { return le16(p) + 65536u * le16(p + 2); }
static uint16_t be16(const uint8_t *p) { return (uint16_t)(p[1] + 256 * p[0]); }
static int64_t time_of(const uint8_t *p) { return (int64_t)le32(p) * 1000000000 + le32(p + 4); }

static void set16(uint8_t *p, uint16_t value) {
    p[0] = (uint8_t)(value % 256);
    p[1] = (uint8_t)(value / 256);
}

static void set_time(uint8_t *p, int64_t ns) {
    const uint32_t s = (uint32_t)(ns / 1000000000), n = (uint32_t)(ns % 1000000000);
    set16(p, (uint16_t)s);
    set16(p + 2, (uint16_t)(s >> 16));
    set16(p + 4, (uint16_t)n);
    set16(p + 6, (uint16_t)(n >> 16));
}

void agent_init(agent_t *self, bool noctule) {
    memset(self, 0, sizeof *self);
    self->noctule = noctule;
}

/* One submessage in a message of its own. */
static void send_control(agent_t *self, uint8_t id, const uint8_t *body, uint16_t length) {
    uint8_t message[64] = {0x81, 0, 0, 0, id, 1};
    set16(message + 6, length);
    memcpy(message + 8, body, length);
    self->send(self->context, message, 8u + length);
}

static void send_acknack(agent_t *self) {
    uint8_t body[5] = {0, 0, 0, 0, 0x80};
    uint16_t i;
    set16(body, self->in_next);
    for (i = 0; i < 16; i++) {
        const uint16_t number = (uint16_t)(self->in_next + i);
        if ((int16_t)(self->in_end - number) > 0 && !self->in_present[number % 16])
            body[i < 8 ? 3 : 2] = (uint8_t)(body[i < 8 ? 3 : 2] | 1 << i % 8);
    }
    send_control(self, 10, body, 5);
}

static void push(agent_t *self, const uint8_t *submessage, uint16_t length) {
    agent_message_t *message = &self->pending[self->out_end % AGENT_PENDING];
    assert((uint16_t)(self->out_end - self->out_first) < AGENT_PENDING);
    message->bytes[0] = 0x81;
    message->bytes[1] = 0x80;
    set16(message->bytes + 2, self->out_end);
    memcpy(message->bytes + 4, submessage, length);
    message->length = (uint16_t)(4 + length);
    self->out_end++;
}

static void flush(agent_t *self, int64_t now_ns) {
    while (self->out_sent != self->out_end && (uint16_t)(self->out_sent - self->out_first) < AGENT_WINDOW) {
        agent_message_t *message = &self->pending[self->out_sent++ % AGENT_PENDING];
        message->sent_ns = self->heartbeat_ns = now_ns;
        self->send(self->context, message->bytes, message->length);
    }
}

static agent_object_t *object(agent_t *self, uint16_t id) {
    uint16_t i;
    for (i = 0; i < self->object_count; i++)
        if (self->objects[i].id == id) return &self->objects[i];
    return NULL;
}

static void create(agent_t *self, const uint8_t *body) {
    uint8_t reply[10] = {5, 1, 6, 0};
    const uint16_t id = be16(body + 2);
    agent_object_t *made = object(self, id);
    EXPECT(body[5] == 3 && body[4] == (id & 15) && (body[4] != 2 || le32(body + 12) < sizeof made->name));
    if (made == NULL) {
        EXPECT(self->object_count < AGENT_OBJECTS);
        made = &self->objects[self->object_count++];
    }
    memset(made, 0, sizeof *made);
    made->id = id;
    if (body[4] == 2) memcpy(made->name, body + 16, le32(body + 12));
    if (body[4] == 5 || body[4] == 6) made->topic = be16(body + 12);
    memcpy(reply + 4, body, 4);
    if (self->refuse_request == be16(body)) reply[8] = 0x81;
    push(self, reply, sizeof reply);
}

static void write_data(agent_t *self, const uint8_t *body, uint32_t length, int64_t now_ns) {
    const agent_object_t *writer = object(self, be16(body + 2));
    const agent_object_t *topic = writer == NULL ? NULL : object(self, writer->topic);
    (void)now_ns;
    if (topic == NULL) {
        self->ignored++;
        return;
    }
    self->writes++;
    self->last_stamp_ns = self->stamp_ns[self->in_reliable];
    self->stamp_ns[self->in_reliable] = 0;
    if (self->on_write != NULL) self->on_write(self->context, topic->name, body + 4, length - 4);
}

static void acknack(agent_t *self, const uint8_t *body, int64_t now_ns) {
    const uint16_t first = le16(body), missing = be16(body + 2);
    uint16_t i;
    while ((int16_t)(first - self->out_first) > 0 && self->out_first != self->out_sent) self->out_first++;
    for (i = 0; i < 16; i++) {
        const uint16_t number = (uint16_t)(first + i);
        agent_message_t *message = &self->pending[number % AGENT_PENDING];
        if (!(missing >> i & 1) || (int16_t)(number - self->out_first) < 0 || (int16_t)(number - self->out_sent) >= 0)
            continue;
        if (now_ns - message->sent_ns < 10000000) continue;
        message->sent_ns = now_ns;
        self->send(self->context, message->bytes, message->length);
    }
    flush(self, now_ns);
}

static void submessage(agent_t *self, uint8_t id, const uint8_t *body, uint32_t length, int64_t now_ns) {
    uint8_t reply[32] = {0};
    agent_object_t *reader;
    switch (id) {
    case 1:
        create(self, body);
        break;
    case 2:
        memcpy(reply, "\0\x0A\xFF\xFD\0\1\1\x0D" "XRCE\1\0\1\x0F\0\1\x0D\0\1\0\0\0\0\0\0\0", 28);
        reply[5] = self->has_client;
        send_control(self, 6, reply, 28);
        break;
    case 3:
        memcpy(reply, body, 4);
        send_control(self, 5, reply, 6);
        self->has_client = false;
        break;
    case 7:
        write_data(self, body, length, now_ns);
        break;
    case 8:
        reader = object(self, be16(body + 2));
        if (reader == NULL) break;
        reader->reading = true;
        reader->request = be16(body);
        reader->stream = body[4];
        break;
    case 10:
        acknack(self, body, now_ns);
        break;
    case 14:
        set_time(reply, now_ns + self->clock_offset_ns);
        set_time(reply + 8, now_ns + self->clock_offset_ns);
        memcpy(reply + 16, body, 8);
        send_control(self, 15, reply, 24);
        break;
    case 15:
        self->fourths++;
        self->fourth[0] = time_of(body);
        self->fourth[1] = time_of(body + 8);
        self->fourth[2] = time_of(body + 16);
        break;
    case 0xC0:
        self->stamp_ns[self->in_reliable] = time_of(body);
        break;
    default:
        self->ignored++;
    }
}

static void submessages(agent_t *self, const uint8_t *message, size_t length, int64_t now_ns) {
    size_t at = 4;
    self->in_reliable = message[1] == 0x80;
    while (at + 4 <= length) {
        const uint8_t id = message[at], flags = message[at + 1];
        const uint32_t size = le16(message + at + 2);
        EXPECT(flags & 1 && at + 4 + size <= length);
        if (id == 13) {
            EXPECT(self->large_length + size <= sizeof self->large);
            memcpy(self->large + self->large_length, message + at + 4, size);
            self->large_length += size;
            if (flags & 2) {
                const uint32_t whole = self->large_length;
                self->large_length = 0;
                EXPECT(whole == 4u + le16(self->large + 2));
                submessage(self, self->large[0], self->large + 4, whole - 4, now_ns);
            }
        } else if (id == 11) {
            const uint16_t end = (uint16_t)(le16(message + at + 6) + 1);
            EXPECT((int16_t)(le16(message + at + 4) - self->in_next) <= 0);
            if ((int16_t)(end - self->in_end) > 0) self->in_end = end;
            send_acknack(self);
        } else {
            submessage(self, id, message + at + 4, size, now_ns);
        }
        at = (at + 4 + size + 3) / 4 * 4;
    }
}

static void create_client(agent_t *self, const uint8_t *body) {
    static const uint8_t accepted[11] = {0, 0, 'X', 'R', 'C', 'E', 1, 0, 1, 0x0F, 0};
    uint8_t reply[11];
    uint16_t i;
    EXPECT(memcmp(body, "XRCE\1\0", 6) == 0 && body[12] == 0x81);
    EXPECT(le16(body + 14) >= 64 && le16(body + 14) <= AGENT_MESSAGE_MAX);
    if (!self->has_client || self->key != le32(body + 8)) self->object_count = 0;
    for (i = 0; i < self->object_count; i++) self->objects[i].reading = false;
    self->key = le32(body + 8);
    self->has_client = true;
    self->mtu = le16(body + 14);
    self->sessions++;
    self->in_next = self->in_end = self->best_effort_in = self->best_effort_out = 0;
    self->out_first = self->out_sent = self->out_end = 0;
    self->large_length = 0;
    memset(self->in_present, 0, sizeof self->in_present);
    memcpy(reply, accepted, sizeof reply);
    if (self->noctule && memcmp(body + 6, "NC", 2) == 0) memcpy(reply + 8, "NC", 2);
    send_control(self, 4, reply, 11);
}

static void reliable(agent_t *self, const uint8_t *message, size_t length, int64_t now_ns) {
    const uint16_t number = le16(message + 2);
    const int16_t distance = (int16_t)(number - self->in_next);
    agent_message_t *stored = &self->in_stored[number % 16];
    EXPECT(distance < 16 && length <= AGENT_MESSAGE_MAX);
    if ((int16_t)(number + 1 - self->in_end) > 0) self->in_end = (uint16_t)(number + 1);
    if (distance >= 0) {
        memcpy(stored->bytes, message, length);
        stored->length = (uint16_t)length;
        self->in_present[number % 16] = true;
    }
    while (self->in_present[self->in_next % 16]) {
        stored = &self->in_stored[self->in_next % 16];
        self->in_present[self->in_next % 16] = false;
        self->in_next++;
        submessages(self, stored->bytes, stored->length, now_ns);
    }
    send_acknack(self);
}

void agent_handle(agent_t *self, const uint8_t *message, size_t length, int64_t now_ns) {
    if (length < 8) return;
    if (message[0] == 0x80) {
        if (message[4] == 0 && length >= 24) create_client(self, message + 8);
        return;
    }
    if (!self->has_client) {
        if (message[1] == 0 && (message[4] == 2 || message[4] == 3)) submessages(self, message, length, now_ns);
        return;
    }
    if (message[1] == 0x80) {
        reliable(self, message, length, now_ns);
    } else if (message[1] == 0) {
        submessages(self, message, length, now_ns);
    } else if ((int16_t)(le16(message + 2) - self->best_effort_in) >= 0) {
        self->best_effort_in = (uint16_t)(le16(message + 2) + 1);
        submessages(self, message, length, now_ns);
    }
    flush(self, now_ns);
}

static void send_sample(agent_t *self, const agent_object_t *reader, const uint8_t *bytes, uint32_t length) {
    static uint8_t whole[AGENT_LARGE];
    uint8_t piece[AGENT_MESSAGE_MAX];
    const uint32_t total = 8 + length, room = (self->mtu - 8u) / 4 * 4;
    uint32_t at, now;
    whole[0] = 9;
    whole[1] = 1;
    set16(whole + 2, (uint16_t)(4 + length));
    whole[4] = (uint8_t)(reader->request >> 8);
    whole[5] = (uint8_t)reader->request;
    whole[6] = (uint8_t)(reader->id >> 8);
    whole[7] = (uint8_t)reader->id;
    memcpy(whole + 8, bytes, length);
    if (reader->stream != 0x80) {
        uint8_t message[AGENT_MESSAGE_MAX] = {0x81, 1};
        assert(total + 4 <= self->mtu);
        set16(message + 2, self->best_effort_out++);
        memcpy(message + 4, whole, total);
        self->send(self->context, message, 4 + total);
        return;
    }
    if (total + 4 <= self->mtu) {
        push(self, whole, (uint16_t)total);
        return;
    }
    for (at = 0; at < total; at += now) {
        now = total - at < room ? total - at : room;
        piece[0] = 13;
        piece[1] = (uint8_t)(at + now == total ? 3 : 1);
        set16(piece + 2, (uint16_t)now);
        memcpy(piece + 4, whole + at, now);
        push(self, piece, (uint16_t)(4 + now));
    }
}

bool agent_publish(agent_t *self, const char *topic, const uint8_t *bytes, uint32_t length, int64_t now_ns) {
    uint16_t i;
    bool sent = false;
    if (!self->has_client || (uint16_t)(self->out_end - self->out_first) > AGENT_PENDING - 160) return false;
    for (i = 0; i < self->object_count; i++) {
        const agent_object_t *reader = &self->objects[i], *of = object(self, reader->topic);
        if ((reader->id & 15) != 6 || !reader->reading || of == NULL || strcmp(of->name, topic) != 0) continue;
        send_sample(self, reader, bytes, length);
        sent = true;
    }
    flush(self, now_ns);
    return sent;
}

void agent_handle_timeout(agent_t *self, int64_t now_ns) {
    uint8_t body[5] = {0, 0, 0, 0, 0x80};
    if (!self->has_client || self->out_first == self->out_sent || now_ns - self->heartbeat_ns < 50000000) return;
    self->heartbeat_ns = now_ns;
    set16(body, self->out_first);
    set16(body + 2, (uint16_t)(self->out_sent - 1));
    send_control(self, 11, body, 5);
}

int64_t agent_next_timeout(const agent_t *self) {
    return !self->has_client || self->out_first == self->out_sent ? INT64_MAX : self->heartbeat_ns + 50000000;
}

/* ---- frames ---- */

static uint16_t crc_arc(const uint8_t *bytes, size_t length) {
    uint16_t crc = 0;
    int bit;
    for (; length > 0; length--) {
        crc ^= *bytes++;
        for (bit = 0; bit < 8; bit++) crc = (uint16_t)(crc & 1 ? crc >> 1 ^ 0xA001 : crc >> 1);
    }
    return crc;
}

size_t agent_frame(const uint8_t *message, size_t length, uint8_t source, uint8_t destination, uint8_t *out) {
    uint8_t plain[AGENT_MESSAGE_MAX + 6];
    size_t i, n = 0;
    plain[0] = source;
    plain[1] = destination;
    set16(plain + 2, (uint16_t)length);
    memcpy(plain + 4, message, length);
    set16(plain + 4 + length, crc_arc(message, length));
    out[n++] = 0x7E;
    for (i = 0; i < length + 6; i++) {
        if (plain[i] == 0x7E || plain[i] == 0x7D) {
            out[n++] = 0x7D;
            out[n++] = plain[i] ^ 0x20;
        } else {
            out[n++] = plain[i];
        }
    }
    return n;
}

bool agent_deframe(agent_deframer_t *self, uint8_t byte, size_t *length) {
    if (byte == 0x7E) {
        self->in_frame = true;
        self->escape = false;
        self->length = 0;
        return false;
    }
    if (!self->in_frame) return false;
    if (byte == 0x7D) {
        self->escape = true;
        return false;
    }
    if (self->escape) byte ^= 0x20;
    self->escape = false;
    self->bytes[self->length++] = byte;
    if (self->length < 4) return false;
    *length = le16(self->bytes + 2);
    if (*length > AGENT_MESSAGE_MAX) self->in_frame = false;
    if (!self->in_frame || self->length < *length + 6) return false;
    self->in_frame = false;
    return crc_arc(self->bytes + 4, *length) == le16(self->bytes + 4 + *length);
}
