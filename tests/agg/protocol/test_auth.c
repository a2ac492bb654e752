/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/agg/protocol/authtest.h"

#include "agg/protocol/auth_methods.h"
#include "build-config.h"

static struct munged munged;
static struct munged elsewhere; /* a munged of another realm */

static struct trib_auth *open_auth(const char *method, const char *key)
{
    struct trib_auth *auth = NULL;
    struct trib_error err = {.status = TRIB_OK};
    const struct munged *where = strcmp(method, "key") && munged.pid ? &munged : NULL;

    if (authtest_open(method, key, where, &err, &auth) != TRIB_OK)
        fail_msg("%s", trib_error_text(&err));
    return auth;
}

/* Methods of authentication of both sides; a test with METHODS runs once for each. */
struct method {
    const char *name;
    int frames; /* of a handshake */
    bool names_user;
    const char *reflected; /* the error of a job that gets its own AUTH back */
};

static const struct method methods[] = {
    {"key", 4, false, "use the same key file on both sides"},
    {"munge", 6, true, "belongs to another connection"},
};

#define METHODS(fn) \
    cmocka_unit_test_prestate(fn, (void *)&methods[0]), \
        cmocka_unit_test_prestate(fn, (void *)&methods[1])

static void need_munged(void)
{
    if (!munged.pid)
        tribtest_skip("there is no munged, or no MUNGE in this build");
}

/* Open a job and an aggregator that authenticate by a method;
 * trib_auth_free(m->job.auth) ends it. */
static struct trib_auth *open_meeting(const struct method *how, struct meeting *m)
{
    if (how->names_user)
        need_munged();
    struct trib_auth *auth = open_auth(how->name, "key");
    *m = (struct meeting){.job.auth = auth, .aggregator.auth = auth};
    return auth;
}

static void check_failed(const struct meeting *m, const struct side *side,
                         trib_status_t status, const char *sentence)
{
    assert_status(side->status, status);
    if (!strstr(side->err.text, sentence))
        fail_msg("\"%s\" does not say \"%s\"", side->err.text, sentence);
    assert_false(meeting_well(m));
}

/* Trust --------------------------------------------------------------------------- */

static void test_meets(void **state)
{
    const struct method *how = *state;
    struct meeting m;
    struct trib_auth *a = open_meeting(how, &m), *b = open_auth(how->name, "same");

    m.aggregator.auth = b;
    meeting_run(&m);
    assert_true(meeting_well(&m));
    assert_int_equal(m.n_sent, how->frames);
    struct trib_auth_peer peer = trib_handshake_peer(m.aggregator.hs);
    assert_string_equal(trib_auth_name(peer.method), how->name);
    assert_int_equal(peer.has_user, how->names_user);
    if (how->names_user)
        assert_int_equal(peer.uid, geteuid());
    assert_string_equal(trib_handshake_job(m.aggregator.hs), "train-7");
    meeting_end(&m);
    trib_auth_free(a);
    trib_auth_free(b);
}

static bool all_zero(const void *bytes, size_t n)
{
    const uint8_t *at = bytes;

    while (n && at[n - 1] == 0)
        n--;
    return n == 0;
}

/* Once the seal exists, nothing is left to derive it again. */
static void test_forgets(void **state)
{
    struct meeting m;
    struct trib_auth *auth = open_meeting(*state, &m);

    meeting_run(&m);
    assert_true(meeting_well(&m));
    struct trib_handshake *both[] = {m.job.hs, m.aggregator.hs};
    for (int side = 0; side < 2; side++) {
        const struct trib_handshake *hs = both[side];
        assert_false(all_zero(hs->secret, sizeof(hs->secret)));
        assert_false(all_zero(&hs->keys, sizeof(hs->keys)));
        trib_seal_free(trib_handshake_seal(both[side]));
        assert_true(all_zero(hs->secret, sizeof(hs->secret)));
        assert_true(all_zero(&hs->pair, sizeof(hs->pair)));
        assert_true(all_zero(&hs->keys, sizeof(hs->keys)));
    }
    meeting_end(&m);
    trib_auth_free(auth);
}

