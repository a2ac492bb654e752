/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trib_opts_t.allgather: ranks connect through an exchange of the program, here an
 * array and a barrier of threads. A function that fails, or that omits, swaps or adds
 * blocks, and a rank that cannot continue, each cause an error message on all ranks.
 */
#include "boot/boot.h"
#include "build-config.h"
#include "tests/harness/ranks.h"

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

enum { ANSWER = -3, COUNT = 1000 };

enum lie {
    NONE,
    FAILS,
    LEAVES_OUT,
    SWAPS,
    ADDS,
    OLD_MEETING, /* rank 1 is of a release with another layout of this exchange */
    OLD_RELEASE, /* rank 1 is of a release that differs only in its name */
    OLD_MESSAGE, /* the release of rank 1 sent its name in the first message only */
    OLD_BUILD, /* rank 1 has a build of this release with other messages */
};

struct board {
    pthread_barrier_t barrier;
    int size;
    char *blocks;
    size_t bytes;
    _Atomic bool broken;
    enum lie lie; /* the lie of the function of rank 1, */
    int at; /* in this exchange */
};

struct seat {
    struct board *board;
    int rank;
    int calls;
};

/* Replace the block of rank 1 by one of another release. */
static void grow_old(enum lie lie, char *block, size_t bytes)
{
    char *body = block + bytes - TRIB_BOOT_BLOB_MAX;
    const size_t n = strlen(trib_version());
    char *named = memmem(body, TRIB_BOOT_BLOB_MAX, trib_version(), n);

    if (lie == OLD_MEETING)
        block[8]++;
    if (lie == OLD_RELEASE)
        memcpy(memmem(block, bytes, trib_version(), n), "9.9.9", n);
    if (lie == OLD_MESSAGE && named)
        memcpy(named, "9.9.9", n);
    if (lie == OLD_BUILD)
        body[4]++;
}

static int gather(void *arg, const void *in, void *out, size_t bytes)
{
    struct seat *s = arg;
    struct board *b = s->board;
    const bool lies = s->rank == 1 && s->calls++ == b->at;
    char *to = out;

    if (pthread_barrier_wait(&b->barrier) == PTHREAD_BARRIER_SERIAL_THREAD) {
        b->blocks = realloc(b->blocks, (size_t)b->size * bytes);
        b->bytes = bytes;
    }
    pthread_barrier_wait(&b->barrier);
    memcpy(b->blocks + (size_t)s->rank * bytes, in, bytes);
    if (lies && b->lie >= OLD_MEETING)
        grow_old(b->lie, b->blocks + bytes, bytes);
    if (lies && b->lie == FAILS)
        b->broken = true;
    pthread_barrier_wait(&b->barrier);
    if (b->broken)
        return ANSWER;
    const int blocks = b->size - (lies && b->lie == LEAVES_OUT);
    memcpy(out, b->blocks, (size_t)blocks * bytes);
    if (lies && b->lie == SWAPS) {
        memcpy(to, b->blocks + bytes, bytes);
        memcpy(to + bytes, b->blocks, bytes);
    }
    if (lies && b->lie == ADDS)
        memset(to + (size_t)b->size * bytes, 1, 100);
    return b->bytes != bytes;
}

struct scene {
    struct board board;
    trib_status_t status; /* of trib_init, */
    const char *words[3]; /* and parts of its error message on rank 1 */
    const char *others; /* part of the error messages of the others */
    const char *broken_config; /* of rank 1 */
    int told; /* number of ranks passed to rank 1; 0: the real number */
    trib_status_t status_1; /* of rank 1, where it differs */
    bool late; /* only rank 1 detects it, after the last exchange */
};

/* Rank 1 failed after the last exchange: trib_init or the first operation reports it,
 * in the words of the transport. */
static void late(struct ranks_self *self, trib_status_t st, trib_comm_t *comm)
{
    float x = 1;

    if (st == TRIB_OK)
        st = trib_allreduce(comm, NULL, &x, 1, TRIB_F32, TRIB_SUM);
    ranks_assert(self, st != TRIB_OK);
    if (!strstr(trib_last_error(comm), "rank 1"))
        ranks_die(self, "%s", trib_last_error(comm));
    (void)trib_free_comm(comm);
}

static int meets(struct ranks_self *self)
{
    struct scene *s = self->arg;
    struct seat seat = {&s->board, self->rank, 0};
    trib_comm_t *comm;
    trib_opts_t opts =
        sized(trib_opts_t, .rank_plus_1 = self->rank + 1,
              .ranks = s->told && self->rank == 1 ? s->told : self->size);

    opts.config =
        s->broken_config && self->rank == 1 ? s->broken_config : self->opts.config;
    opts.log = self->opts.log;
    opts.log_arg = self->opts.log_arg;
    opts.allgather = gather;
    opts.allgather_arg = &seat;
    trib_status_t st = trib_init(&opts, &comm);
    const bool liar = self->rank == 1;
    if (s->late && !liar) {
        late(self, st, comm);
        return 0;
    }
    if (st != (liar && s->status_1 ? s->status_1 : s->status))
        ranks_die(self, "%s: %s", trib_status_str(st), trib_last_error(NULL));
    if (st == TRIB_OK) {
        float x[COUNT];
        for (int i = 0; i < COUNT; i++)
            x[i] = (float)(self->rank + i);
        ranks_ok(self, trib_allreduce(comm, NULL, x, COUNT, TRIB_F32, TRIB_SUM));
        for (int i = 0; i < COUNT; i++)
            ranks_assert(self, (int)x[i] ==
                                   self->size * (self->size - 1) / 2 + self->size * i);
        ranks_ok(self, trib_free_comm(comm));
        return 0;
    }
    if (liar ? !ranks_has(trib_last_error(NULL), s->words)
             : !strstr(trib_last_error(NULL), s->others))
        ranks_die(self, "%s", trib_last_error(NULL));
    return 0;
}

