/* topic.h: what the peer needs of the library, without its header: the harness has names of its own that begin with noctule. */
#ifndef TOPIC_H
#define TOPIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum topic_wait { TOPIC_SPIN, TOPIC_BLOCK, TOPIC_HYBRID };

struct topic_setup {
    const char *node_name;            /* node's name, for people */
    const char *publish, *subscribe;  /* topics; NULL: none */
    enum topic_wait wait;
    uint32_t payload_bytes, history;
    bool reliable, keep_all;
};

/* Where a received sample lies. */
struct topic_sample {
    const void *bytes;
    size_t length;
    int64_t age_ns;
    void *borrowed; /* for topic_release */
};

/* Functions that return int give 0 or a count, and -1 with a sentence in topic_error. */
int topic_open(const struct topic_setup *setup);
const char *topic_error(void);
const char *topic_version(void);
/* Whether this many readers, and for a subscriber a writer, are there. */
bool topic_is_matched(uint64_t readers);
/* A place for the next sample; NULL: topic_error. */
void *topic_loan(size_t length);
int topic_publish_loan(size_t length);
/* 1: a sample; 0: none within timeout_ns. */
int topic_receive(int64_t timeout_ns, struct topic_sample *sample);
void topic_release(struct topic_sample *sample);
void topic_close(void);

#endif