static void test_preference(void **state)
{
    (void)state;
    need_munged();
    struct trib_auth *both = open_auth("auto", "key");
    struct trib_auth *key = open_auth("key", "same");
    struct meeting m = {.job.auth = both, .aggregator.auth = both};
    meeting_run(&m);
    assert_true(meeting_well(&m));
    assert_int_equal(trib_handshake_peer(m.job.hs).method, TRIB_AUTH_MUNGE);
    meeting_end(&m);
    m.aggregator.auth = key;
    meeting_run(&m);
    assert_true(meeting_well(&m));
    assert_int_equal(trib_handshake_peer(m.job.hs).method, TRIB_AUTH_KEY);
    meeting_end(&m);
    trib_auth_free(both);
    trib_auth_free(key);
}

static void test_wrong_key(void **state)
{
    struct trib_auth *a = open_auth("key", "key");
    struct trib_auth *b = open_auth("key", "other");
    struct meeting m = {.job.auth = a, .aggregator.auth = b};

    (void)state;
    meeting_run(&m);
    check_failed(&m, &m.aggregator, TRIB_ERR_CONFIG,
                 "use the same key file on both sides");
    assert_status(m.job.status, TRIB_INPROGRESS);
    assert_int_equal(m.n_sent, 3); /* a job without the key learns nothing */
    meeting_end(&m);
    trib_auth_free(a);
    trib_auth_free(b);
}

/* While its key is being replaced, an aggregator accepts jobs with either key, and no
 * other; a job accepts one key only. */
static void test_previous_key(void **state)
{
    static const struct {
        const char *job;
        bool well, previous;
    } rows[] = {{"key", true, false}, {"other", true, true}, {"third", false, false}};
    struct trib_auth *both = NULL;
    struct trib_error err = {0};

    (void)state;
    assert_ok(authtest_open_keys("key", "other", &err, &both));
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct trib_auth *a = open_auth("key", rows[i].job);
        struct meeting m = {.job.auth = a, .aggregator.auth = both};
        meeting_run(&m);
        if (rows[i].well)
            assert_true(meeting_well(&m));
        else
            check_failed(&m, &m.aggregator, TRIB_ERR_CONFIG, "the same key file");
        assert_int_equal(trib_handshake_peer(m.aggregator.hs).by_previous_key,
                         rows[i].previous);
        assert_false(trib_handshake_peer(m.job.hs).by_previous_key);
        meeting_end(&m);
        trib_auth_free(a);
    }
    struct trib_auth *other = open_auth("key", "other");
    struct meeting m = {.job.auth = both, .aggregator.auth = other};
    meeting_run(&m);
    check_failed(&m, &m.aggregator, TRIB_ERR_CONFIG, "the same key file");
    meeting_end(&m);
    trib_auth_free(other);
    assert_false(trib_auth_repeats_key(both));
    trib_auth_free(both);
    assert_ok(authtest_open_keys("key", "same", &err, &both));
    assert_true(trib_auth_repeats_key(both) && trib_auth_takes(both, TRIB_AUTH_KEY));
    assert_false(trib_auth_takes(both, TRIB_AUTH_MUNGE));
    trib_auth_free(both);
    assert_status(authtest_open_keys("key", "missing", &err, &both), TRIB_ERR_CONFIG);
}

static void test_none(void **state)
{
    struct trib_auth *none = open_auth("none", NULL);
    struct trib_auth *key = open_auth("key", "key");
    struct meeting m = {.job.auth = none, .aggregator.auth = none};

    (void)state;
    meeting_run(&m);
    assert_true(meeting_well(&m));
    assert_null(trib_handshake_seal(m.job.hs));
    meeting_end(&m);
    for (int i = 0; i < 2; i++) {
        m.job.auth = i ? none : key;
        m.aggregator.auth = i ? key : none;
        meeting_run(&m);
        check_failed(&m, &m.aggregator, TRIB_ERR_CONFIG,
                     i ? "supports none, the aggregator key"
                       : "supports key, the aggregator none");
        assert_status(m.job.status, TRIB_INPROGRESS);
        meeting_end(&m);
    }
    trib_auth_free(none);
    trib_auth_free(key);
}

