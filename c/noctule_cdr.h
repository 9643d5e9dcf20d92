/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * CDR, XCDR version 1 (DDS-XTypes 1.3, 7.4.3.2; docs/spec/formats.md): what goes into a sample.
 *
 * C99, no heap, no globals, no recursion; for hosts and microcontrollers. What is written is little-endian, what is read may be of
 * either order. All functions are here, so that a program holds only those that it calls.
 *
 * Not trusted: every byte that is read. No number among them is used as a size before it is compared with what is there.
 */
#ifndef NOCTULE_CDR_H
#define NOCTULE_CDR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Of what every type begins with there is one copy in a program's file, however many types it has. */
#if defined(__GNUC__)
#define NOCTULE_CDR_SHARED static __attribute__((noinline, unused))
#else
#define NOCTULE_CDR_SHARED static inline
#endif

/* Writes values one after the other, each aligned to its size from the first byte. After a value that had no room
 * `failed` is set and nothing more is written; look once, at the end. */
typedef struct {
    uint8_t *bytes;
    uint32_t capacity;
    uint32_t length;
    bool failed;
} noctule_cdr_writer_t;

/* Reads them. After a value that is not there whole `failed` is set and every value is zero. */
typedef struct {
    const uint8_t *bytes;
    uint32_t length;
    uint32_t at;
    bool failed;
    bool big_endian; /* Of the bytes; noctule_cdr_reader says false, noctule_cdr_begin what their header says. */
} noctule_cdr_reader_t;

/* A string of any length, somewhere else; not ended by NUL. */
typedef struct {
    const char *text;
    uint32_t length; /* In bytes. */
} noctule_text_t;

/* Memory that a decoder takes what has no bound from, in order. Free it, or set `used` to 0, when the values are done with. */
typedef struct {
    uint8_t *bytes; /* Aligned to 8. */
    size_t capacity;
    size_t used;
} noctule_memory_t;

/* Room for a value of `size` bytes at its alignment, padding zeroed; NULL if there is none. */
static inline uint8_t *noctule_cdr_room(noctule_cdr_writer_t *self, uint32_t size, uint32_t alignment) {
    const uint32_t pad = (0u - self->length) & (alignment - 1u);
    uint8_t *at = self->bytes + self->length;
    if (self->failed || pad > self->capacity - self->length || size > self->capacity - self->length - pad) {
        self->failed = true;
        return NULL;
    }
    memset(at, 0, pad);
    self->length += pad + size;
    return at + pad;
}

/* The size before the value: so all three lie in registers where a pair begins with an even one, as on ARM. */
static inline void noctule_cdr_put(noctule_cdr_writer_t *self, uint32_t size, uint64_t value) {
    uint8_t *at = noctule_cdr_room(self, size, size);
    if (at == NULL) return;
    for (; size > 0; size--, value >>= 8) *at++ = (uint8_t)value;
}

/* The next `size` bytes at their alignment where they lie; NULL if they are not there. */
static inline const uint8_t *noctule_cdr_part(noctule_cdr_reader_t *self, uint32_t size, uint32_t alignment) {
    const uint32_t pad = (0u - self->at) & (alignment - 1u);
    const uint8_t *at = self->bytes + self->at;
    if (self->failed || pad > self->length - self->at || size > self->length - self->at - pad) {
        self->failed = true;
        return NULL;
    }
    self->at += pad + size;
    return at + pad;
}

static inline uint64_t noctule_cdr_take(noctule_cdr_reader_t *self, uint32_t size) {
    const uint8_t *at = noctule_cdr_part(self, size, size);
    uint64_t value = 0;
    uint32_t i;
    if (at == NULL) return 0;
    for (i = 0; i < size; i++) value = value << 8 | at[self->big_endian ? i : size - 1 - i];
    return value;
}

static inline noctule_cdr_writer_t noctule_cdr_writer(uint8_t *bytes, uint32_t capacity) {
    noctule_cdr_writer_t writer = {bytes, capacity, 0, false};
    return writer;
}

/* A writer of a sample, its header written: CDR, little-endian. Failed if there is no room for that. */
NOCTULE_CDR_SHARED noctule_cdr_writer_t noctule_cdr_sample(uint8_t *sample, uint32_t capacity) {
    noctule_cdr_writer_t writer = noctule_cdr_writer(sample, 0);
    if (capacity < 4) {
        writer.failed = true;
        return writer;
    }
    memcpy(sample, "\0\1\0", 4);
    return noctule_cdr_writer(sample + 4, capacity - 4);
}

/* Bytes of a sample with its header; 0 if something had no room. */
static inline uint32_t noctule_cdr_sample_length(const noctule_cdr_writer_t *self) {
    return self->failed ? 0 : self->length + 4;
}

