/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Newcomers that are refused, and the error they get: other settings, another secret,
 * unauthenticated peers, ranks of a start. Newcomers that disconnect, die, stop or lie
 * cost the job one call of trib_comm_grow, and nothing else.
 */
#include <sys/socket.h>

#include "base/error.h"
#include "base/secret.h"
#include "base/sockets.h"
#include "base/time.h"
#include "boot/tcp/tcp_proto.h"
#include "build-config.h"
#include "comm/members/grow.h"
#include "tests/comm/growing.h"

#define MEMBERS 2
#define STOP_MS 500

enum how {
    OTHER_SETTING,
    OTHER_SECRET,
    NO_SECRET,
    A_RANK, /* a rank of a start */
    GARBAGE,
    DIES_WAITING,
    DIES_ADMITTED,
    STOPS_WAITING,
    STOPS_ADMITTED,
    LIES, /* takes part in no exchange, and sends ticks */
    SHORT, /* sends another number of bytes than expected */
    GIVES_UP, /* its idle function aborts */
    HOWS
};

struct trial {
    enum how how;
    char root[TRIB_ROOT_TEXT_MAX];
    struct growing_board *board;
};

/* Let members accept newcomers until the newcomer under test is done and a correct one
 * has joined as well. */
static int be_member(struct ranks_self *self, const struct trial *t)
{
    trib_listener_t *l = NULL;
    trib_comm_t *bigger = NULL;

    growing_init(self, t->root, MEMBERS);
    if (self->rank == 1)
        l = growing_listen(self, self->comm, t->board);
    while (!bigger) {
        int64_t x = 1;
        ranks_ok(self, trib_allreduce(self->comm, NULL, &x, 1, TRIB_I64, TRIB_SUM));
        ranks_assert(self, x == MEMBERS);
        ranks_ok(self, trib_comm_grow(self->comm, l, 9, &bigger));
        usleep(1000);
    }
    ranks_ok(self, trib_free_comm(self->comm));
    ranks_assert(self, trib_size(bigger) == MEMBERS + 1);
    ranks_ok(self, trib_barrier(bigger));
    trib_listener_close(l);
    ranks_ok(self, trib_free_comm(bigger));
    return 0;
}

static int be_honest(struct ranks_self *self, const struct trial *t)
{
    while (!atomic_load(&t->board->more[0]))
        usleep(500);
    ranks_ok(self, growing_join(self, t->board));
    ranks_assert(self, trib_rank(self->comm) == MEMBERS);
    ranks_ok(self, trib_barrier(self->comm));
    ranks_ok(self, trib_free_comm(self->comm));
    return 0;
}

/* A newcomer by hand ------------------------------------------------------------- */

struct hand {
    struct trib_boot *boot;
    struct trib_error err;
    struct trib_config cfg;
    struct trib_log log;
};

static void reach(struct ranks_self *self, struct hand *h, const char *text)
{
    struct trib_boot_opts opts = {.is_newcomer = true,
                                  .root = text,
                                  .cfg = &h->cfg,
                                  .log = &h->log,
                                  .err = &h->err};

    trib_log_init(&h->log, TRIB_LOG_ERROR, NULL, NULL);
    ranks_ok(self, trib_config_load(&h->cfg, self->opts.config, &h->log, &h->err));
    ranks_ok(self, trib_boot_open(&opts, &h->boot));
}

static void send_request(struct ranks_self *self, struct hand *h)
{
    struct trib_join_request mine;
    struct trib_admission a;

    trib_join_request_fill(&h->cfg, &mine);
    ranks_ok(self, trib_boot_request(h->boot, "join request", &mine, sizeof(mine), &a,
                                     sizeof(a)));
    ranks_assert(self, trib_admission_is_sound(&a) && a.rank == MEMBERS);
}

static void misbehave(struct ranks_self *self, const struct trial *t, const char *text)
{
    struct hand h = {.boot = NULL};
    char few[8] = "few", all[64];

    reach(self, &h, text);
    if (t->how == DIES_WAITING || t->how == STOPS_WAITING)
        usleep(2000);
    else
        send_request(self, &h);
    atomic_store(&t->board->more[0], 1);
    if (t->how == DIES_WAITING || t->how == DIES_ADMITTED)
        raise(SIGKILL);
    if (t->how == STOPS_WAITING || t->how == STOPS_ADMITTED)
        raise(SIGSTOP);
    if (t->how == LIES)
        sleep(60);
    ranks_assert(self, trib_boot_request(h.boot, "connect", few, sizeof(few), all,
                                         sizeof(all)) < 0);
    h.boot->ops->close(h.boot);
}