static void test_other_realm(void **state)
{
    struct trib_auth *a;
    struct trib_auth *b = NULL;

    (void)state;
    need_munged();
    a = open_auth("munge", NULL);
    assert_ok(authtest_open("munge", NULL, &elsewhere, NULL, &b));
    struct meeting m = {.job.auth = a, .aggregator.auth = b};
    meeting_run(&m);
    check_failed(&m, &m.aggregator, TRIB_ERR_CONFIG, "need the same munge.key");
    assert_status(m.job.status, TRIB_INPROGRESS);
    meeting_end(&m);
    trib_auth_free(a);
    trib_auth_free(b);
}

/* A user who is neither root, nor the user of the other side, nor named by it. */
static void test_users(void **state)
{
    static const uid_t named[] = {4711, 65534};
    struct trib_auth_opts opts = {
        .method = "munge", .munge_socket = munged.socket, .users = named, .n_users = 2};
    struct trib_auth *strict;
    struct trib_auth *open_to = NULL;

    (void)state;
    need_munged();
    if (geteuid())
        tribtest_skip("only root can be several users");
    strict = open_auth("munge", NULL);
    assert_ok(trib_auth_open(&opts, NULL, &open_to));
    struct meeting m = {.job = {.auth = strict, .uid = 65534},
                        .aggregator.auth = strict};
    meeting_run(&m);
    check_failed(&m, &m.aggregator, TRIB_ERR_CONFIG, "may not use this aggregator");
    meeting_end(&m);
    m.aggregator.auth = open_to;
    meeting_run(&m);
    assert_true(meeting_well(&m)); /* and the job trusts root */
    assert_int_equal(trib_handshake_peer(m.aggregator.hs).uid, 65534);
    assert_int_equal(trib_handshake_peer(m.job.hs).uid, 0);
    meeting_end(&m);
    m.job.uid = 4711;
    m.aggregator.uid = 65534;
    meeting_run(&m);
    check_failed(&m, &m.job, TRIB_ERR_CONFIG, "runs as user 65534, which this job");
    assert_status(m.aggregator.status, TRIB_INPROGRESS);
    meeting_end(&m);
    trib_auth_free(strict);
    trib_auth_free(open_to);
}

/* In transit ---------------------------------------------------------------------- */

static bool flip(struct meeting *m, struct frame *frame, int number)
{
    if (number == m->number)
        frame->bytes[m->at] ^= (uint8_t)(1u << (m->at + (size_t)m->number) % 8);
    return true;
}

/*
 * A bit flipped in any byte of any frame: the receiver does not trust the sender.
 * Unless it was the last frame, the sender does not trust the receiver either.
 */
static void test_flipped_bits(void **state)
{
    const struct method *how = *state;
    size_t lengths[AUTHTEST_FRAMES];
    struct meeting m;
    struct trib_auth *auth = open_meeting(how, &m);

    meeting_run(&m);
    assert_true(meeting_well(&m));
    for (int f = 0; f < m.n_sent; f++)
        lengths[f] = m.sent[f].n;
    meeting_end(&m);
    m.meddle = flip;
    for (m.number = 0; m.number < how->frames; m.number++)
        for (m.at = 0; m.at < lengths[m.number]; m.at++) {
            meeting_run(&m);
            bool to_job = m.sent[m.number].from == TRIB_CONTROL_AGGREGATOR;
            /* A credential may be shorter this time: then no bit was flipped. */
            if (m.at >= m.sent[m.number].n)
                assert_true(meeting_well(&m));
            else if (meeting_well(&m) ||
                     (to_job ? &m.job : &m.aggregator)->status == TRIB_OK ||
                     (m.number < how->frames - 1 &&
                      (m.job.status == TRIB_OK || m.aggregator.status == TRIB_OK)))
                fail_msg("frame %d, byte %zu: not noticed", m.number, m.at);
            meeting_end(&m);
        }
    trib_auth_free(auth);
}

