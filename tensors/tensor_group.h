/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The inside of a group of tensors.
 *
 * A bucket has one plan, and is started when all of its tensors are ready on all ranks.
 * All ranks have the same buckets, as these follow from what the ranks compared when
 * they made the group, or agreed on after the first step. All ranks start them in the
 * same order, as each decision follows from an agreement of all ranks (step.c).
 */
#ifndef TENSORS_TENSOR_GROUP_H
#define TENSORS_TENSOR_GROUP_H

#include <assert.h>

#include <tributary/group.h>

#include "comm/communicator.h"

#define TRIB_BUCKET_NONE UINT32_MAX /* of a tensor without elements */

struct trib_group_tensor {
    trib_tensor_t desc; /* its texts are copies that the group frees */
    size_t bytes;
    bool coded;
    bool alone; /* is always a bucket by itself */
    uint32_t bucket; /* index, or TRIB_BUCKET_NONE */
    size_t offset; /* bytes from the beginning of its bucket */
    /* The step: */
    const void *send;
    void *recv;
    bool ready, done;
    uint32_t ready_us; /* since the start of the step */
};

struct trib_bucket {
    trib_plan_t *plan;
    uint32_t first, n; /* place in trib_buckets.members */
    size_t bytes, elements;
    char *buffer; /* where several tensors are summed, unless their own memory is in one
                   * piece; NULL: one tensor */
    /* The step: */
    bool direct; /* summed in the memory of its tensors */
    bool started;
    uint32_t n_ready; /* tensors */
    uint32_t ready_seq; /* 1 for the bucket that was ready first; 0: not ready */
};

struct trib_buckets {
    uint32_t n;
    struct trib_bucket *at; /* [n] */
    uint32_t *members; /* tensors, bucket by bucket, by ascending index */
    uint32_t *order; /* [n] buckets by descending priority */
    void *memory; /* of all buffers; or NULL */
};

/* A step of a group; step.c. */
struct trib_group_step {
    bool running;
    bool told; /* that it has ended */
    trib_status_t failed; /* why the newest step did not end; or TRIB_OK */
    uint64_t begin; /* ns */
    uint64_t starts; /* comm->starts after the newest start of this group */
    uint32_t n_started, n_ended; /* buckets; queue[n_ended … n_started) are running */
    uint32_t n_ready; /* buckets that are ready on this rank */
    size_t tensors_ready, tensors_done;
    bool news; /* a bucket has become ready since this rank entered an agreement */
    bool asking; /* the agreement runs */
    bool timing; /* the plan of the cycle runs */
};

struct trib_group {
    trib_comm_t *comm;
    char name[TRIB_PLAN_NAME_MAX + 1];
    trib_group_opts_t opts; /* texts and rules are NULL, they were used */
    char *algorithm;
    size_t n;
    struct trib_group_tensor *tensors; /* [n] */
    struct trib_buckets buckets;
    struct trib_group_step step;
    uint32_t *queue; /* [buckets.n] in the order of their starts */
    int8_t *words; /* [buckets.n + 1] of the agreement: step.c */
    trib_plan_t *agree; /* smallest words of all ranks; NULL: nothing is agreed on */
    int32_t *times; /* [n] microseconds at which tensors were ready; or NULL */
    trib_plan_t *measure; /* latest times of all ranks; NULL: no cycle */
    trib_group_stats_t stats;
    struct trib_group_notify *notify; /* group_notify.c; NULL: nobody is told */
};

/** trib_group_says - the group in sentences: its name in quotation marks, or "the
 * group". */
const char *trib_group_says(const struct trib_group *g, char text[80]);

/** trib_group_take - copy tensors and options, and decide on codecs; the sentence is in
 * comm. Frees nothing after an error: trib_group_dispose does. */
trib_status_t trib_group_take(struct trib_group *g, const trib_tensor_t *tensors,
                              size_t n, const trib_group_opts_t *opts);

