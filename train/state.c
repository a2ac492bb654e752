/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Checkpoints: a head, then the parameters, the optimiser's vectors, the fields of the
 * strategy, and the states of its sums, each behind its length.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "train/trainer.h"

enum { SECTIONS = 1 + TRIB_TRAIN_OPTIMIZER_VECTORS + TRIB_TRAIN_FIELDS, VERSION = 1 };

static const char magic[8] = "TRIBTRN";

struct head {
    char magic[8];
    uint32_t version;
    uint32_t rank, ranks;
    uint32_t n_sums;
    uint64_t kind; /* digest of what the description says */
    uint64_t number, updates; /* gradients; steps of the optimiser */
    uint64_t bytes; /* behind the head */
    uint64_t digest; /* of these bytes */
};

/* What must be equal in the trainer that loads a state. */
static uint64_t kind_of(const struct trib_trainer *t)
{
    const struct trib_strategy_choice *c = &t->choice;
    uint64_t kind = trib_digest(c->row->name, strlen(c->row->name));

    kind = trib_digest_seeded(c->number, sizeof(c->number), kind);
    kind = trib_digest_seeded(&t->count, sizeof(t->count), kind);
    kind = trib_digest_seeded(&t->optimizer.kind, sizeof(t->optimizer.kind), kind);
    return trib_digest_seeded(&t->parts.n, sizeof(t->parts.n), kind);
}

/* Memory that is saved as it is. */
static int sections_of(struct trib_trainer *t, struct trib_train_field out[SECTIONS])
{
    const size_t bytes = t->count * sizeof(float);
    int n = 0;

    out[n++] = (struct trib_train_field){t->params, bytes, true};
    for (int v = 0; v < TRIB_TRAIN_OPTIMIZER_VECTORS; v++)
        if (t->optimizer.vector[v])
            out[n++] = (struct trib_train_field){t->optimizer.vector[v], bytes, true};
    if (t->choice.row->ops->fields)
        n += t->choice.row->ops->fields(t, out + n);
    return n;
}

static int sums_of(struct trib_trainer *t, struct trib_train_sum **out[TRIB_TRAIN_SUMS])
{
    return t->choice.row->ops->sums ? t->choice.row->ops->sums(t, out) : 0;
}

static trib_status_t check_rest(struct trib_trainer *t)
{
    trib_error_clear(&t->err);
    if (t->begun || t->choice.row->ops->busy(t))
        return trib_fail(&t->err, TRIB_ERR_BUSY,
                         t->begun ? "step %" PRIu64 " has begun: end it first"
                                  : "the sum of step %" PRIu64
                                    " is under way: call trib_trainer_settle first",
                         t->begun ? t->number : t->number - 1);
    return TRIB_OK;
}

static trib_status_t measure(struct trib_trainer *t, size_t *bytes_out)
{
    struct trib_train_field sections[SECTIONS];
    struct trib_train_sum **sums[TRIB_TRAIN_SUMS];
    const int n = sections_of(t, sections), n_sums = sums_of(t, sums);
    trib_status_t st = TRIB_OK;
    size_t bytes = sizeof(struct head);

    for (int i = 0; i < n; i++)
        bytes += sections[i].bytes;
    for (int i = 0; i < n_sums && st == TRIB_OK; i++) {
        size_t state = 0;

        st = trib_train_taken(t, trib_train_sum_save(*sums[i], NULL, 0, &state));
        bytes += sizeof(uint64_t) + state;
    }
    *bytes_out = bytes;
    return st;
}

static trib_status_t write_sum(struct trib_trainer *t, struct trib_train_sum *sum,
                               char *to, size_t room, size_t *written)
{
    size_t state = 0;
    const trib_status_t st =
        trib_train_taken(t, trib_train_sum_save(sum, to + sizeof(uint64_t),
                                                room - sizeof(uint64_t), &state));
    const uint64_t len = state;

    memcpy(to, &len, sizeof(len));
    *written = sizeof(len) + state;
    return st;
}

static trib_status_t write_all(struct trib_trainer *t, char *to, size_t bytes)
{
    struct trib_train_field sections[SECTIONS];
    struct trib_train_sum **sums[TRIB_TRAIN_SUMS];
    const int n = sections_of(t, sections), n_sums = sums_of(t, sums);
    struct head head = {.version = VERSION,
                        .rank = (uint32_t)t->rank,
                        .ranks = (uint32_t)t->ranks,
                        .n_sums = (uint32_t)n_sums,
                        .kind = kind_of(t),
                        .number = t->number,
                        .updates = t->optimizer.steps,
                        .bytes = bytes - sizeof(head)};
    trib_status_t st = TRIB_OK;
    size_t at = sizeof(head);

    for (int i = 0; i < n; i++) {
        memcpy(to + at, sections[i].data, sections[i].bytes);
        at += sections[i].bytes;
    }
    for (int i = 0; i < n_sums && st == TRIB_OK; i++) {
        size_t written = 0;

        st = write_sum(t, *sums[i], to + at, bytes - at, &written);
        at += written;
    }
    memcpy(head.magic, magic, sizeof(magic));
    head.digest = trib_digest(to + sizeof(head), bytes - sizeof(head));
    memcpy(to, &head, sizeof(head));
    return st;
}

