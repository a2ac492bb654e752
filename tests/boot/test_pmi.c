/* SPDX-License-Identifier: BSD-3-Clause */
/* The PMI client against a launcher that is a list of answers. */
#include "tests/harness/tribtest.h"

#include <errno.h>
#include <sys/socket.h>

#include "base/error.h"
#include "base/time.h"
#include "boot/pmi.h"

#define STEPS 7

/* The launcher: reads a line, then writes the next answer. */
struct server {
    int fd;
    const char *answers[STEPS + 1]; /* NULL: hang up */
    bool silent; /* keep the connection open */
    int patience_ms; /* timeout of the client; 0: much more than it needs */
    char heard[STEPS * 128];
    pthread_t thread;
};

static const char *const good[STEPS + 1] = {
    "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n",
    "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024\n",
    "cmd=my_kvsname kvsname=kvs_1\n",
    "cmd=barrier_out\n",
    "cmd=get_result rc=0 msg=success value=node7:4711\n",
    "cmd=finalize_ack\n",
};

static bool hear(struct server *s)
{
    size_t len = strlen(s->heard);

    while (len + 1 < sizeof(s->heard) && read(s->fd, s->heard + len, 1) == 1)
        if (s->heard[len++] == '\n')
            return true;
    return false;
}

static void *serve(void *arg)
{
    struct server *s = arg;

    for (int i = 0; hear(s) && s->answers[i]; i++)
        send(s->fd, s->answers[i], strlen(s->answers[i]), MSG_NOSIGNAL);
    if (!s->silent)
        shutdown(s->fd, SHUT_RDWR);
    return NULL;
}

static void replies(struct server *s, const char *const answers[STEPS + 1])
{
    memset(s, 0, sizeof(*s));
    for (int i = 0; i <= STEPS; i++)
        s->answers[i] = answers[i];
}

static trib_status_t pass(struct server *s, int rank, char text[64],
                          struct trib_error *err)
{
    struct trib_pmi_opts opts = {.rank = rank, .err = err};
    int pair[2];

    opts.timeout_ms = s->patience_ms ? s->patience_ms : 20000;

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    s->fd = pair[1];
    opts.fd = pair[0];
    assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
    trib_status_t status = trib_pmi_pass(&opts, text, 64);
    if (status == TRIB_OK)
        status = trib_pmi_leave(&opts);
    close(pair[0]);
    pthread_join(s->thread, NULL);
    close(pair[1]);
    return status;
}

TEST(test_learns)
{
    struct server s;
    struct trib_error err = {0};
    char text[64] = "";

    replies(&s, good);
    assert_status(pass(&s, 1, text, &err), TRIB_OK);
    assert_string_equal(text, "node7:4711");
    assert_string_equal(s.heard, "cmd=init pmi_version=1 pmi_subversion=1\n"
                                 "cmd=get_maxes\n"
                                 "cmd=get_my_kvsname\n"
                                 "cmd=barrier_in\n"
                                 "cmd=get kvsname=kvs_1 key=tributary-root\n"
                                 "cmd=finalize\n");
}

TEST(test_tells)
{
    struct server s;
    struct trib_error err = {0};
    char text[64] = "node3:99";

    replies(&s, good);
    s.answers[1] = "cmd=maxes vallen_max=8\n"; /* including its terminating zero */
    assert_status(pass(&s, 0, text, &err), TRIB_ERR_BOOT);
    assert_non_null(strstr(err.text, "the text is too long for the launcher"));
    replies(&s, good);
    s.answers[3] = "cmd=put_result rc=0 msg=success\n";
    s.answers[4] = "cmd=barrier_out\n";
    assert_status(pass(&s, 0, text, &err), TRIB_OK);
    assert_non_null(strstr(s.heard, "cmd=put kvsname=kvs_1 key=tributary-root "
                                    "value=node3:99\n"
                                    "cmd=barrier_in\n"
                                    "cmd=finalize\n"));
}

