/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A job and an aggregator of several releases: which version of the control protocol
 * they use, and the error if none is common. tests/agg/protocol/test_auth.c covers the
 * proofs.
 */
#include "tests/agg/protocol/authtest.h"

#include "base/release.h"

static struct trib_auth *open_none(void)
{
    struct trib_auth *auth = NULL;

    assert_status(authtest_open("none", NULL, NULL, NULL, &auth), TRIB_OK);
    return auth;
}

static void check_failed(const struct meeting *m, const struct side *side,
                         trib_status_t status, const char *sentence)
{
    assert_status(side->status, status);
    assert_non_null(strstr(side->err.text, sentence));
    assert_false(meeting_well(m));
}

/* Make the job, or the aggregator, a release with these versions. */
static bool hello_speaks(struct meeting *m, struct frame *frame, int number)
{
    if (number == 0) {
        frame->bytes[TRIB_CONTROL_HEAD_BYTES] = (uint8_t)m->number;
        frame->bytes[TRIB_CONTROL_HEAD_BYTES + 1] = (uint8_t)m->at;
    }
    return true;
}

static bool welcome_speaks(struct meeting *m, struct frame *frame, int number)
{
    if (number == 1)
        frame->bytes[TRIB_CONTROL_HEAD_BYTES] = (uint8_t)m->number;
    return true;
}

/* Both use the newest common version, or report the versions they know. */
TEST(test_versions)
{
    enum { MIN = TRIB_CONTROL_VERSION_MIN, MAX = TRIB_CONTROL_VERSION_MAX };
    struct trib_auth *none = open_none();
    struct meeting m = {
        .job.auth = none, .aggregator.auth = none, .meddle = hello_speaks};
    char words[80];

    for (int newest = MIN; newest < MAX + 3; newest++) {
        m.number = MIN;
        m.at = (size_t)newest;
        meeting_run(&m);
        assert_true(meeting_well(&m));
        assert_int_equal(trib_handshake_version(m.job.hs),
                         newest < MAX ? newest : MAX);
        assert_string_equal(trib_handshake_peer(m.job.hs).release, trib_release);
        assert_string_equal(trib_handshake_peer(m.aggregator.hs).release, trib_release);
        meeting_end(&m);
    }
    for (int other = MIN - 1; other <= MAX + 1; other += MAX - MIN + 2) {
        m.number = other;
        m.at = (size_t)other;
        meeting_run(&m);
        snprintf(words, sizeof(words), "(library %s) supports %d to %d",
                 trib_release, other, other);
        check_failed(&m, &m.aggregator, TRIB_ERR_UNSUPPORTED, words);
        assert_non_null(strstr(m.aggregator.err.text, "4 to 4: install the same"));
        meeting_end(&m);
    }
    m.meddle = welcome_speaks;
    m.number = MAX + 1;
    meeting_run(&m);
    check_failed(&m, &m.job, TRIB_ERR_UNSUPPORTED, "version 5 of the control protocol");
    meeting_end(&m);
    trib_auth_free(none);
}

TEST_GROUP(authtest_begin, authtest_end)
