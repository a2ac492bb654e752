/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/harness/tribtest.h"

#include "base/addresses.h"
#include "base/log.h"
#include "base/unauthenticated.h"
#include "base/time.h"

static int lines;
static char last[600];

static void note(void *arg, trib_log_level_t level, const char *line)
{
    (void)arg;
    (void)level;
    lines++;
    snprintf(last, sizeof(last), "%s", line);
}

/* Ten thousand peers cause two lines: the first, and one after the pause. */
TEST(test_rate)
{
    struct trib_unauthenticated s = {0};
    struct trib_log log;

    trib_log_init(&log, TRIB_LOG_WARN, note, NULL);
    for (int i = 0; i < 10000; i++)
        trib_unauthenticated_warn(&s, &log, "tcp", trib_net_loopback, 4711,
                                  "said nothing");
    assert_int_equal(lines, 1);
    assert_non_null(
        strstr(last, "rejected an unauthenticated peer at port 4711 from 127.0.0.1"));
    assert_non_null(strstr(last, "it said nothing"));
    s.next_ns = trib_now_ns();
    trib_unauthenticated_warn(&s, &log, "tcp", NULL, 4711, "said nothing");
    assert_int_equal(lines, 2);
    assert_non_null(strstr(last, "9999 more since the last such line"));
    assert_non_null(strstr(last, "an unknown address"));
}
