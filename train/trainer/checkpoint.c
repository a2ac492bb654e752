/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Checkpoint format: a header, the parameters, the optimiser's vectors, the strategy's
 * fields, and the states of its sums, each with a header that holds its length.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "train/trainer/trainer.h"

enum { VERSION = 2 };

/* Header of a sum's state. */
struct sum_head {
    uint64_t bytes, ended;
};

static const char magic[8] = "TRIBTRN";

struct head {
    char magic[8];
    uint32_t version;
    uint32_t rank, ranks;
    uint32_t n_sums;
    uint64_t kind; /* digest of the description (trib_train_kind) */
    uint64_t number, updates; /* gradients; steps of the optimiser */
    uint64_t bytes; /* after the header */
    uint64_t digest; /* of these bytes */
};

static trib_status_t check_rest(struct trib_trainer *t)
{
    trib_error_clear(&t->err);
    if (t->begun || (t->choice.row->ops->busy && t->choice.row->ops->busy(t)))
        return trib_fail(&t->err, TRIB_ERR_BUSY,
                         t->begun ? "step %" PRIu64 " has begun: end it first"
                                  : "the sum of step %" PRIu64
                                    " is pending: call trib_trainer_settle first",
                         t->begun ? t->number : t->number - 1);
    return TRIB_OK;
}

static trib_status_t measure(struct trib_trainer *t, size_t *bytes_out)
{
    struct trib_train_field sections[TRIB_TRAIN_SECTIONS];
    const int n = trib_train_sections(t, sections);
    trib_status_t st = TRIB_OK;
    size_t bytes = sizeof(struct head);

    for (int i = 0; i < n; i++)
        bytes += sections[i].bytes;
    for (int i = 0; i < t->n_sums && st == TRIB_OK; i++) {
        size_t state = 0;

        st = trib_train_set_sum_error(
            t, *t->sums[i], trib_train_sum_save(*t->sums[i], NULL, 0, &state));
        bytes += sizeof(struct sum_head) + state;
    }
    *bytes_out = bytes;
    return st;
}

static trib_status_t write_sum(struct trib_trainer *t, struct trib_train_sum *sum,
                               char *to, size_t room, size_t *written)
{
    size_t state = 0;
    const trib_status_t st = trib_train_set_sum_error(
        t, sum,
        trib_train_sum_save(sum, to + sizeof(struct sum_head),
                            room - sizeof(struct sum_head), &state));
    const struct sum_head head = {state, trib_train_sum_ended(sum)};

    memcpy(to, &head, sizeof(head));
    *written = sizeof(head) + state;
    return st;
}