static void send_garbage(struct ranks_self *self, const char *text)
{
    char place[TRIB_ROOT_TEXT_MAX], why[128];
    struct trib_secret secret;
    struct trib_tcp_root root;

    (void)trib_secret_split(text, place, sizeof(place), &secret);
    ranks_assert(self, trib_tcp_root_parse(place, &root));
    for (int i = 0; i < 100; i++) {
        const int fd =
            trib_sockets_connect(&root, trib_deadline_ms(2000), NULL, why, sizeof(why));
        ranks_assert(self, fd >= 0);
        uint8_t bytes[64];
        for (size_t k = 0; k < sizeof(bytes); k++)
            bytes[k] = (uint8_t)(i * 7 + (int)k * 13);
        if (i % 2)
            (void)trib_tcp_put_head(bytes, TRIB_TCP_GATHER, 1, 40);
        ranks_assert(self, send(fd, bytes, sizeof(bytes), MSG_NOSIGNAL) > 0);
        if (i % 3)
            close(fd);
    }
}

static int give_up(void *arg)
{
    (void)arg;
    return 1;
}

static int be_other(struct ranks_self *self, const struct trial *t)
{
    static const char *const setting[] = {"seed=7", "seed=0", "the same TRIB_*", NULL};
    static const char *const secret[] = {"TRIB_KEY", NULL};
    static const char *const rank[] = {"trib_join", "newcomers", NULL};
    char text[TRIB_ROOT_TEXT_MAX], config[200];
    trib_comm_t *none;

    growing_find(t->board, text);
    switch (t->how) {
    case OTHER_SETTING:
        snprintf(config, sizeof(config), "%s,seed=7", self->opts.config);
        self->opts.config = config;
        ranks_refused(self, trib_join(text, &self->opts, &none), TRIB_ERR_MISMATCH,
                      setting);
        break;
    case OTHER_SECRET:
        for (char *p = strchr(text, '#'); p && *p; p++)
            *p = *p == '1' ? '2' : *p == '2' ? '1' : *p;
        ranks_refused(self, trib_join(text, &self->opts, &none), TRIB_ERR_MISMATCH,
                      secret);
        break;
    case NO_SECRET:
        ranks_assert(self, strchr(text, '#'));
        text[strcspn(text, "#")] = '\0';
        ranks_refused(self, trib_join(text, &self->opts, &none), TRIB_ERR_MISMATCH,
                      secret);
        break;
    case A_RANK:
        self->opts.root = text;
        self->opts.rank_plus_1 = 2;
        self->opts.ranks = 3;
        ranks_refused(self, trib_init(&self->opts, &none), TRIB_ERR_MISMATCH, rank);
        break;
    case GARBAGE:
        send_garbage(self, text);
        break;
    case GIVES_UP:
        self->opts.idle = give_up;
        ranks_assert(self, trib_join(text, &self->opts, &none) == TRIB_ERR_ABORTED);
        break;
    default:
        misbehave(self, t, text);
    }
    atomic_store(&t->board->more[0], 1);
    return 0;
}

static int act(struct ranks_self *self)
{
    const struct trial *t = self->arg;

    if (self->rank < MEMBERS)
        return be_member(self, t);
    return self->rank == MEMBERS ? be_other(self, t) : be_honest(self, t);
}

static void try(const char *config, enum how how)
{
    struct ranks r;
    trib_local_t *local;
    char text[200];
    struct trial t = {.how = how, .board = growing_board()};

    assert_non_null(t.board);
    assert_int_equal(trib_local_create(MEMBERS, &local), TRIB_OK);
    snprintf(t.root, sizeof(t.root), "%s", trib_local_root(local));
    snprintf(text, sizeof(text), "%s,stop_timeout_ms=%d", config,
             STOP_MS * (int)tribtest_slowness());
    struct ranks_job job = {.size = MEMBERS + 2,
                            .fn = act,
                            .arg = &t,
                            .config = text,
                            .bare = true,
                            .noisy = true,
                            .seconds = 40};
    assert_true(ranks_start(&r, &job));
    ranks_outlive(&r, 1u << MEMBERS);
    ranks_survived(&r, how <= GARBAGE ? 0 : 1u << MEMBERS, "%s, case %d", config,
                   (int)how);
    trib_local_destroy(local);
    munmap(t.board, sizeof(*t.board));
}

