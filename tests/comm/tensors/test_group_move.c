/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank dies during a step of a group. The others recreate the group without it, move
 * the state of its tensors, and repeat the step with the earlier residuals.
 */
#include "tests/harness/tribtest.h"

#include <tributary/elastic.h>

#include "build-config.h"
#include "comm/tensors/tensor_group.h"
#include "tests/comm/tensors/tensors.h"

enum { RANKS = 4, TENSORS = 23, STEPS = 6, DIES_AT = 3, VICTIM = 0 };

static const char *const codecs[] = {"topk:ratio=0.1", "none"};

struct net {
    struct ranks_self *self;
    trib_comm_t *comm;
    trib_group_t *group;
    struct tensors t;
    float *held[3][TENSORS_MOST]; /* after step number % 3 */
};

static void free_tensors(struct net *n)
{
    for (size_t i = 0; i < 3 * n->t.n; i++)
        free(n->held[i % 3][i / 3]);
    tensors_free(&n->t);
}

static trib_group_t *make(struct net *n, trib_comm_t *comm)
{
    trib_group_opts_t opts = TRIB_GROUP_OPTS_INIT;
    trib_group_t *group;

    opts.feed = TRIB_FEED_BACKWARD;
    if (trib_group_create(comm, n->t.of, n->t.n, &opts, &group) != TRIB_OK)
        ranks_die(n->self, "%s", trib_last_error(comm));
    return group;
}

static bool is_coded(const struct net *n, size_t i)
{
    return n->t.of[i].count && strcmp(n->t.of[i].codec, "none");
}

static void look(struct net *n, float **held)
{
    for (size_t i = 0; i < n->t.n; i++) {
        if (!is_coded(n, i))
            continue;
        const struct trib_group_tensor *t = &n->group->tensors[i];
        ranks_ok(n->self, trib_plan_residual_get(n->group->buckets.at[t->bucket].plan,
                                                 0, n->t.of[i].count, held[i]));
    }
}

static float input(int rank, int step, size_t tensor, size_t i)
{
    return (float)((int)(oracle_mix((uint64_t)step * 4099 + (uint64_t)rank * 777 +
                                    tensor * 31 + i) %
                         7) -
                   3);
}

static void buffers(const struct net *n, const void **sends, void **recvs)
{
    for (size_t i = 0; i < n->t.n; i++) {
        sends[i] = n->t.of[i].send;
        recvs[i] = n->t.of[i].recv;
    }
}

static trib_status_t step(struct net *n, int number)
{
    const void *sends[TENSORS];
    void *recvs[TENSORS];

    buffers(n, sends, recvs);
    trib_status_t st = trib_group_start_with(n->group, sends, recvs);
    for (size_t i = 0; i < n->t.n; i++)
        for (size_t k = 0; n->t.of[i].dtype == TRIB_F32 && k < n->t.of[i].count; k++)
            ((float *)(void *)n->t.send[i])[k] = input(n->self->rank, number, i, k);
    for (size_t i = n->t.n; i-- > 0 && st == TRIB_OK;) {
        if (number == DIES_AT && n->self->rank == VICTIM && i == n->t.n / 2)
            raise(SIGKILL);
        st = trib_group_ready(n->group, i);
    }
    return st == TRIB_OK ? trib_group_wait(n->group) : st;
}

/* Check that the result is the sum of all contributions of the step. */
static trib_status_t check(struct net *n, int number)
{
    float **was = n->held[number % 3], **is = n->held[(number + 1) % 3];
    trib_status_t st = TRIB_OK;

    for (size_t i = 0; i < n->t.n && st == TRIB_OK; i++) {
        const size_t count = n->t.of[i].count;
        if (n->t.of[i].dtype != TRIB_F32)
            continue;
        double *sent = calloc(count + 1, sizeof(*sent));
        ranks_assert(n->self, sent);
        for (size_t k = 0; k < count; k++) {
            sent[k] = (double)input(n->self->rank, number, i, k);
            if (is_coded(n, i))
                sent[k] += (double)was[i][k] - (double)is[i][k];
        }
        st = trib_allreduce(n->comm, NULL, sent, count, TRIB_F64, TRIB_SUM);
        for (size_t k = 0; k < count && st == TRIB_OK; k++)
            ranks_assert(n->self,
                         (double)((float *)(void *)n->t.recv[i])[k] == sent[k]);
        free(sent);
    }
    return st;
}

