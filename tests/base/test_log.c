/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/harness/tribtest.h"

#include <errno.h>

#include "base/log.h"

static void keep(void *arg, trib_log_level_t level, const char *line)
{
    (void)level;
    snprintf(arg, 2048, "%s", line);
}

static void test_form_of_a_line(void **state)
{
    char line[2048] = "";
    struct trib_log log;

    (void)state;
    trib_log_init(&log, TRIB_LOG_INFO, keep, line);
    trib_log(&log, TRIB_LOG_INFO, "boot", "joined");
    assert_string_equal(line, "tributary: info: boot: joined");
    trib_log_set_rank(&log, 2);
    trib_log(&log, TRIB_LOG_WARN, "shm", "%d of %d", 3, 4);
    assert_string_equal(line, "tributary: rank 2: warning: shm: 3 of 4");
    trib_log(&log, TRIB_LOG_ERROR, "shm", "text");
    assert_string_equal(line, "tributary: rank 2: error: shm: text");
}

static void test_levels(void **state)
{
    char line[2048] = "";
    struct trib_log log;

    (void)state;
    trib_log_init(&log, TRIB_LOG_WARN, keep, line);
    trib_log(&log, TRIB_LOG_INFO, "x", "dropped");
    assert_string_equal(line, "");
    trib_log(&log, TRIB_LOG_ERROR, "x", "shown");
    assert_non_null(strstr(line, "shown"));
}

static void test_errno_is_kept_and_long_lines_cut(void **state)
{
    char line[2048] = "";
    char text[2000];
    struct trib_log log;

    (void)state;
    trib_log_init(&log, TRIB_LOG_WARN, keep, line);
    errno = EACCES;
    trib_log(&log, TRIB_LOG_WARN, "x", "%m");
    assert_int_equal(errno, EACCES);
    assert_string_equal(line, "tributary: warning: x: Permission denied");
    memset(text, 'y', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    trib_log(&log, TRIB_LOG_WARN, "x", "%s", text);
    assert_int_equal(strlen(line), 1023);
}

static void test_standard_error_is_the_default(void **state)
{
    char line[128] = "";
    int ends[2];
    int saved = dup(STDERR_FILENO);

    (void)state;
    assert_int_equal(pipe(ends), 0);
    dup2(ends[1], STDERR_FILENO);
    trib_log(NULL, TRIB_LOG_INFO, "x", "dropped");
    trib_log(NULL, TRIB_LOG_WARN, "x", "said");
    dup2(saved, STDERR_FILENO);
    close(saved);
    close(ends[1]);
    assert_true(read(ends[0], line, sizeof(line) - 1) > 0);
    close(ends[0]);
    assert_string_equal(line, "tributary: warning: x: said\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_form_of_a_line),
        cmocka_unit_test(test_levels),
        cmocka_unit_test(test_errno_is_kept_and_long_lines_cut),
        cmocka_unit_test(test_standard_error_is_the_default),
    };

    tribtest_deadline(180);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