static void run(struct scene s, int size, const char *config)
{
    s.board.size = size;
    assert_int_equal(pthread_barrier_init(&s.board.barrier, NULL, (unsigned)size), 0);
    ranks_pass(.size = size, .fn = meets, .config = config, .arg = &s, .threads = true,
               .bare = true, .noisy = true);
    pthread_barrier_destroy(&s.board.barrier);
    free(s.board.blocks);
}

TEST(test_meets)
{
    run((struct scene){.board.at = -1}, 2, "transport=shm");
    run((struct scene){.board.at = -1}, 3, "transport=tcp");
    run((struct scene){.board.at = -1}, 5, "transport=auto");
    /* The secret was passed on: without one this setting is refused. */
    run((struct scene){.board.at = -1}, 3, "transport=tcp;seal=1");
    run((struct scene){.board.at = -1}, 1, "transport=auto");
}

TEST(test_meets_ucx)
{
#if HAVE_UCX
    run((struct scene){.board.at = -1}, 3, "transport=ucx");
#else
    tribtest_skip("built without UCX");
#endif
}

/* In each of the three exchanges. */
TEST(test_lies)
{
    for (int at = 0; at < 3; at++) {
        run((struct scene){.board = {.lie = FAILS, .at = at},
                           .status = TRIB_ERR_BOOT,
                           .words = {"trib_opts_t.allgather has returned -3", "rank 1"},
                           .others = "trib_opts_t.allgather has returned -3"},
            3, "transport=shm");
        run((struct scene){.board = {.lie = LEAVES_OUT, .at = at},
                           .status = TRIB_ERR_PEER_LOST,
                           .late = at == 2,
                           .status_1 = TRIB_ERR_BOOT,
                           .words = {"has not given rank 1 the block of rank 2"},
                           .others = "rank 1 (process"},
            3, "transport=shm");
        run((struct scene){.board = {.lie = SWAPS, .at = at},
                           .status = TRIB_ERR_PEER_LOST,
                           .late = at == 2,
                           .status_1 = TRIB_ERR_BOOT,
                           .words = {"block of rank 1 in the place of rank 0"},
                           .others = "it must order them by rank"},
            3, "transport=shm");
        run((struct scene){.board = {.lie = ADDS, .at = at},
                           .status = TRIB_ERR_PEER_LOST,
                           .late = at == 2,
                           .status_1 = TRIB_ERR_BOOT,
                           .words = {"has written to rank 1 more than ranks * bytes"},
                           .others = "more than ranks * bytes"},
            3, "transport=shm");
    }
}

/* Rank 1 cannot continue, or got other settings: the others get the reason. */
TEST(test_cannot)
{
    run((struct scene){.board.at = -1,
                       .broken_config = "transport=nonsense",
                       .status = TRIB_ERR_PEER_LOST,
                       .status_1 = TRIB_ERR_CONFIG,
                       .words = {"nonsense"},
                       .others = "failed during the start: "},
        3, "transport=shm");
    run((struct scene){.board.at = -1,
                       .broken_config = "transport=shm;window=3",
                       .status = TRIB_ERR_MISMATCH,
                       .words = {"window=3"},
                       .others = "rank 1"},
        3, "transport=shm");
    run((struct scene){.board.at = -1,
                       .told = 4,
                       .status = TRIB_ERR_MISMATCH,
                       .words = {"set the same trib_opts_t.ranks on all ranks"},
                       .others = "was started with 4 ranks"},
        3, "transport=shm");
}

/* Ranks of other releases and builds are named, in the same way on all ranks. */
TEST(test_other_release)
{
    static const struct {
        enum lie lie;
        int at; /* 0 is the boot exchange, 1 the first message of the wireup */
        const char *words;
    } rows[] = {
        {OLD_MEETING, 0, "install the same version"},
        {OLD_RELEASE, 0, "has Tributary 9.9.9, rank "},
        {OLD_MESSAGE, 1, "has Tributary 9.9.9, rank 0 (host "},
        {OLD_BUILD, 1, "wireup messages, versions 17 and 16: install"},
    };

    assert_int_equal(strlen(trib_version()), 5);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        run((struct scene){.board = {.lie = rows[i].lie, .at = rows[i].at},
                           .status = TRIB_ERR_MISMATCH,
                           .words = {rows[i].words},
                           .others = rows[i].words},
            3, "transport=shm");
}

static int refused(struct ranks_self *self)
{
    struct seat seat = {NULL, 0, 0};
    trib_comm_t *comm;
    trib_opts_t opts = sized(trib_opts_t, .allgather = gather, .allgather_arg = &seat);

    ranks_expect(self, trib_init(&opts, &comm), TRIB_ERR_CONFIG, "trib_init");
    ranks_assert(self, ranks_has(trib_last_error(NULL), WORDS("rank_plus_1", "ranks")));
    opts.rank_plus_1 = 1;
    opts.ranks = 2;
    opts.root = "localhost:7";
    ranks_expect(self, trib_init(&opts, &comm), TRIB_ERR_CONFIG, "trib_init");
    ranks_assert(self, ranks_has(trib_last_error(NULL), WORDS("root", "allgather")));
    return 0;
}

TEST(test_refused)
{
    ranks_pass(.size = 1, .fn = refused, .bare = true, .noisy = true);
}
