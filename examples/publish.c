/* Publishes each line of standard input on the topic `hello`. */

#include <noctule/noctule.h>
#include <stdio.h>
#include <string.h>

int main(void) {
    noctule_node_t *node;
    noctule_publisher_t *publisher;
    if (noctule_node_open("talker", NULL, &node) < 0 || noctule_publisher_open(node, "hello", NULL, &publisher) < 0)
        return fprintf(stderr, "%s\n", noctule_last_error()), 1;
    for (char line[256]; fgets(line, sizeof line, stdin) != NULL;) noctule_publish(publisher, line, strcspn(line, "\n"));
    noctule_publisher_close(publisher), noctule_node_close(node);
}
