/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All checks on every transport of this build, by each of its texts, plain and
 * decorated. One that needs a device is run where there is one
 * (CONFORMANCE_TRANSPORT=verbs).
 */
#include "tests/harness/tribtest.h"

#include <sys/uio.h>

#include "tests/transport/conformance.h"

enum { ROWS_MAX = 128 };

static size_t rows_of_transports(struct row rows[ROWS_MAX])
{
    size_t n = 0;

    for (size_t i = 0; trib_transports[i]; i++) {
        const struct trib_transport_text *t = trib_transports[i]->texts;
        for (; t && t->text; t++) {
            assert_true(n < ROWS_MAX);
            const unsigned decorated = strchr(t->text, '+') ? ROW_DECORATED : 0;
            rows[n++] = (struct row){.text = t->text, .flags = t->flags | decorated};
        }
    }
    return n;
}

int main(void)
{
    static struct row rows[ROWS_MAX];
    const char *text = getenv("CONFORMANCE_TRANSPORT");
    const struct row asked[] = {
        {.text = text, .flags = ROW_DEVICE},
        {.text = text, .flags = ROW_DEVICE | ROW_THREADS},
    };
    struct suite suite = {.rows = rows, .n = rows_of_transports(rows)};

    if (text)
        suite = (struct suite){.rows = asked, .n = 2};
    tribtest_deadline(900);
    return conformance_main(&suite);
}