trib_status_t trib_trainer_save(trib_trainer_t *trainer, void *state, size_t bytes,
                                size_t *bytes_out)
{
    trib_status_t st = check_rest(trainer);

    if (st == TRIB_OK)
        st = measure(trainer, bytes_out);
    if (st != TRIB_OK || !state)
        return st;
    if (bytes < *bytes_out)
        return trib_fail(&trainer->err, TRIB_ERR_OVERFLOW,
                         "the state has %zu bytes, and there is room for %zu",
                         *bytes_out, bytes);
    return write_all(trainer, state, *bytes_out);
}

static trib_status_t check_head(struct trib_trainer *t, const struct head *head,
                                const char *from, size_t bytes)
{
    if (memcmp(head->magic, magic, sizeof(magic)) != 0 || head->version != VERSION)
        return trib_fail(&t->err, TRIB_ERR_INVALID,
                         "these bytes are no state of a trainer of this version");
    if (head->bytes != bytes - sizeof(*head) ||
        head->digest != trib_digest(from + sizeof(*head), bytes - sizeof(*head)))
        return trib_fail(&t->err, TRIB_ERR_INVALID, "the state is damaged");
    if (head->rank != (uint32_t)t->rank || head->ranks != (uint32_t)t->ranks)
        return trib_fail(&t->err, TRIB_ERR_INVALID,
                         "the state is of rank %u of %u, and this is rank %d of %d",
                         head->rank, head->ranks, t->rank, t->ranks);
    if (head->kind != kind_of(t))
        return trib_fail(&t->err, TRIB_ERR_INVALID,
                         "the state is of another strategy, optimiser or vector");
    return TRIB_OK;
}

static trib_status_t read_sum(struct trib_trainer *t, struct trib_train_sum *sum,
                              const char *from, size_t left, size_t *taken)
{
    uint64_t len = 0;

    if (left < sizeof(len))
        return trib_fail(&t->err, TRIB_ERR_INVALID, "the state is too short");
    memcpy(&len, from, sizeof(len));
    if (len > left - sizeof(len))
        return trib_fail(&t->err, TRIB_ERR_INVALID, "the state is too short");
    *taken = sizeof(len) + (size_t)len;
    return trib_train_taken(t,
                            trib_train_sum_load(sum, from + sizeof(len), (size_t)len));
}

static trib_status_t read_all(struct trib_trainer *t, const struct head *head,
                              const char *from, size_t bytes)
{
    struct trib_train_field sections[SECTIONS];
    struct trib_train_sum **sums[TRIB_TRAIN_SUMS];
    const int n = sections_of(t, sections), n_sums = sums_of(t, sums);
    size_t sum_at = sizeof(*head), at = sizeof(*head);
    trib_status_t st = TRIB_OK;

    for (int i = 0; i < n; i++)
        sum_at += sections[i].bytes;
    if (sum_at > bytes || head->n_sums != (uint32_t)n_sums)
        return trib_fail(&t->err, TRIB_ERR_INVALID, "the state is of other vectors");
    for (int i = 0; i < n_sums && st == TRIB_OK; i++) {
        size_t taken = 0;

        st = read_sum(t, *sums[i], from + sum_at, bytes - sum_at, &taken);
        sum_at += taken;
    }
    for (int i = 0; i < n && st == TRIB_OK; i++) {
        memcpy(sections[i].data, from + at, sections[i].bytes);
        at += sections[i].bytes;
    }
    return st;
}

trib_status_t trib_trainer_load(trib_trainer_t *trainer, const void *state,
                                size_t bytes)
{
    trib_status_t st = check_rest(trainer);
    struct head head;

    if (st != TRIB_OK)
        return st;
    if (bytes < sizeof(head))
        return trib_fail(&trainer->err, TRIB_ERR_INVALID,
                         "%zu bytes are no state of a trainer", bytes);
    memcpy(&head, state, sizeof(head));
    st = check_head(trainer, &head, state, bytes);
    if (st == TRIB_OK)
        st = read_all(trainer, &head, state, bytes);
    if (st != TRIB_OK)
        return st;
    trainer->number = head.number;
    trainer->optimizer.steps = head.updates;
    return TRIB_OK;
}
