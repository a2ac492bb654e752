/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Settings whose values are names: each wrong one causes exactly one error message.
 */
#include "base/config_report.h"
#include "tests/harness/tribtest.h"

#include "comm/core/communicator.h"
#include "comm/life/settings.h"

static const struct {
    const char *name, *value;
    int row;
    const char *says; /* NULL: the value is good */
} rows[] = {
    {"codec", "topk:ratio=0.1", TRIB_CONFIG_ROW_codec, NULL},
    {"codec", "topq", TRIB_CONFIG_ROW_codec, "topk"},
    {"algorithm", "ring", TRIB_CONFIG_ROW_algorithm, NULL},
    {"algorithm", "rinq", TRIB_CONFIG_ROW_algorithm, "did you mean \"ring\""},
    {"feedback", "ef14", TRIB_CONFIG_ROW_feedback, NULL},
    {"feedback", "ef41", TRIB_CONFIG_ROW_feedback, "ef41"},
    {"quorum", "0.5,deadline=5ms", TRIB_CONFIG_ROW_quorum, NULL},
    {"quorum", "0.5", TRIB_CONFIG_ROW_quorum, "deadline"},
    {"check", "finite", TRIB_CONFIG_ROW_check, NULL},
    {"check", "infinite", TRIB_CONFIG_ROW_check, "finite"},
    {"transport", "shm", TRIB_CONFIG_ROW_transport, NULL},
    {"transport", "smh", TRIB_CONFIG_ROW_transport, "smh"},
};

TEST(test_names)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct trib_config cfg;
        static struct trib_config_faults faults;
        struct trib_error err = {0};
        char text[200];
        memset(&faults, 0, sizeof(faults));
        snprintf(text, sizeof(text), "%s=%s;", rows[i].name, rows[i].value);
        assert_ok(trib_config_load(&cfg, text, NULL, &err));
        assert_int_equal(trib_settings_check(&cfg, &faults), rows[i].says == NULL);
        for (int r = 0; r < TRIB_CONFIG_ROWS; r++)
            if (r == rows[i].row && rows[i].says)
                assert_non_null(strstr(faults.row[r], rows[i].says));
            else
                assert_string_equal(faults.row[r], "");
    }
}

/* trib_init refuses the same values, even for one rank, which sums nothing. */
TEST(test_init)
{
    static const char *const configs[] = {"codec=topq",    "algorithm=rinq",
                                          "feedback=ef41", "quorum=0.5",
                                          "check=finte",   "service_auth=kye"};

    for (size_t i = 0; i < sizeof(configs) / sizeof(configs[0]); i++) {
        trib_opts_t opts = TRIB_OPTS_INIT;
        trib_comm_t *comm;
        opts.rank_plus_1 = opts.ranks = 1;
        opts.config = configs[i];
        assert_status(trib_init(&opts, &comm), TRIB_ERR_CONFIG);
        assert_non_null(strstr(trib_last_error(NULL), strchr(configs[i], '=') + 1));
    }
}

/* An earlier error message stays, and counts as a fault. */
TEST(test_earlier_sentence)
{
    struct trib_config cfg;
    static struct trib_config_faults faults;
    struct trib_error err = {0};

    assert_ok(trib_config_load(&cfg, "codec=topq", NULL, &err));
    snprintf(faults.row[TRIB_CONFIG_ROW_codec], TRIB_CONFIG_FAULT_BYTES, "earlier");
    assert_false(trib_settings_check(&cfg, &faults));
    assert_string_equal(faults.row[TRIB_CONFIG_ROW_codec], "earlier");
}
