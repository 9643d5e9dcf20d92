/* Sends back what the model sends, decoded and encoded by the generated C: the bytes must be the same. Writes values that are longer
 * than a model's ports, too. Ends with its input. */
#include <poll.h>
#include <stdio.h>

#include "program_echo.h"

enum { SAMPLE_BYTES = 1 << 16, LONG = 300 };

static uint8_t again[SAMPLE_BYTES], arena[1 << 20];
static noctule_memory_t memory = {arena, sizeof arena, 0};

static int failed(const char *why) { return fprintf(stderr, "%s\n", why), 1; }

static int send_back(noctule_publisher_t *to, const noctule_sample_info_t *info, uint32_t length) {
    if (length != info->length_bytes || memcmp(again, info->bytes, length) != 0) return failed("C encodes other bytes than the model");
    return noctule_publish(to, again, length) < 0 ? failed(noctule_last_error()) : 0;
}

static int echo(noctule_subscriber_t *from[2], noctule_publisher_t *to[2]) {
    static value_msgs_Rare rare;
    static value_msgs_Nested nested;
    noctule_sample_t *sample;
    noctule_sample_info_t info;
    int result = 0;
    while (result == 0 && noctule_take(from[0], &sample, &info) == NOCTULE_OK) {
        memory.used = 0;
        if (!value_msgs_Rare_decode(&rare, info.bytes, (uint32_t)info.length_bytes, &memory)) return failed("C refuses the model's Rare");
        result = send_back(to[0], &info, value_msgs_Rare_encode(&rare, again, sizeof again));
        noctule_sample_release(sample);
    }
    while (result == 0 && noctule_take(from[1], &sample, &info) == NOCTULE_OK) {
        memory.used = 0;
        if (!value_msgs_Nested_decode(&nested, info.bytes, (uint32_t)info.length_bytes, &memory)) return failed("C refuses the model's Nested");
        result = send_back(to[1], &info, value_msgs_Nested_encode(&nested, again, sizeof again));
        noctule_sample_release(sample);
    }
    return result;
}

static int publish_long(noctule_publisher_t *to) {
    static double values[LONG];
    static char text[LONG + 1];
    static value_msgs_Nested many[20];
    value_msgs_Long value;
    uint32_t i;
    /* The 128th byte is the first of an e with an accent, so that 127 fit. */
    for (i = 0; i < LONG; i++) values[i] = i / 2.0;
    memset(text, 'a', LONG);
    text[127] = '\xc3';
    text[128] = '\xa9';
    for (i = 0; i < 20; i++) value_msgs_Nested_init(&many[i]);
    value_msgs_Long_init(&value);
    value.values.count = LONG;
    value.values.data = values;
    value.text.text = text;
    value.text.length = LONG;
    value.many.count = 20;
    value.many.data = many;
    return echo_publish_tool_long(to, &value, again, sizeof again) < 0 ? failed(noctule_last_error()) : 0;
}

int main(void) {
    noctule_node_t *node;
    noctule_publisher_t *to[2], *long_one;
    noctule_subscriber_t *from[2];
    struct pollfd input = {0, POLLIN, 0};
    int result = 0;
    if (noctule_node_open("echo", NULL, &node) < 0 || echo_read_rare_there(node, &from[0]) < 0 || echo_read_nested_there(node, &from[1]) < 0 ||
        echo_open_rare_back(node, &to[0]) < 0 || echo_open_nested_back(node, &to[1]) < 0 || echo_open_tool_long(node, &long_one) < 0)
        return failed(noctule_last_error());
    while (result == 0 && poll(&input, 1, 5) == 0) {
        result = echo(from, to);
        if (result == 0) result = publish_long(long_one);
    }
    noctule_node_close(node);
    return result;
}