/* An attacker in the middle tries to force the weaker method. */
static bool hello_offers(struct meeting *m, struct frame *frame, int number)
{
    if (number == 0)
        frame->bytes[TRIB_CONTROL_HEAD_BYTES + 2] = (uint8_t)m->number;
    return true;
}

static bool welcome_chooses(struct meeting *m, struct frame *frame, int number)
{
    if (number == 1) {
        frame->bytes[TRIB_CONTROL_HEAD_BYTES + 1] = (uint8_t)m->number;
        frame->bytes[TRIB_CONTROL_HEAD_BYTES + 2] = (uint8_t)(1u << m->number);
    }
    return true;
}

static void test_downgrade(void **state)
{
    (void)state;
    need_munged();
    struct trib_auth *both = open_auth("auto", "key");
    struct meeting m = {
        .job.auth = both, .aggregator.auth = both, .meddle = hello_offers};
    m.number = 1 << TRIB_AUTH_KEY; /* munge is taken out of the offer */
    meeting_run(&m);
    check_failed(&m, &m.aggregator, TRIB_ERR_CONFIG, "was modified");
    meeting_end(&m);
    m.number = 1 << TRIB_AUTH_NONE;
    meeting_run(&m);
    check_failed(&m, &m.aggregator, TRIB_ERR_CONFIG, "enable one on both sides");
    meeting_end(&m);
    m.meddle = welcome_chooses;
    m.number = TRIB_AUTH_KEY;
    meeting_run(&m);
    assert_true(m.job.status != TRIB_OK && m.aggregator.status != TRIB_OK);
    meeting_end(&m);
    m.number = TRIB_AUTH_NONE;
    meeting_run(&m);
    check_failed(&m, &m.job, TRIB_ERR_PROTOCOL, "method none, which was not offered");
    meeting_end(&m);
    trib_auth_free(both);
}

/* Replay the frames of the job, or of the aggregator, to a new one. */
static void replay(struct meeting m, enum trib_control_role whom,
                   const struct method *how)
{
    struct meeting again = m;
    bool refused = false;

    meeting_run(&m);
    assert_true(meeting_well(&m));
    meeting_begin(&again);
    struct side *side = whom == TRIB_CONTROL_JOB ? &again.aggregator : &again.job;
    if (whom == TRIB_CONTROL_AGGREGATOR) {
        struct frame hello;
        assert_ok(trib_handshake_begin(side->hs, NULL, hello.bytes, &hello.n));
    }
    for (int i = 0; i < m.n_sent; i++) {
        if (m.sent[i].from != whom)
            continue;
        (void)side_take(side, &m.sent[i]);
        assert_true(side->status != TRIB_OK);
        refused |= side->status < 0;
    }
    assert_true(refused);
    if (how->names_user)
        assert_non_null(strstr(side->err.text, "was used before"));
    meeting_end(&again);
    meeting_end(&m);
}

static void test_replay(void **state)
{
    struct meeting m;
    struct trib_auth *auth = open_meeting(*state, &m);

    replay(m, TRIB_CONTROL_JOB, *state);
    replay(m, TRIB_CONTROL_AGGREGATOR, *state);
    trib_auth_free(auth);
}

/* An attacker in the middle sends each AUTH of the job back to it. */
static void test_reflection(void **state)
{
    const struct method *how = *state;
    struct frame frame = {.from = TRIB_CONTROL_JOB};
    struct meeting m;
    struct trib_auth *auth = open_meeting(how, &m);

    meeting_begin(&m);
    assert_ok(trib_handshake_begin(m.job.hs, NULL, frame.bytes, &frame.n));
    frame = side_take(&m.aggregator, &frame); /* WELCOME: any peer can send that */
    frame = side_take(&m.job, &frame);
    assert_true(frame.n > 0);
    frame.from = TRIB_CONTROL_AGGREGATOR;
    frame = side_take(&m.job, &frame);
    assert_int_equal(frame.n, 0);
    check_failed(&m, &m.job, TRIB_ERR_CONFIG, how->reflected);
    meeting_end(&m);
    trib_auth_free(auth);
}

