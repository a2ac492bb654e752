/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The parts of a trainer's state, the errors of its communicators, and the bytes sent
 * over them.
 */
#include <string.h>

#include "base/digest.h"
#include "train/trainer/trainer.h"

uint64_t trib_train_kind(const struct trib_trainer *t)
{
    const struct trib_strategy_choice *c = &t->choice;
    uint64_t kind = trib_digest(c->row->name, strlen(c->row->name));

    kind = trib_digest_seeded(c->number, sizeof(c->number), kind);
    kind = trib_digest_seeded(&t->count, sizeof(t->count), kind);
    kind = trib_digest_seeded(&t->optimizer.kind, sizeof(t->optimizer.kind), kind);
    return trib_digest_seeded(&t->parts.n, sizeof(t->parts.n), kind);
}

int trib_train_sections(struct trib_trainer *t,
                        struct trib_train_field out[TRIB_TRAIN_SECTIONS])
{
    const size_t bytes = t->count * sizeof(float);
    const bool shared = !t->choice.row->ops->apart;
    int n = 0;

    out[n++] = (struct trib_train_field){"parameters", t->params, bytes, true};
    for (int v = 0; v < TRIB_TRAIN_OPTIMIZER_VECTORS; v++)
        if (t->optimizer.vector[v])
            out[n++] = (struct trib_train_field){"optimizer", t->optimizer.vector[v],
                                                 bytes, shared};
    if (t->choice.row->ops->fields)
        n += t->choice.row->ops->fields(t, out + n);
    return n;
}

trib_status_t trib_train_set_comm_error(struct trib_trainer *t, trib_status_t status)
{
    return status < 0 ? trib_fail(&t->err, status, "%s", trib_last_error(t->comm))
                      : status;
}

trib_status_t trib_train_set_group_error(struct trib_trainer *t, trib_comm_t *group,
                                         trib_status_t status)
{
    if (status >= 0 || group == t->comm)
        return trib_train_set_comm_error(t, status);
    return trib_fail(&t->err, status, "in a group of %d ranks, as its rank %d: %s",
                     trib_size(group), trib_rank(group), trib_last_error(group));
}

trib_status_t trib_train_set_sum_error(struct trib_trainer *t,
                                       const struct trib_train_sum *sum,
                                       trib_status_t status)
{
    return trib_train_set_group_error(t, trib_train_sum_comm(sum), status);
}

trib_status_t trib_train_agree(struct trib_trainer *t, trib_status_t mine,
                               const char *what)
{
    int32_t lowest = mine == TRIB_OK ? t->ranks : t->rank;
    const trib_status_t st =
        trib_allreduce(t->comm, NULL, &lowest, 1, TRIB_I32, TRIB_MIN);

    if (mine != TRIB_OK || st != TRIB_OK)
        return mine != TRIB_OK ? mine : trib_train_set_comm_error(t, st);
    return lowest == t->ranks ? TRIB_OK
                              : trib_fail(&t->err, TRIB_ERR_INVALID,
                                          "rank %d cannot %s; see its error message",
                                          (int)lowest, what);
}

static uint64_t comm_bytes(const trib_comm_t *comm)
{
    trib_stats_t stats = {.size = sizeof(stats)};

    return trib_stats(comm, &stats) == TRIB_OK ? stats.wire_bytes : 0;
}

uint64_t trib_train_wire_bytes(const struct trib_trainer *t)
{
    const struct trib_strategy_ops *ops = t->choice.row->ops;
    uint64_t bytes = comm_bytes(t->comm);

    for (int i = 0; i < t->n_split; i++)
        bytes += t->split[i] ? comm_bytes(t->split[i]) : 0;
    return bytes + (ops->store_bytes ? ops->store_bytes(t) : 0);
}