static trib_status_t write_all(struct trib_trainer *t, char *to, size_t bytes)
{
    struct trib_train_field sections[TRIB_TRAIN_SECTIONS];
    const int n = trib_train_sections(t, sections);
    struct head head = {.version = VERSION,
                        .rank = (uint32_t)t->rank,
                        .ranks = (uint32_t)t->ranks,
                        .n_sums = (uint32_t)t->n_sums,
                        .kind = trib_train_kind(t),
                        .number = t->number,
                        .updates = t->optimizer.steps,
                        .bytes = bytes - sizeof(head)};
    trib_status_t st = TRIB_OK;
    size_t at = sizeof(head);

    for (int i = 0; i < n; i++) {
        memcpy(to + at, sections[i].data, sections[i].bytes);
        at += sections[i].bytes;
    }
    for (int i = 0; i < t->n_sums && st == TRIB_OK; i++) {
        size_t written = 0;

        st = write_sum(t, *t->sums[i], to + at, bytes - at, &written);
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
    const struct trib_strategy_ops *ops = trainer->choice.row->ops;
    trib_status_t st = check_rest(trainer);

    if (st == TRIB_OK && state && ops->collect)
        st = ops->collect(trainer);
    if (st == TRIB_OK)
        st = measure(trainer, bytes_out);
    if (st != TRIB_OK || !state)
        return st;
    if (bytes < *bytes_out)
        return trib_fail(&trainer->err, TRIB_ERR_OVERFLOW,
                         "the state has %zu bytes, but the buffer has only %zu",
                         *bytes_out, bytes);
    return write_all(trainer, state, *bytes_out);
}

static trib_status_t check_head(struct trib_trainer *t, const struct head *head,
                                const char *from, size_t bytes)
{
    if (memcmp(head->magic, magic, sizeof(magic)) != 0)
        return trib_fail(&t->err, TRIB_ERR_INVALID,
                         "this is not the state of a trainer");
    if (head->version != VERSION)
        return trib_fail(&t->err, TRIB_ERR_INVALID,
                         "the state has version %u, but this library reads version %d: "
                         "load it with the release that saved it",
                         head->version, VERSION);
    if (head->bytes != bytes - sizeof(*head) ||
        head->digest != trib_digest(from + sizeof(*head), bytes - sizeof(*head)))
        return trib_fail(&t->err, TRIB_ERR_INVALID, "the state is damaged");
    if (head->rank != (uint32_t)t->rank || head->ranks != (uint32_t)t->ranks)
        return trib_fail(&t->err, TRIB_ERR_INVALID,
                         "the state belongs to rank %u of %u, but this is rank %d of "
                         "%d",
                         head->rank, head->ranks, t->rank, t->ranks);
    if (head->kind != trib_train_kind(t))
        return trib_fail(&t->err, TRIB_ERR_INVALID,
                         "the state belongs to another strategy, optimizer or vector");
    return TRIB_OK;
}

static trib_status_t read_sum(struct trib_trainer *t, struct trib_train_sum *sum,
                              const char *from, size_t left, size_t *taken)
{
    struct sum_head head = {0, 0};

    if (left >= sizeof(head))
        memcpy(&head, from, sizeof(head));
    if (left < sizeof(head) || head.bytes > left - sizeof(head))
        return trib_fail(&t->err, TRIB_ERR_INVALID, "the state is too short");
    *taken = sizeof(head) + (size_t)head.bytes;
    return trib_train_set_sum_error(
        t, sum,
        trib_train_sum_load(sum, from + sizeof(head), (size_t)head.bytes, head.ended));
}

static size_t fields_bytes(struct trib_trainer *t)
{
    struct trib_train_field fields[TRIB_TRAIN_FIELDS];
    const struct trib_strategy_ops *ops = t->choice.row->ops;
    const int n = ops->fields ? ops->fields(t, fields) : 0;
    size_t bytes = 0;

    for (int i = 0; i < n; i++)
        bytes += fields[i].bytes;
    return bytes;
}

static trib_status_t read_all(struct trib_trainer *t, const struct head *head,
                              const char *from, size_t bytes)
{
    struct trib_train_field sections[TRIB_TRAIN_SECTIONS];
    const int n = trib_train_sections(t, sections);
    size_t sum_at = sizeof(*head), at = sizeof(*head);
    trib_status_t st = TRIB_OK;

    for (int i = 0; i < n; i++)
        sum_at += sections[i].bytes;
    if (sum_at > bytes)
        return trib_fail(&t->err, TRIB_ERR_INVALID,
                         "the state belongs to other vectors");
    if (t->choice.row->ops->adopt)
        st = t->choice.row->ops->adopt(t, from + sum_at - fields_bytes(t));
    if (st != TRIB_OK)
        return st;
    if (head->n_sums != (uint32_t)t->n_sums)
        return trib_fail(&t->err, TRIB_ERR_INVALID,
                         "the state belongs to other vectors");
    for (int i = 0; i < t->n_sums && st == TRIB_OK; i++) {
        size_t taken = 0;

        st = read_sum(t, *t->sums[i], from + sum_at, bytes - sum_at, &taken);
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
                         "these %zu bytes are not the state of a trainer", bytes);
    memcpy(&head, state, sizeof(head));
    st = check_head(trainer, &head, state, bytes);
    if (st == TRIB_OK)
        st = read_all(trainer, &head, state, bytes);
    if (st != TRIB_OK)
        return st;
    trainer->number = head.number;
    trainer->optimizer.steps = head.updates;
    return trainer->choice.row->ops->loaded ? trainer->choice.row->ops->loaded(trainer)
                                            : TRIB_OK;
}