static void recover(struct net *n, int *done)
{
    trib_comm_t *smaller;
    int64_t steps = *done;
    const void *sends[TENSORS];
    void *recvs[TENSORS];

    buffers(n, sends, recvs);
    if (trib_comm_shrink(n->comm, &smaller) != TRIB_OK)
        ranks_die(n->self, "%s", trib_last_error(NULL));
    ranks_assert(n->self, trib_size(smaller) == RANKS - 1);
    ranks_ok(n->self, trib_allreduce(smaller, NULL, &steps, 1, TRIB_I64, TRIB_MIN));
    trib_group_t *group;
    if (trib_group_move(smaller, n->group, sends, recvs, (uint64_t)steps, &group) !=
        TRIB_OK)
        ranks_die(n->self, "%s", trib_last_error(smaller));
    ranks_ok(n->self, trib_group_free(n->group));
    (void)trib_free_comm(n->comm);
    n->group = group;
    n->comm = smaller;
    *done = (int)steps;
    float **now = n->held[(steps + 2) % 3];
    look(n, now);
    for (size_t i = 0; i < n->t.n; i++)
        if (is_coded(n, i))
            ranks_assert(n->self, memcmp(n->held[steps % 3][i], now[i],
                                         n->t.of[i].count * sizeof(float)) == 0);
}

static int act(struct ranks_self *self)
{
    struct net n = {.self = self};
    size_t coded = 0;

    self->opts.rewind = 1;
    ranks_ok(self, trib_init(&self->opts, &n.comm));
    tensors_make(self, &n.t, TENSORS, 7, codecs, 2);
    for (size_t i = 0; i < TENSORS; i++) {
        coded += is_coded(&n, i);
        for (int k = 0; k < 3; k++)
            n.held[k][i] = calloc(n.t.of[i].count + 1, sizeof(float));
    }
    ranks_assert(self, coded > 2);
    n.group = make(&n, n.comm);
    for (int done = 0; done < STEPS;) {
        trib_status_t st = step(&n, done);
        if (st == TRIB_OK) {
            look(&n, n.held[(done + 1) % 3]);
            st = check(&n, done);
        }
        if (st == TRIB_OK)
            done++;
        else
            recover(&n, &done);
    }
    ranks_ok(self, trib_group_free(n.group));
    ranks_ok(self, trib_free_comm(n.comm));
    free_tensors(&n);
    return 0;
}

TEST_ON(test_goes_on, "shm", "tcp", IF_UCX("ucx"))
{
    struct ranks r;
    const struct ranks_job job = {.size = RANKS,
                                  .fn = act,
                                  .config = *state,
                                  .bare = true,
                                  .noisy = true,
                                  .seconds = 40};

    assert_true(ranks_start(&r, &job));
    ranks_wait(&r);
    for (int i = 0; i < RANKS; i++)
        if (i != VICTIM && r.slots[i].status != 0)
            fail_msg("rank %d: %s", i, r.slots[i].text);
    ranks_close(&r);
}