static inline void noctule_cdr_put_u8(noctule_cdr_writer_t *self, uint8_t value) { noctule_cdr_put(self, 1, value); }
static inline void noctule_cdr_put_u16(noctule_cdr_writer_t *self, uint16_t value) { noctule_cdr_put(self, 2, value); }
static inline void noctule_cdr_put_u32(noctule_cdr_writer_t *self, uint32_t value) { noctule_cdr_put(self, 4, value); }
static inline void noctule_cdr_put_u64(noctule_cdr_writer_t *self, uint64_t value) { noctule_cdr_put(self, 8, value); }
static inline void noctule_cdr_put_i8(noctule_cdr_writer_t *self, int8_t value) { noctule_cdr_put(self, 1, (uint8_t)value); }
static inline void noctule_cdr_put_i16(noctule_cdr_writer_t *self, int16_t value) { noctule_cdr_put(self, 2, (uint16_t)value); }
static inline void noctule_cdr_put_i32(noctule_cdr_writer_t *self, int32_t value) { noctule_cdr_put(self, 4, (uint32_t)value); }
static inline void noctule_cdr_put_i64(noctule_cdr_writer_t *self, int64_t value) { noctule_cdr_put(self, 8, (uint64_t)value); }
static inline void noctule_cdr_put_bool(noctule_cdr_writer_t *self, bool value) { noctule_cdr_put(self, 1, value ? 1 : 0); }

static inline void noctule_cdr_put_f32(noctule_cdr_writer_t *self, float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    noctule_cdr_put(self, 4, bits);
}

static inline void noctule_cdr_put_f64(noctule_cdr_writer_t *self, double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    noctule_cdr_put(self, 8, bits);
}

/* Bytes as they are, without alignment and without a count: the elements of an array of octets. */
static inline void noctule_cdr_put_bytes(noctule_cdr_writer_t *self, const uint8_t *bytes, uint32_t length) {
    uint8_t *at = noctule_cdr_room(self, length, 1);
    if (at != NULL && length > 0) memcpy(at, bytes, length);
}

/* A text of at most `bound` bytes; any number for UINT32_MAX. A NUL in it is refused. */
static inline void noctule_cdr_put_text(noctule_cdr_writer_t *self, const char *text, uint32_t length, uint32_t bound) {
    if (length > bound || length == UINT32_MAX || (length > 0 && memchr(text, 0, length) != NULL)) {
        self->failed = true;
        return;
    }
    noctule_cdr_put(self, 4, length + 1u);
    noctule_cdr_put_bytes(self, (const uint8_t *)text, length);
    noctule_cdr_put(self, 1, 0);
}

static inline void noctule_cdr_put_string(noctule_cdr_writer_t *self, const char *text) {
    const size_t length = strlen(text) + 1;
    if (length > self->capacity) {
        self->failed = true;
        return;
    }
    noctule_cdr_put(self, 4, length);
    noctule_cdr_put_bytes(self, (const uint8_t *)text, (uint32_t)length);
}

/* The text in a field of `size` bytes, which ends with a NUL. */
static inline void noctule_cdr_put_chars(noctule_cdr_writer_t *self, const char *text, uint32_t size) {
    const char *end = (const char *)memchr(text, 0, size);
    if (end == NULL) {
        self->failed = true;
        return;
    }
    noctule_cdr_put_text(self, text, (uint32_t)(end - text), size - 1);
}

static inline noctule_cdr_reader_t noctule_cdr_reader(const uint8_t *bytes, uint32_t length) {
    noctule_cdr_reader_t reader = {bytes, length, 0, false, false};
    return reader;
}

/* A reader of a sample that begins with the header of its representation; failed if that is not plain CDR. */
NOCTULE_CDR_SHARED noctule_cdr_reader_t noctule_cdr_begin(const uint8_t *sample, uint32_t length) {
    noctule_cdr_reader_t reader = noctule_cdr_reader(sample, 0);
    if (length < 4 || sample[0] != 0 || sample[1] > 1) {
        reader.failed = true;
        return reader;
    }
    reader = noctule_cdr_reader(sample + 4, length - 4);
    reader.big_endian = sample[1] == 0;
    return reader;
}

/* True if all was read and nothing follows but what a transport pads. */
static inline bool noctule_cdr_is_done(const noctule_cdr_reader_t *self) {
    return !self->failed && self->length - self->at <= 3;
}

