/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Control connections to addresses where no tribd listens: a sentence for each, and
 * nothing is left behind. test_tribd has connections that work.
 */
#include "tests/harness/tribtest.h"

#include "offload/control_link.h"

static void make_job(struct trib_control_link_job *job, const char *address)
{
    struct trib_error err = {0};

    memset(job, 0, sizeof(*job));
    assert_status(trib_config_load(&job->cfg, NULL, NULL, &err), TRIB_OK);
    assert_status(trib_config_set(&job->cfg, "service_auth", "none", &err), TRIB_OK);
    job->ranks = 2;
    job->n = 1;
    snprintf(job->addresses[0], sizeof(job->addresses[0]), "%s", address);
}

static void test_nobody(void **state)
{
    static const struct {
        const char *address, *says;
        trib_status_t st;
    } rows[] = {
        {"127.0.0.1:1", "no service at 127.0.0.1:1", TRIB_ERR_BOOT},
        {"nonsense", "is not host:port", TRIB_ERR_CONFIG},
        {"", "is not host:port", TRIB_ERR_CONFIG},
    };
    static struct trib_control_link_job job;

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct trib_control_link *link;
        struct trib_error err = {0};
        make_job(&job, rows[i].address);
        assert_status(trib_control_link_create(&job, NULL, &err, &link), TRIB_OK);
        assert_status(trib_control_link_connect(link, 0, true), rows[i].st);
        assert_non_null(strstr(trib_error_text(&link->err), rows[i].says));
        assert_int_equal(link->n, 0);
        assert_true(trib_control_link_is_whole(link)); /* none has been closed */
        trib_control_link_free(link);
    }
    trib_control_link_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nobody),
    };

    tribtest_deadline(60);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