/* A newcomer gets the group that the others have. */
RANKS_TEST_ON(test_comes, ("shm", "tcp"), .size = RANKS, .noisy = true)
{
    struct net n = {.self = self, .comm = self->comm};
    const bool is_new = self->rank == 1;
    char a[4000], b[4000];
    trib_comm_t *fewer;
    trib_group_t *old = NULL;

    ranks_ok(self, trib_split(self->comm, is_new ? -1 : 0, self->rank, &fewer));
    tensors_make(self, &n.t, TENSORS, 7, codecs, 2);
    for (size_t i = 0; i < 3 * (size_t)TENSORS; i++)
        n.held[i % 3][i / 3] = calloc(n.t.of[i / 3].count + 1, sizeof(float));
    if (fewer)
        old = make(&n, fewer);
    if (trib_group_move(n.comm, old, NULL, NULL, 0, &n.group) != TRIB_OK)
        ranks_die(self, "%s", trib_last_error(n.comm));
    trib_group_t *other = make(&n, n.comm);
    ranks_ok(self, trib_group_explain(n.group, a, sizeof(a)));
    ranks_ok(self, trib_group_explain(other, b, sizeof(b)));
    ranks_assert(self, strcmp(a, b) == 0);
    ranks_ok(self, trib_group_free(other));
    for (int k = 0; k < 2; k++) {
        ranks_ok(self, step(&n, k));
        look(&n, n.held[(k + 1) % 3]);
        ranks_ok(self, check(&n, k));
    }
    ranks_ok(self, trib_group_free(n.group));
    ranks_ok(self, trib_group_free(old));
    ranks_ok(self, trib_free_comm(fewer));
    free_tensors(&n);
    return 0;
}

RANKS_TEST_ON(test_refusals, ("shm"), .size = RANKS, .noisy = true)
{
    struct net n = {.self = self, .comm = self->comm};

    tensors_make(self, &n.t, TENSORS, 7, codecs, 2);
    trib_group_t *group = make(&n, n.comm), *same = make(&n, n.comm);
    n.t.n--;
    trib_group_t *fewer = make(&n, n.comm);
    n.t.n++;
    n.t.of[5].name = "another";
    trib_group_t *other = make(&n, n.comm);
    const bool odd = self->rank == 1;
    trib_status_t st = trib_group_state_move(group, odd ? fewer : same, 0);
    ranks_refused(self, st, TRIB_ERR_INVALID,
                  odd ? (const char *const[]){"23 tensors, the old one 22", NULL}
                      : (const char *const[]){"another rank", NULL});
    st = trib_group_state_move(group, other, 0);
    ranks_refused(self, st, TRIB_ERR_INVALID,
                  (const char *const[]){"tensor 5", "another", NULL});
    st = trib_group_state_move(group, group, 0);
    ranks_refused(self, st, TRIB_ERR_INVALID,
                  (const char *const[]){"is the old one", NULL});
    ranks_assert(self, trib_group_state_move(NULL, group, 0) == TRIB_ERR_INVALID);
    st = trib_group_state_move(group, same, odd ? 1 : 0);
    ranks_refused(self, st, TRIB_ERR_INVALID,
                  (const char *const[]){"tensor \"layer", "steps is", NULL});
    ranks_ok(self, trib_group_state_move(group, same, 0));
    trib_group_t *moved;
    trib_comm_t *split;
    ranks_ok(self, trib_split(n.comm, 0, self->rank, &split));
    st = trib_group_move(split, odd ? fewer : same, NULL, NULL, 0, &moved);
    ranks_assert(self, st == TRIB_ERR_INVALID && !moved &&
                           strstr(trib_last_error(split), "differ"));
    st = trib_group_move(n.comm, odd ? same : NULL, NULL, NULL, 0, &moved);
    ranks_refused(self, st, TRIB_ERR_INVALID,
                  (const char *const[]){odd ? "already" : "rank 1 failed", NULL});
    st = trib_group_move(split, NULL, NULL, NULL, 0, &moved);
    ranks_assert(self, st == TRIB_ERR_INVALID && !moved &&
                           strstr(trib_last_error(split), "no rank has passed"));
    ranks_ok(self, trib_free_comm(split));
    ranks_ok(self, trib_group_free(group));
    ranks_ok(self, trib_group_free(same));
    ranks_ok(self, trib_group_free(fewer));
    ranks_ok(self, trib_group_free(other));
    free_tensors(&n);
    return 0;
}
