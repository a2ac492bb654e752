/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Internals of a group of tensors.
 *
 * Each bucket has one plan and is started when all of its tensors are ready on all
 * ranks. All ranks have the same buckets: these follow from values compared at group
 * creation, or agreed on after the first step. All ranks start buckets in the same
 * order, because each decision follows from an agreement (step.c).
 */
#ifndef COMM_TENSORS_TENSOR_GROUP_H
#define COMM_TENSORS_TENSOR_GROUP_H

#include <assert.h>

#include <tributary/group.h>

#include "comm/core/communicator.h"

#define TRIB_BUCKET_NONE UINT32_MAX /* of an empty tensor */

struct trib_group_tensor {
    trib_tensor_t desc; /* its strings are copies owned by the group */
    size_t bytes;
    bool coded;
    bool alone; /* never fused with other tensors */
    uint32_t bucket; /* index, or TRIB_BUCKET_NONE */
    size_t offset; /* bytes from the start of its bucket */
    /* State of the step: */
    const void *send;
    void *recv;
    bool ready, done;
    uint32_t ready_us; /* since the step began */
};

struct trib_bucket {
    trib_plan_t *plan;
    uint32_t first, n; /* range in trib_buckets.members */
    size_t bytes, elements;
    char *buffer; /* for fusing several tensors, unless their own memory is contiguous;
                   * NULL: one tensor */
    /* State of the step: */
    bool direct; /* summed in its tensors' own memory */
    bool started;
    uint32_t n_ready; /* tensors that are ready */
    uint32_t ready_seq; /* 1 for the first bucket to become ready; 0: not ready */
};

struct trib_buckets {
    uint32_t n;
    struct trib_bucket *at; /* [n] */
    uint32_t *members; /* tensors by bucket, then by index */
    uint32_t *order; /* [n] buckets by descending priority */
    void *memory; /* of all buffers; or NULL */
};

/* State of a group's step; step.c. */
struct trib_group_step {
    bool running;
    bool notified; /* the end of the step was notified */
    trib_status_t failed; /* why the newest step failed; or TRIB_OK */
    uint64_t begin; /* ns */
    uint64_t starts; /* comm->starts after the newest start of this group */
    uint32_t n_started, n_ended; /* buckets; queue[n_ended … n_started) are running */
    uint32_t n_ready; /* buckets ready on this rank */
    size_t tensors_ready, tensors_done;
    bool news; /* a bucket became ready since this rank last entered an agreement */
    bool asking; /* an agreement is running */
    bool timing; /* the cycle's plan is running */
};

struct trib_group {
    trib_comm_t *comm;
    char name[TRIB_PLAN_NAME_MAX + 1];
    trib_group_opts_t opts; /* strings and rules are NULL after creation */
    char *algorithm;
    size_t n;
    struct trib_group_tensor *tensors; /* [n] */
    struct trib_buckets buckets;
    struct trib_group_step step;
    uint32_t *queue; /* [buckets.n] in start order */
    int8_t *words; /* [buckets.n + 1] bytes of the agreement: step.c */
    trib_plan_t *agree; /* all-reduces `words` by minimum; NULL: no agreement */
    int32_t *times; /* [n] microseconds when tensors became ready; or NULL */
    trib_plan_t *measure; /* all-reduces `times` by maximum; NULL: no cycle */
    trib_group_stats_t stats;
    struct trib_group_notify *notify; /* group_notify.c; NULL: no notification */
};

/** trib_group_says - return the group's quoted name for messages, or "the group". */
const char *trib_group_says(const struct trib_group *g, char text[80]);

/** trib_group_take - copy tensors and options and choose codecs; on error the message
 * is in comm. Frees nothing on error: trib_group_dispose does. */
trib_status_t trib_group_take(struct trib_group *g, const trib_tensor_t *tensors,
                              size_t n, const trib_group_opts_t *opts);

/** trib_group_tensor_digest - return a digest of all properties that ranks must
 * share. */