/* Each wrong answer results in an error message. */
TEST(test_wrong_answers)
{
    static char endless[TRIB_PMI_LINE_BYTES + 64];
    static char name[400];
    static const struct {
        int step;
        const char *answer;
        const char *part;
    } cases[] = {
        {0, NULL, "it has closed the connection"},
        {3, NULL, "cannot gather all ranks"},
        {5, NULL, "cannot say good-bye"},
        {0, endless, "lines received are too long"},
        {4, endless, "lines received are too long"},
        {0, "HTTP/1.1 400 Bad Request\n",
         "the answer is not response_to_init but \"HTTP"},
        {0, "\n", "the answer is not response_to_init"},
        {0, "cmd=maxes\n", "the answer is not response_to_init"},
        {0, "cmd=\x1b[2J\xff\n", "but \"cmd=?[2J?\""},
        {0, "cmd=response_to_init rc=-1\n", "the launcher refuses"},
        {0, "cmd=response_to_init rc=0\ncmd=maxes vallen_max=9999\n", "is not PMI"},
        {1, "cmd=maxes keylen_max=64\n", "the text is too long for the launcher"},
        {1, "cmd=maxes vallen_max=-7\n", "the text is too long for the launcher"},
        {1, "cmd=maxes vallen_max=99999999999999999999999\n", "is too long for the"},
        {2, "cmd=my_kvsname\n", "the answer names none"},
        {2, name, "the answer names none"},
        {4, "cmd=get_result rc=-1 msg=key_not_found\n", "the launcher refuses"},
        {4, "cmd=get_result rc=0\n", "rank 0 has not published it"},
        {4,
         "cmd=get_result rc=0 value=0123456789012345678901234567890123456789012345"
         "678901234567890123456789\n",
         "rank 0 has not published it"},
    };

    memset(endless, 'x', sizeof(endless) - 1);
    snprintf(name, sizeof(name), "cmd=my_kvsname kvsname=%0300d\n", 1);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct server s;
        struct trib_error err = {0};
        char text[64] = "";
        replies(&s, good);
        s.answers[cases[i].step] = cases[i].answer;
        trib_status_t status = pass(&s, 1, text, &err);
        if (status != TRIB_ERR_BOOT || !strstr(err.text, cases[i].part))
            fail_msg("case %zu: %s: \"%s\"", i, trib_status_name(status), err.text);
    }
}

/* A rank never joins, so the barrier does not complete. */
TEST(test_silence)
{
    struct server s;
    struct trib_error err = {0};
    char text[64] = "";
    uint64_t before = trib_now_ns();

    replies(&s, good);
    s.answers[3] = "";
    s.silent = true;
    s.patience_ms = 400;
    assert_status(pass(&s, 1, text, &err), TRIB_ERR_BOOT);
    assert_non_null(
        strstr(err.text, "waited 400 ms for the launcher to gather all ranks"));
    assert_in_range((trib_now_ns() - before) / 1000000, 390, 15000);
}

TEST(test_no_socket)
{
    struct trib_error err = {0};
    struct trib_pmi_opts opts = {.fd = 987, .rank = 1, .timeout_ms = 400, .err = &err};
    char text[64] = "";

    assert_status(trib_pmi_pass(&opts, text, sizeof(text)), TRIB_ERR_BOOT);
    assert_non_null(strstr(err.text, "over PMI_FD=987: Bad file descriptor"));
}

TEST(test_words)
{
    char value[8];

    assert_true(
        trib_pmi_word("cmd=get  rc=0 value=a=b", "value", value, sizeof(value)));
    assert_string_equal(value, "a=b");
    assert_true(trib_pmi_word("rc=", "rc", value, sizeof(value)));
    assert_string_equal(value, "");
    assert_false(trib_pmi_word("xrc=1 rcx=2 rc", "rc", value, sizeof(value)));
    assert_true(trib_pmi_word("rc=1234567", "rc", value, sizeof(value)));
    assert_false(trib_pmi_word("rc=12345678", "rc", value, sizeof(value)));
    assert_false(trib_pmi_word("", "rc", value, sizeof(value)));
}