/** trib_group_tensor_digest - a digest of all that ranks must have alike of a
 * tensor. */
uint64_t trib_group_tensor_digest(const struct trib_group_tensor *t);

/**
 * trib_group_compare - see that all ranks have made the same group.
 *
 * g        NULL where this rank has failed, with status `st`
 * errors   st; TRIB_ERR_INVALID, on all ranks, with a sentence
 */
trib_status_t trib_group_compare(trib_comm_t *comm, const struct trib_group *g,
                                 trib_status_t st);

/** trib_group_dispose - free a group in any state; none of its plans runs. */
void trib_group_dispose(struct trib_group *g);

/**
 * trib_buckets_assign - a bucket for each tensor, by index, dtype, priority and bytes.
 *
 * by_time  take the tensors in the order of g->times; no fused bucket spans more than a
 *          cycle
 * assign   [n] receives the buckets, and *n_out their number
 * returns  false: no memory
 */
bool trib_buckets_assign(const struct trib_group *g, bool by_time, uint32_t *assign,
                         uint32_t *n_out);

/** trib_buckets_are_valid - true if these buckets could have been formed: all have a
 * tensor, and what they fuse may be fused. */
bool trib_buckets_are_valid(const struct trib_group *g, const uint32_t *assign,
                            uint32_t n_buckets);

/**
 * trib_buckets_form - make these buckets instead of those that the group has. A tensor
 * that was a bucket by itself, and is one again, keeps its plan.
 *
 * errors   the sentence names the tensor; the group has its old buckets
 */
trib_status_t trib_buckets_form(struct trib_group *g, const uint32_t *assign,
                                uint32_t n_buckets);
void trib_buckets_free(struct trib_group *g, struct trib_buckets *b);

/** trib_bucket_tensor - member i of a bucket. */
static inline struct trib_group_tensor *trib_bucket_tensor(const struct trib_group *g,
                                                           const struct trib_bucket *b,
                                                           uint32_t i)
{
    assert(i < b->n);
    return &g->tensors[g->buckets.members[b->first + i]];
}

/** trib_group_watch - have the end of a plan's starts told, if anybody is told; plan
 * NULL is allowed. */
trib_status_t trib_group_watch(struct trib_group *g, trib_plan_t *plan);

/** trib_group_look - from now on, what ends is to be told again: the caller looks at
 * all that has ended before. */
void trib_group_look(const struct trib_group *g);

/** trib_group_tell - tell that the step has ended, once. */
void trib_group_tell(struct trib_group *g, trib_status_t st);
void trib_group_notify_free(struct trib_group *g);

/** trib_cycle_make - make the plan that measures the first step. */
trib_status_t trib_cycle_make(struct trib_group *g);
/** trib_cycle_take - take the times of this step into g->times, for g->measure. */
void trib_cycle_take(struct trib_group *g);
/** trib_cycle_end - form the buckets by the agreed times; g->measure is freed. */
trib_status_t trib_cycle_end(struct trib_group *g);
void trib_cycle_free(struct trib_group *g);

/** trib_step_begin - take the buffers of a step, and start what is ready. */
trib_status_t trib_step_begin(struct trib_group *g, const void *const *sends,
                              void *const *recvs);

/** trib_step_mark - a tensor is ready. */
trib_status_t trib_step_mark(struct trib_group *g, size_t tensor);

enum trib_step_mood {
    TRIB_STEP_NEWS, /* enter an agreement only with news for it */
    TRIB_STEP_WILLING, /* enter one if there is anything to start */
    TRIB_STEP_BLOCKED, /* likewise, and the caller marks no tensor before one of the
                        * next agreements has started something */
};

/** trib_step_drive - take what has ended, start what can be started; does not
 * block. */
trib_status_t trib_step_drive(struct trib_group *g, enum trib_step_mood mood);

/** trib_step_block - block until the oldest operation of the group has ended. */
trib_status_t trib_step_block(struct trib_group *g);

#endif