static bool has_secrets(void)
{
    struct trib_secret s;
    char why[160];

    return trib_secret_make(&s, NULL) == TRIB_OK &&
           trib_secret_arm(&s, why, sizeof(why));
}

TEST_ON(test_others_go_on, "shm", "tcp")
{
    for (int how = 0; how < HOWS; how++)
        if ((how != OTHER_SECRET && how != NO_SECRET) || has_secrets())
            try(*state, (enum how)how);
}

/* This thread cannot accept itself. On a busy machine the listener's thread may not
 * answer in time, which is another error: then more time is given. */
static void join_own(trib_listener_t *l)
{
    trib_opts_t opts = TRIB_OPTS_INIT;
    trib_comm_t *none;
    char config[80];

    for (int ms = 300; ms <= tribtest_patience_ms(); ms *= 2) {
        snprintf(config, sizeof(config), "boot_timeout_ms=%d,transport=shm", ms);
        opts.config = config;
        assert_int_equal(trib_join(trib_listener_text(l), &opts, &none), TRIB_ERR_BOOT);
        if (strstr(trib_last_error(NULL), "trib_comm_grow"))
            return;
        assert_non_null(strstr(trib_last_error(NULL), "trib_listener_open"));
    }
    fail_msg("the listener never answers: %s", trib_last_error(NULL));
}

TEST(test_nobody)
{
    trib_opts_t opts = TRIB_OPTS_INIT;
    trib_comm_t *comm, *none;
    trib_listener_t *l;

    opts.config = "boot_timeout_ms=300,transport=shm";
    assert_int_equal(trib_join("localhost:1", &opts, &none), TRIB_ERR_BOOT);
    assert_non_null(strstr(trib_last_error(NULL), "trib_listener_open"));
    assert_int_equal(trib_join("nonsense", &opts, &none), TRIB_ERR_CONFIG);
    assert_int_equal(trib_join("localhost:1", &opts, NULL), TRIB_ERR_INVALID);
    assert_int_equal(trib_init(&opts, &comm), TRIB_OK);
    assert_int_equal(trib_listener_open(comm, "no place", &l), TRIB_ERR_INVALID);
    assert_int_equal(trib_listener_open(comm, NULL, NULL), TRIB_ERR_INVALID);
    assert_int_equal(trib_listener_open(comm, "localhost", &l), TRIB_OK);
    assert_int_equal(trib_listener_waiting(l), 0);
    assert_int_equal(trib_listener_waiting(NULL), 0);
    assert_int_equal(trib_comm_grow(comm, l, -1, &none), TRIB_ERR_INVALID);
    assert_int_equal(trib_comm_grow(comm, l, 1, NULL), TRIB_ERR_INVALID);
    join_own(l);
    trib_listener_close(l);
    trib_listener_close(NULL);
    assert_int_equal(trib_free_comm(comm), TRIB_OK);
}

TEST(test_admission)
{
    const struct trib_admission good = {.magic = TRIB_ADMISSION_MAGIC,
                                        .version = TRIB_GROW_VERSION,
                                        .members = 3,
                                        .size = 5,
                                        .rank = 4,
                                        .window = 8,
                                        .window_asked = 8,
                                        .chunk = 65536,
                                        .chunk_asked = 65536};
    struct trib_admission a = good;

    assert_true(trib_admission_is_sound(&good));
    a.rank = 2;
    assert_false(trib_admission_is_sound(&a));
    a = good;
    a.size = 70000;
    assert_false(trib_admission_is_sound(&a));
    a = good;
    a.window = 0;
    assert_false(trib_admission_is_sound(&a));
    a = good;
    a.chunk = UINT64_MAX;
    assert_false(trib_admission_is_sound(&a));
    a = good;
    a.version++;
    assert_false(trib_admission_is_sound(&a));
}
