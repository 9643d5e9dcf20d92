/* Checks of calls for tests of the library in C: a failure is printed, counted, and does not end the test. */
#ifndef CHECK_H
#define CHECK_H

#include <noctule/noctule.h>

#include <stdio.h>
#include <string.h>

static int failures;

#define CHECK(truth)                                                                            \
    do {                                                                                        \
        if (!(truth)) {                                                                         \
            fprintf(stderr, "%s:%d: %s; last error: %s\n", __FILE__, __LINE__, #truth, noctule_last_error()); \
            failures++;                                                                         \
        }                                                                                       \
    } while (0)

/* The call failed in this way, and the sentence has this word. */
#define CHECK_FAILS(call, status, word) CHECK((call) == (status) && strstr(noctule_last_error(), (word)) != NULL)

#endif