/* Messages that are not expected at that point. */
static void test_out_of_turn(void **state)
{
    struct trib_auth *auth = open_auth("key", "key");
    struct trib_control said = {.kind = TRIB_CONTROL_ERROR, .said = {"go away"}};
    struct trib_control alive = {.kind = TRIB_CONTROL_ALIVE};
    struct meeting m = {.job.auth = auth, .aggregator.auth = auth};
    struct frame frame = {.from = TRIB_CONTROL_JOB};

    (void)state;
    meeting_begin(&m);
    assert_ok(trib_control_put(&alive, frame.bytes, sizeof(frame.bytes), &frame.n));
    side_take(&m.aggregator, &frame);
    check_failed(&m, &m.aggregator, TRIB_ERR_PROTOCOL, "sent ALIVE when HELLO was");
    assert_ok(trib_handshake_begin(m.job.hs, NULL, frame.bytes, &frame.n));
    assert_ok(trib_control_put(&said, frame.bytes, sizeof(frame.bytes), &frame.n));
    frame.from = TRIB_CONTROL_AGGREGATOR;
    side_take(&m.job, &frame);
    check_failed(&m, &m.job, TRIB_ERR_CONFIG, "closed the connection: go away");
    meeting_end(&m);
    struct trib_handshake_opts bad = {auth, TRIB_CONTROL_JOB, "two words"};
    assert_status(trib_handshake_new(&bad, NULL, &m.job.hs), TRIB_ERR_INVALID);
    trib_auth_free(auth);
}

/* Means of authentication --------------------------------------------------------- */

static void refuses(const char *method, const char *key, const char *sentence)
{
    struct trib_error err = {.status = TRIB_OK};
    struct trib_auth *auth = NULL;

    assert_status(authtest_open(method, key, NULL, &err, &auth), TRIB_ERR_CONFIG);
    assert_null(auth);
    if (!strstr(err.text, sentence))
        fail_msg("\"%s\" does not say \"%s\"", err.text, sentence);
}

static void test_key_files(void **state)
{
    char path[128];

    (void)state;
    refuses("key", "missing", "missing: No such file");
    authtest_file("short", 31, 0600, 1);
    refuses("key", "short", "has 31 bytes: it must have 32 to 4096");
    authtest_file("long", 4097, 0600, 1);
    refuses("key", "long", "has 4097 bytes");
    static const mode_t open_to_others[] = {0640, 0604, 0620, 0602, 0700, 0444};
    for (size_t i = 0; i < sizeof(open_to_others) / sizeof(mode_t); i++) {
        authtest_file("open", 32, open_to_others[i], 1);
        refuses("key", "open", "not 600 or 400 (chmod 600");
    }
    if (authtest_list("open", geteuid(), 0)) { /* as LoadCredential of systemd does */
        trib_auth_free(open_auth("key", "open"));
        assert_true(authtest_list("open", geteuid(), 4));
        refuses("key", "open", "not 600 or 400 (chmod 600");
        assert_true(authtest_list("open", geteuid() + 1, 0));
        refuses("key", "open", "not 600 or 400 (chmod 600");
    }
    authtest_file("zeros", 0, 0600, 0);
    assert_int_equal(truncate(authtest_path("zeros", path), 64), 0);
    refuses("key", "zeros", "is not random");
    assert_int_equal(mkdir(authtest_path("folder", path), 0700), 0);
    refuses("key", "folder", "is not a regular file");
    assert_int_equal(mkfifo(authtest_path("pipe", path), 0600), 0);
    refuses("key", "pipe", "is not a regular file");
    refuses("key", NULL, "no key file is set");
    if (geteuid() == 0) {
        authtest_file("theirs", 32, 0600, 1);
        assert_int_equal(chown(authtest_path("theirs", path), 4711, 0), 0);
        refuses("key", "theirs", "is owned by user 4711, but must be owned by");
    }
}

