/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Elements that peers read by address: every such collective on unregistered memory,
 * around the sizes of chunks and reads, in place where allowed, two steps each. Peers
 * are lost, abort, or advertise memory that they do not have.
 */
#include "tests/pipeline/payload/payload_rig.h"

#include <sys/mman.h>

#include "pipeline/link/advert.h"
#include "pipeline/payload/peer_reads.h"
#include "tests/harness/ranks.h"

#define N_OF(array) (sizeof(array) / sizeof((array)[0]))

enum { PIECE = 4096 }; /* float32, 16 KiB */

/* Counts the reads of all engines; they fail if `fails` is an error. */
static struct {
    struct trib_transport_ops ops;
    trib_status_t (*read)(struct trib_transport *t, int peer, uint64_t from, void *to,
                          size_t len);
    int n;
    size_t bytes;
    trib_status_t fails;
} counted;

static trib_status_t count_read(struct trib_transport *t, int peer, uint64_t from,
                                void *to, size_t len)
{
    counted.n++;
    counted.bytes += len;
    return counted.fails != TRIB_OK ? trib_fail(t->err, counted.fails, "it is gone")
                                    : counted.read(t, peer, from, to, len);
}

/* Make the engines, whose buffers now come from malloc, announce that they read. */
static void let_read(struct engines *t)
{
    for (int i = 0; i < t->n; i++) {
        struct trib_engine *e = &t->side[i].engine;
        if (e->transport->ops != &counted.ops) {
            counted.ops = *e->transport->ops;
            counted.read = counted.ops.read;
            counted.ops.read = count_read;
        }
        for (int k = 0; k < t->n; k++)
            if (k != i)
                assert_ok(
                    e->transport->ops->reach(e->transport, k, &e->peers[k].address));
        e->transport->ops = &counted.ops;
        t->side[i].x = malloc(t->floats * sizeof(float));
        t->side[i].y = malloc(t->floats * sizeof(float));
        assert_true(t->side[i].x && t->side[i].y);
    }
    counted.n = 0;
    counted.bytes = 0;
    counted.fails = TRIB_OK;
}

static struct rig open_read(const struct payload_case *c)
{
    struct rig r = rig_open_bare(c);

    let_read(r.engines);
    for (int i = 0; i < c->ranks; i++) {
        struct engine_side *s = rig_side(&r, i);
        rig_plan(&r, i, &s->run);
        assert_ok(trib_run_prepare(&s->engine, &s->run));
        assert_true(s->run.reads);
    }
    return r;
}

static void close_read(struct rig *r)
{
    for (int i = 0; i < r->c.ranks; i++) {
        free(rig_side(r, i)->x);
        free(rig_side(r, i)->y);
    }
    rig_close(r);
}

/* Returns element i of a rank's result, of collectives that are no sum of all. */
static float expected(const struct rig *r, int rank, int step, size_t i)
{
    const trib_coll_t coll = r->c.desc.op.coll;
    float sum = 0;

    if (coll == TRIB_BROADCAST)
        return rig_given(0, step, i);
    if (coll == TRIB_ALLGATHER) /* a rank's block is the first of its input */
        return rig_given((int)(i / r->c.count), step,
                         r->c.out_of_place ? i % r->c.count : i);
    for (int k = 0; k < rank + (coll == TRIB_SCAN); k++)
        sum += rig_given(k, step, i);
    return sum;
}

static void check_result(const struct rig *r, int step)
{
    const bool first = r->c.desc.op.coll == TRIB_EXSCAN; /* rank 0 gets nothing */

    if (r->c.desc.op.coll == TRIB_REDUCE_SCATTER) {
        rig_right(r, step, 0);
        return;
    }
    rig_ok(r);
    for (int rank = first; rank < r->c.ranks; rank++)
        for (size_t i = 0; i < rig_total(r); i++)
            if (rig_get(r, rig_result(r, rank), i) != expected(r, rank, step, i))
                fail_msg("%s by %s of %zu, %s: element %zu of rank %d is %g, not %g",
                         trib_coll_name(r->c.desc.op.coll), r->c.algorithm, r->c.count,
                         r->c.out_of_place ? "out of place" : "in place", i, rank,
                         (double)rig_get(r, rig_result(r, rank), i),
                         (double)expected(r, rank, step, i));
}

static void check_case(const struct payload_case *c)
{
    struct rig r = open_read(c);

    for (int step = 0; step < 2; step++) {
        rig_step(&r, step);
        check_result(&r, step);
    }
    /* A scan in place sends what its sum replaces. */
    if (c->out_of_place || !trib_coll_is_prefix(c->desc.op.coll))
        assert_true(counted.n > 0);
    close_read(&r);
}