uint64_t trib_group_tensor_digest(const struct trib_group_tensor *t);

/**
 * trib_group_compare - check that all ranks created the same group.
 *
 * g        NULL if this rank failed with status `st`
 * errors   st; TRIB_ERR_INVALID, on all ranks, with a message
 */
trib_status_t trib_group_compare(trib_comm_t *comm, const struct trib_group *g,
                                 trib_status_t st);

/** trib_group_dispose - free a group in any state; none of its plans is running. */
void trib_group_dispose(struct trib_group *g);

/**
 * trib_buckets_assign - choose a bucket for each tensor, by index, dtype, priority and
 * bytes.
 *
 * by_time  take the tensors in the order of g->times; no fused bucket spans more than a
 *          cycle
 * assign   [n] receives the buckets, and *n_out their number
 * returns  false: out of memory
 */
bool trib_buckets_assign(const struct trib_group *g, bool by_time, uint32_t *assign,
                         uint32_t *n_out);

/** trib_buckets_are_valid - return true if the assignment is possible: no bucket is
 * empty, and fused tensors may be fused. */
bool trib_buckets_are_valid(const struct trib_group *g, const uint32_t *assign,
                            uint32_t n_buckets);

/**
 * trib_buckets_form - replace the group's buckets. A tensor that has a bucket to itself
 * before and after keeps its plan.
 *
 * errors   the message names the tensor; the group keeps its old buckets
 */
trib_status_t trib_buckets_form(struct trib_group *g, const uint32_t *assign,
                                uint32_t n_buckets);
void trib_buckets_free(struct trib_group *g, struct trib_buckets *b);

/** trib_bucket_tensor - return member i of a bucket. */
static inline struct trib_group_tensor *trib_bucket_tensor(const struct trib_group *g,
                                                           const struct trib_bucket *b,
                                                           uint32_t i)
{
    assert(i < b->n);
    return &g->tensors[g->buckets.members[b->first + i]];
}

/** trib_group_watch - notify when starts of the plan end, if the group notifies; plan
 * may be NULL. */
trib_status_t trib_group_watch(struct trib_group *g, trib_plan_t *plan);

/** trib_group_rearm - re-arm the notification. The caller must check for completed
 * operations after this. */
void trib_group_rearm(const struct trib_group *g);

/** trib_group_tell - notify once that the step has ended. */
void trib_group_tell(struct trib_group *g, trib_status_t st);
void trib_group_notify_free(struct trib_group *g);

/** trib_cycle_make - create the plan that measures the first step. */
trib_status_t trib_cycle_make(struct trib_group *g);
/** trib_cycle_take - copy this step's times to g->times, for g->measure. */
void trib_cycle_take(struct trib_group *g);
/** trib_cycle_end - form the buckets from the agreed times; frees g->measure. */
trib_status_t trib_cycle_end(struct trib_group *g);
void trib_cycle_free(struct trib_group *g);

/** trib_step_begin - set the buffers of a step and start the buckets that are ready. */
trib_status_t trib_step_begin(struct trib_group *g, const void *const *sends,
                              void *const *recvs);

/** trib_step_mark - mark a tensor ready. */
trib_status_t trib_step_mark(struct trib_group *g, size_t tensor);

enum trib_step_mood {
    TRIB_STEP_NEWS, /* enter an agreement only with news for it */
    TRIB_STEP_WILLING, /* enter an agreement if there is anything to start */
    TRIB_STEP_BLOCKED, /* as WILLING; the caller marks no tensor before one of the next
                        * agreements has started something */
};

/** trib_step_drive - handle completions and start what can be started; no blocking. */
trib_status_t trib_step_drive(struct trib_group *g, enum trib_step_mood mood);

/** trib_step_block - block until the group's oldest operation has ended. */
trib_status_t trib_step_block(struct trib_group *g);

/** trib_step_drain - block until the operations that a step has started have ended. */
void trib_step_drain(struct trib_group *g);

#endif
