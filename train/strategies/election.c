/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/strategies/election.h"

#include <math.h>
#include <string.h>

#include "train/trainer/trainer.h"

static trib_status_t taken(struct trib_trainer *t, const struct trib_train_election *e,
                           trib_status_t st)
{
    return trib_train_set_group_error(t, e->comm, st);
}

trib_status_t trib_train_election_open(struct trib_trainer *t, trib_comm_t *comm,
                                       uint64_t period, uint64_t late,
                                       struct trib_train_election *e)
{
    void *leader = NULL, *candidate = NULL;

    e->comm = comm;
    e->period = period;
    e->late = late;
    trib_status_t st = trib_alloc(comm, t->count * sizeof(float), &leader);
    e->leader = leader;
    if (st == TRIB_OK)
        st = trib_alloc(comm, t->count * sizeof(float), &candidate);
    e->candidate = candidate;
    return taken(t, e, st);
}

static trib_status_t wait_for(struct trib_trainer *t, struct trib_train_election *e,
                              trib_request_t **request)
{
    const uint64_t began = trib_train_now();
    const trib_status_t st = taken(t, e, trib_request_wait(*request));

    trib_request_free(*request);
    *request = NULL;
    t->stats.wait_ns += trib_train_now() - began;
    return st;
}

void trib_train_election_close(struct trib_trainer *t, struct trib_train_election *e)
{
    if (!e->comm)
        return;
    if (e->votes)
        wait_for(t, e, &e->votes);
    if (e->parameters)
        wait_for(t, e, &e->parameters);
    trib_free(e->comm, e->leader);
    trib_free(e->comm, e->candidate);
}

/* A NaN loss never wins. The lowest rank wins a tie. */
static trib_status_t start_vote(struct trib_trainer *t, struct trib_train_election *e,
                                const float *x, double loss)
{
    memcpy(e->candidate, x, t->count * sizeof(float));
    e->vote.loss = isnan(loss) ? HUGE_VAL : loss;
    e->vote.rank = trib_rank(e->comm);
    t->stats.rounds++;
    t->stats.dense_bytes += t->count * sizeof(float);
    return taken(
        t, e,
        trib_iallreduce(e->comm, NULL, &e->vote, 2, TRIB_F64, TRIB_MINLOC, &e->votes));
}

static trib_status_t count_votes(struct trib_trainer *t, struct trib_train_election *e)
{
    trib_status_t st = wait_for(t, e, &e->votes);

    if (st != TRIB_OK)
        return st;
    e->held++;
    e->led += e->vote.rank == trib_rank(e->comm);
    return taken(t, e,
                 trib_ibroadcast(e->comm, e->candidate, t->count, TRIB_F32,
                                 (int)e->vote.rank, &e->parameters));
}

static trib_status_t adopt(struct trib_trainer *t, struct trib_train_election *e,
                           bool *ended)
{
    float *old = e->leader;
    const trib_status_t st = wait_for(t, e, &e->parameters);

    if (st != TRIB_OK)
        return st;
    e->leader = e->candidate;
    e->candidate = old;
    e->elected = true;
    e->follows = e->vote.rank != trib_rank(e->comm);
    *ended = true;
    return TRIB_OK;
}

trib_status_t trib_train_election_finish(struct trib_trainer *t,
                                         struct trib_train_election *e, bool *ended)
{
    trib_status_t st = TRIB_OK;

    *ended = false;
    if (e->votes)
        st = count_votes(t, e);
    return st == TRIB_OK && e->parameters ? adopt(t, e, ended) : st;
}

trib_status_t trib_train_election_step(struct trib_trainer *t,
                                       struct trib_train_election *e, uint64_t number,
                                       const float *x, double loss, bool *ended)
{
    const uint64_t since = (number + 1) % e->period;
    trib_status_t st = TRIB_OK;

    *ended = false;
    if (since == 0)
        st = start_vote(t, e, x, loss);
    else if (since == (e->late + 1) / 2 && e->votes)
        st = count_votes(t, e);
    return st == TRIB_OK && since == e->late ? trib_train_election_finish(t, e, ended)
                                             : st;
}