static const struct {
    trib_coll_t coll;
    const char *algorithm;
} cases[] = {
    {TRIB_ALLGATHER, "ring"},
    {TRIB_ALLGATHER, "direct"},
    {TRIB_ALLGATHER, "halving-doubling"},
    {TRIB_BROADCAST, "flat"},
    {TRIB_BROADCAST, "ring"},
    {TRIB_BROADCAST, "tree"},
    {TRIB_REDUCE_SCATTER, "direct"},
    {TRIB_REDUCE_SCATTER, "ring"},
    {TRIB_REDUCE_SCATTER, "halving-doubling"},
    {TRIB_SCAN, "flat"},
    {TRIB_SCAN, "ring"},
    {TRIB_SCAN, "doubling"},
    {TRIB_EXSCAN, "flat"},
    {TRIB_EXSCAN, "ring"},
    {TRIB_EXSCAN, "doubling"},
};

/* The counts are one chunk, an element more, and more than a read for a sum. */
TEST(test_collectives)
{
    static const size_t counts[] = {PIECE, PIECE + 1, 19 * PIECE - 5};

    for (size_t k = 0; k < 2 * N_OF(cases) * N_OF(counts); k++) {
        const size_t which = k / 2 % N_OF(cases);
        const struct payload_case c = {
            .algorithm = cases[which].algorithm,
            .ranks = 4,
            .count = counts[k / 2 / N_OF(cases)],
            .out_of_place = k % 2,
            .transport = "shm",
            .desc = {.op = {.coll = cases[which].coll, .root = 0},
                     .piece = PIECE,
                     .zero_copy = true}};
        check_case(&c);
    }
}

/* A vector of 20 chunks is read by few calls, each byte once. */
TEST(test_ahead)
{
    const size_t count = 20 * PIECE, bytes = count * sizeof(float);
    struct payload_case c = {
        .algorithm = "flat",
        .ranks = 2,
        .count = count,
        .out_of_place = true,
        .transport = "shm",
        .desc = {.op.coll = TRIB_EXSCAN, .piece = PIECE, .zero_copy = true}};

    struct rig r = open_read(&c);
    rig_step(&r, 0);
    check_result(&r, 0);
    assert_int_equal(counted.n, 1);
    assert_int_equal(counted.bytes, bytes);
    close_read(&r);
    c.desc.op.coll = TRIB_SCAN;
    r = open_read(&c);
    rig_step(&r, 0);
    check_result(&r, 0);
    assert_int_equal(counted.n, (bytes + (256 << 10) - 1) / (256 << 10));
    assert_int_equal(counted.bytes, bytes);
    close_read(&r);
}

/* No address is advertised where reading does not pay off. */
TEST(test_not_read)
{
    static const struct trib_run_desc none[] = {
        {.op.coll = TRIB_ALLREDUCE, .piece = PIECE, .zero_copy = true},
        {.op.coll = TRIB_SCAN, .piece = PIECE - 64, .zero_copy = true},
        {.op.coll = TRIB_SCAN, .piece = PIECE},
        {.op.coll = TRIB_SCAN, .piece = PIECE, .zero_copy = true, .check.sum = true},
        {.op.coll = TRIB_SCAN, .piece = PIECE, .zero_copy = true, .may_undo = true},
    };

    for (size_t k = 0; k < N_OF(none); k++) {
        const struct payload_case c = {.algorithm = "flat",
                                       .ranks = 2,
                                       .count = 2 * PIECE,
                                       .transport = "shm",
                                       .desc = none[k]};
        struct rig r = rig_open_bare(&c);
        let_read(r.engines);
        struct engine_side *s = rig_side(&r, 0);
        rig_plan(&r, 0, &s->run);
        assert_ok(trib_run_prepare(&s->engine, &s->run));
        assert_false(s->run.reads);
        close_read(&r);
    }
}

/* Rank 1 reads one chunk of rank 0. */
static const struct payload_case one_read = {
    .algorithm = "flat",
    .ranks = 2,
    .count = PIECE,
    .out_of_place = true,
    .transport = "shm",
    .desc = {.op.coll = TRIB_EXSCAN, .piece = PIECE, .zero_copy = true}};

/* A read fails because the peer died or has no such memory. */
TEST(test_failures)
{
    static const trib_status_t made[] = {TRIB_ERR_PEER_LOST, TRIB_ERR_RANGE,
                                         TRIB_ERR_SYSTEM};
    static const trib_status_t seen[] = {TRIB_ERR_PEER_LOST, TRIB_ERR_PROTOCOL,
                                         TRIB_ERR_SYSTEM};

    for (int k = 0; k < 3; k++) {
        struct rig r = open_read(&one_read);
        counted.fails = made[k];
        rig_fill(&r, 0);
        rig_start_one(&r, 0);
        rig_start_one(&r, 1);
        for (int i = 0; i < 100; i++)
            (void)trib_engine_progress(&rig_side(&r, i % 2)->engine);
        assert_status(rig_side(&r, 1)->run.now.status, seen[k]);
        close_read(&r);
    }
}

/* The sender fails while its frames are in flight, and its caller overwrites the
 * buffer: the receiver does not use the new content as a result. */