static inline uint8_t noctule_cdr_take_u8(noctule_cdr_reader_t *self) { return (uint8_t)noctule_cdr_take(self, 1); }
static inline uint16_t noctule_cdr_take_u16(noctule_cdr_reader_t *self) { return (uint16_t)noctule_cdr_take(self, 2); }
static inline uint32_t noctule_cdr_take_u32(noctule_cdr_reader_t *self) { return (uint32_t)noctule_cdr_take(self, 4); }
static inline uint64_t noctule_cdr_take_u64(noctule_cdr_reader_t *self) { return noctule_cdr_take(self, 8); }
static inline int8_t noctule_cdr_take_i8(noctule_cdr_reader_t *self) { return (int8_t)noctule_cdr_take(self, 1); }
static inline int16_t noctule_cdr_take_i16(noctule_cdr_reader_t *self) { return (int16_t)noctule_cdr_take(self, 2); }
static inline int32_t noctule_cdr_take_i32(noctule_cdr_reader_t *self) { return (int32_t)noctule_cdr_take(self, 4); }
static inline int64_t noctule_cdr_take_i64(noctule_cdr_reader_t *self) { return (int64_t)noctule_cdr_take(self, 8); }

/* One byte, 0 or 1; anything else is refused. */
static inline bool noctule_cdr_take_bool(noctule_cdr_reader_t *self) {
    const uint64_t value = noctule_cdr_take(self, 1);
    if (value > 1) self->failed = true;
    return value == 1;
}

static inline float noctule_cdr_take_f32(noctule_cdr_reader_t *self) {
    const uint32_t bits = (uint32_t)noctule_cdr_take(self, 4);
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline double noctule_cdr_take_f64(noctule_cdr_reader_t *self) {
    const uint64_t bits = noctule_cdr_take(self, 8);
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline const uint8_t *noctule_cdr_take_bytes(noctule_cdr_reader_t *self, uint32_t length) {
    return noctule_cdr_part(self, length, 1);
}

/* The text in place, with its NUL, and its length without it; NULL if it is not there whole or not ended by NUL. */
static inline const char *noctule_cdr_take_string(noctule_cdr_reader_t *self, uint32_t *length) {
    const uint32_t with_nul = noctule_cdr_take_u32(self);
    const uint8_t *text = noctule_cdr_take_bytes(self, with_nul);
    *length = 0;
    if (text == NULL || with_nul == 0 || text[with_nul - 1] != 0) {
        self->failed = true;
        return NULL;
    }
    *length = with_nul - 1;
    return (const char *)text;
}

/* A text of at most `bound` bytes where it lies; empty if it is refused. Some writers send an empty one without its NUL. */
static inline noctule_text_t noctule_cdr_take_text(noctule_cdr_reader_t *self, uint32_t bound) {
    noctule_text_t text = {"", 0};
    const uint32_t with_nul = noctule_cdr_take_u32(self);
    const uint8_t *bytes = noctule_cdr_take_bytes(self, with_nul);
    if (self->failed || with_nul == 0) return text;
    if (bytes[with_nul - 1] != 0 || with_nul - 1 > bound || memchr(bytes, 0, with_nul - 1) != NULL) {
        self->failed = true;
        return text;
    }
    text.text = (const char *)bytes;
    text.length = with_nul - 1;
    return text;
}

/* A text into a field of `size` bytes, NUL and zeros behind it. */
static inline void noctule_cdr_take_chars(noctule_cdr_reader_t *self, char *field, uint32_t size) {
    const noctule_text_t text = noctule_cdr_take_text(self, size - 1);
    memset(field, 0, size);
    memcpy(field, text.text, text.length);
}

/* The count of a sequence of at most `bound` elements, each of a byte at least; 0 if it is refused. */
static inline uint32_t noctule_cdr_take_count(noctule_cdr_reader_t *self, uint32_t bound) {
    const uint32_t count = noctule_cdr_take_u32(self);
    if (count > bound || count > self->length - self->at) self->failed = true;
    return self->failed ? 0 : count;
}

/* Writes the count of a sequence that may have at most `bound` elements. */
static inline void noctule_cdr_put_count(noctule_cdr_writer_t *self, uint32_t count, uint32_t bound) {
    if (count > bound) self->failed = true;
    noctule_cdr_put(self, 4, count);
}

/* Room for so many elements of this size, zeroed; NULL if there is none, or no memory at all. */
static inline void *noctule_memory_take(noctule_memory_t *self, uint32_t count, size_t size) {
    uint8_t *taken;
    size_t bytes;
    if (self == NULL || size == 0 || count > SIZE_MAX / 2 / size) return NULL;
    bytes = ((size_t)count * size + 7u) / 8u * 8u;
    if (bytes > self->capacity - self->used) return NULL;
    taken = self->bytes + self->used;
    self->used += bytes;
    memset(taken, 0, bytes);
    return taken;
}

#ifdef __cplusplus
}
#endif
#endif
