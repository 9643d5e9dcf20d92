/* noctule_body.h: what lies between header and trailer of a message (docs/spec/peer-protocol.md, section 2), read whole.
 *
 * A payload that is not read costs the reader nothing, and a middleware that only lends it looks faster than it is;
 * `touch=full` has every byte read. Eight at a time, without a branch, so that memory is what it costs. */
#ifndef NOCTULE_BODY_H
#define NOCTULE_BODY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Reads every byte of a body; true if all are as noctule_fill wrote them. */
static bool np_body_is(const unsigned char *bytes, size_t length, unsigned char expected) {
    uint64_t pattern = expected * UINT64_C(0x0101010101010101), wrong = 0, word;
    size_t i = 0;
    for (; i + 8 <= length; i += 8) {
        memcpy(&word, bytes + i, 8);
        wrong |= word ^ pattern;
    }
    for (; i < length; i++) wrong |= bytes[i] ^ expected;
    return wrong == 0;
}

#endif
