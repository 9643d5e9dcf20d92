/* noctule_line.h: the lines of the Noctule peer protocol (docs/spec/peer-protocol.md, section 1).
 *
 * A line is a verb and key=value words. Reading never allocates: one line and one input buffer of the
 * largest size exist, and what does not fit is refused. Part of noctule_peer.h, which includes it. */
#ifndef NOCTULE_LINE_H
#define NOCTULE_LINE_H

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define NP_LINE_BYTES 8192                      /* longest line of the protocol */
#define NP_WORDS 128                            /* words of a line that are looked at */

struct np_line { /* offsets, so that a copy stays whole */
    char text[NP_LINE_BYTES + 1];
    int words;
    struct { uint16_t key, value; } word[NP_WORDS]; /* word 0 is the verb */
};

static const char *np_value(const struct np_line *line, const char *key) {
    for (int i = 1; i < line->words; i++)
        if (strcmp(line->text + line->word[i].key, key) == 0) return line->text + line->word[i].value;
    return NULL;
}

static bool np_listed(const char *list, const char *word) {
    size_t length = strlen(word);
    for (const char *at = list; at; at = strchr(at, ',')) {
        if (*at == ',') at++;
        if (strncmp(at, word, length) == 0 && (at[length] == 0 || at[length] == ',')) return length > 0;
    }
    return false;
}

static void np_escape(char *to, size_t room, const char *from) {
    size_t n = 0;
    for (; *from && n + 4 < room; from++) {
        if (*from != ' ' && *from != '\n' && *from != '%') to[n++] = *from;
        else n += (size_t)snprintf(to + n, room - n, *from == '%' ? "%%25" : "%%20");
    }
    to[n] = 0;
}

static struct { char bytes[NP_LINE_BYTES]; size_t length; bool ended, skipping; } np_input;

static void np_unescape(char *text) {
    char *to = text;
    for (; *text; text++, to++) {
        bool escape = text[0] == '%' && text[1] == '2' && (text[2] == '0' || text[2] == '5');
        *to = escape && text[2] == '0' ? ' ' : *text;
        if (escape) text += 2;
    }
    *to = 0;
}

static void np_parse(struct np_line *line) {
    char *rest = NULL;
    memset(line->word, 0, sizeof line->word[0]); /* the verb; an empty line has the verb "" */
    line->words = 0;
    char *word = strtok_r(line->text, " \r", &rest);
    for (; word && line->words < NP_WORDS; word = strtok_r(NULL, " \r", &rest)) {
        char *value = strchr(word, '=');
        if (value) *value++ = 0;
        else value = word + strlen(word);
        np_unescape(value);
        line->word[line->words].key = (uint16_t)(word - line->text);
        line->word[line->words++].value = (uint16_t)(value - line->text);
    }
}

/* 1: a line, 0: none yet (only if !wait), -1: end of file, -2: a line was too long and is gone. */
static int np_read_line(struct np_line *line, bool wait) {
    for (;;) {
        char *end = (char *)memchr(np_input.bytes, '\n', np_input.length);
        if (end) {
            size_t length = (size_t)(end - np_input.bytes);
            bool skipped = np_input.skipping;
            memcpy(line->text, np_input.bytes, length);
            line->text[length] = 0;
            np_input.length -= length + 1;
            memmove(np_input.bytes, end + 1, np_input.length);
            np_input.skipping = false;
            if (skipped) return -2;
            np_parse(line);
            return 1;
        }
        if (np_input.length == NP_LINE_BYTES) np_input.skipping = true, np_input.length = 0;
        if (np_input.ended) return -1;
        struct pollfd ready = { 0, POLLIN, 0 };
        if (!wait && poll(&ready, 1, 0) <= 0) return 0;
        ssize_t got = read(0, np_input.bytes + np_input.length, NP_LINE_BYTES - np_input.length);
        if (got > 0) np_input.length += (size_t)got;
        else if (got == 0 || errno != EINTR) np_input.ended = true;
    }
}

#endif