static void test_nothing_there(void **state)
{
    (void)state;
    refuses("munge", NULL,
            HAVE_MUNGE ? "munged does not answer on /nonexistent/munge.socket"
                       : "install libmunge-dev and rebuild");
    refuses("auto", NULL,
            HAVE_MUNGE
                ? "no authentication method is available: munged does not answer"
                : "no authentication method is available: this build has no MUNGE");
    refuses("auto", NULL, "no key file is set");
    refuses("auto", "missing", "cannot open key file");
    refuses("kay", NULL, "\"kay\", did you mean \"key\"?");
    refuses("", NULL, "use auto, munge, key or none");
}

/* A stopped munged is abandoned, and the pending request has no effect. */
static void test_stopped_munged(void **state)
{
    struct trib_auth *auth;
    struct trib_auth *none = NULL;
    struct trib_error err = {.status = TRIB_OK};

    (void)state;
    need_munged();
    auth = open_auth("munge", NULL);
    struct meeting m = {.job.auth = auth, .aggregator.auth = auth};
    kill(munged.pid, SIGSTOP);
    uint64_t begin = trib_now_ns();
    meeting_run(&m);
    trib_status_t opened = authtest_open("munge", NULL, &munged, &err, &none);
    uint64_t took = trib_now_ns() - begin;
    kill(munged.pid, SIGCONT);
    check_failed(&m, &m.job, TRIB_ERR_CONFIG, "munged does not answer");
    assert_status(opened, TRIB_ERR_CONFIG);
    /* 2 s for each request; a busy machine adds its own time */
    assert_in_range(took / 1000000, 0, 60000 * (uint64_t)tribtest_slowness());
    meeting_end(&m);
    meeting_run(&m);
    assert_true(meeting_well(&m));
    meeting_end(&m);
    trib_auth_free(auth);
}

/* Built without libsodium: only "none" is available, and the errors of the others name
 * the package to install. */
static void test_without_libsodium(void **state)
{
    struct trib_auth *none = open_auth("none", NULL);
    struct meeting m = {.job.auth = none, .aggregator.auth = none};

    (void)state;
    meeting_run(&m);
    assert_true(meeting_well(&m));
    meeting_end(&m);
    trib_auth_free(none);
    refuses("key", "key", "install libsodium-dev and rebuild");
    refuses("munge", NULL, "install libsodium-dev and rebuild");
    refuses("auto", NULL, "install libsodium-dev and rebuild");
}

static int begin(void **state)
{
    if (authtest_begin(state))
        return -1;
    if (HAVE_MUNGE) {
        munged_start("here", 3, &munged);
        munged_start("elsewhere", 4, &elsewhere);
    }
    return 0;
}

static int end(void **state)
{
    munged_stop(&munged);
    munged_stop(&elsewhere);
    return authtest_end(state);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        METHODS(test_meets),          METHODS(test_forgets),
        cmocka_unit_test(test_preference),     cmocka_unit_test(test_wrong_key),
        cmocka_unit_test(test_previous_key),
        cmocka_unit_test(test_none),           cmocka_unit_test(test_other_realm),
        cmocka_unit_test(test_users),          METHODS(test_flipped_bits),
        cmocka_unit_test(test_downgrade),      METHODS(test_replay),
        METHODS(test_reflection),     cmocka_unit_test(test_out_of_turn),
        cmocka_unit_test(test_key_files),      cmocka_unit_test(test_nothing_there),
        cmocka_unit_test(test_stopped_munged),
    };
    static const struct CMUnitTest absent[] = {
        cmocka_unit_test(test_without_libsodium)};

    tribtest_deadline(180);
    if (!HAVE_SODIUM)
        return cmocka_run_group_tests(absent, authtest_begin, authtest_end);
    return cmocka_run_group_tests(tests, begin, end);
}