TEST(test_sender_fails)
{
    struct rig r = open_read(&one_read);
    struct engine_side *sender = rig_side(&r, 0), *receiver = rig_side(&r, 1);

    rig_fill(&r, 0);
    rig_start_one(&r, 0);
    rig_start_one(&r, 1);
    (void)trib_engine_progress(&receiver->engine);
    (void)trib_engine_progress(&sender->engine);
    assert_int_equal(counted.n, 0);
    trib_engine_fail(&sender->engine, TRIB_ERR_ABORTED, "the buffer is needed");
    memset(sender->x, 0xff, PIECE * sizeof(float));
    (void)trib_engine_progress(&receiver->engine);
    assert_int_equal(counted.n, 1);
    assert_int_equal(receiver->run.now.state, TRIB_RUN_DONE);
    assert_status(receiver->run.now.status, TRIB_ERR_ABORTED);
    close_read(&r);
}

/* An ADVERT carries addresses, which are no regions. */
TEST(test_claims)
{
    struct trib_ref ref;
    static const uint8_t memory[8];

    trib_ref_address(&ref, memory + 3, 3, 8);
    assert_true(trib_ref_is_addressed(&ref));
    assert_int_equal(ref.origin, (int64_t)(uintptr_t)memory);
    struct trib_advert advert = {.send = ref, .recv = ref}, got;
    uint8_t bytes[TRIB_ADVERT_MAX];
    const size_t n = trib_advert_bytes(&advert);
    trib_advert_write(&advert, bytes);
    assert_true(trib_advert_read(bytes, n, &got));
    assert_true(trib_ref_is_addressed(&got.send) && trib_ref_is_addressed(&got.recv));
    assert_int_equal(got.recv.origin, ref.origin);
    assert_int_equal(got.recv.hi, 8);
    /* "The region of the first" is no region. */
    const uint16_t same = 0xffff;
    memcpy(bytes + n / 2 + offsetof(struct trib_ref, blob.len), &same, sizeof(same));
    assert_false(trib_advert_read(bytes, n, &got));
}

enum { LONG = 1 << 18 }; /* float32, 1 MiB */

/* Rank 1 advertises its buffer, then dies or ends the operation, and overwrites or
 * unmaps the buffer. Rank 0, which polls later, must not use the new content. */
enum end { DIES, ABORTS, UNMAPS };

static void offer(struct ranks_self *self, trib_plan_t *plan, float *x)
{
    const enum end how = *(const enum end *)self->arg;

    ranks_ok(self, trib_plan_start(plan));
    for (int i = 0; i < 1000; i++)
        (void)trib_plan_test(plan);
    if (how == DIES)
        raise(SIGKILL);
    ranks_ok(self, trib_comm_abort(self->comm, "the buffer is needed"));
    ranks_expect(self, trib_plan_wait(plan), TRIB_ERR_ABORTED, "an aborted plan");
    if (how == ABORTS)
        memset(x, 0xff, LONG * sizeof(*x));
    else
        munmap(x, LONG * sizeof(*x));
    atomic_store(&self->slot->phase, 1);
}

static int give_up(struct ranks_self *self)
{
    const enum end how = *(const enum end *)self->arg;
    float *x = mmap(NULL, LONG * sizeof(*x), PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    trib_plan_t *plan;
    float one = 1;
    trib_desc_t desc =
        sized(trib_desc_t, .send = NULL, .recv = x, .count = LONG, .root = 1);

    ranks_ok(self, trib_allreduce(self->comm, NULL, &one, 1, TRIB_F32, TRIB_SUM));
    ranks_ok(self, trib_plan_create(self->comm, TRIB_BROADCAST, &desc, &plan));
    if (self->rank == 1) {
        offer(self, plan, x);
    } else {
        const struct ranks_slot *peer = self->slot + 1;
        const double until = ranks_seconds() + 0.2;
        while (how == DIES ? ranks_seconds() < until : !atomic_load(&peer->phase))
            usleep(1000);
        trib_status_t st = trib_plan_start(plan);
        if (st == TRIB_OK)
            st = trib_plan_wait(plan);
        ranks_expect(self, st, how == DIES ? TRIB_ERR_PEER_LOST : TRIB_ERR_ABORTED,
                     "a broadcast whose root gave up");
    }
    (void)trib_plan_free(plan);
    (void)trib_free_comm(self->comm);
    self->comm = NULL;
    return 0;
}

TEST(test_root_gives_up)
{
    for (int how = DIES; how <= UNMAPS; how++) {
        enum end end = (enum end)how;
        struct ranks r;
        const struct ranks_job job = {.size = 2,
                                      .fn = give_up,
                                      .arg = &end,
                                      .config = "transport=shm",
                                      .noisy = true};
        assert_true(ranks_start(&r, &job));
        ranks_wait(&r);
        assert_false(r.hung);
        assert_int_equal(ranks_failed(&r), how == DIES);
        assert_int_equal(r.slots[0].status, 0);
        ranks_close(&r);
    }
}
