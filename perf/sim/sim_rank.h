/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The state of a rank in the replay: its program, its lanes, and who waits for what.
 */
#ifndef PERF_SIM_SIM_RANK_H
#define PERF_SIM_SIM_RANK_H

#include "perf/sim/sim_plan.h"

#define SIM_NONE UINT32_MAX

/* The next frame of one direction of a lane: which round, and which of its frames. */
struct sim_cursor {
    uint32_t round;
    uint32_t ordinal;
};

struct sim_replay;

/* One lane of an edge, as one of its ranks sees it. */
struct sim_lane {
    uint32_t *send_task; /* [frames of a round] the task of a frame */
    uint32_t *recv_task;
    struct sim_cursor send;
    struct sim_cursor recv;
    uint32_t sent; /* frames that a task has taken a slot for */
    uint32_t released; /* of these, those whose slot is free again */
    uint32_t arrived; /* frames that are here */
    uint32_t taken; /* of these, those that a task has */
    uint16_t *merged; /* [window] contributions in each frame that is here */
};

struct sim_message {
    double bytes; /* with headers */
    uint16_t merged;
    uint8_t lane;
};

/* The frames from one rank to another go through one socket, one after the other. */
struct sim_edge {
    struct sim_replay *replay;
    int from;
    int to;
    uint16_t back; /* number of this edge among those of `to` */
    bool busy;
    double delay_s;
    struct simnet_route route;
    struct sim_lane lane[TRIB_LANES];
    struct sim_message *queue; /* a ring of 2 * window: not on the wire yet */
    uint32_t head, tail;
    struct sim_message *flying; /* a ring: on their way, in order */
    uint32_t fly_head, fly_tail;
    uint8_t *credits; /* a ring of 2 * window lanes: slots on their way to the peer */
    uint32_t credit_head, credit_tail;
};

struct sim_rank {
    struct sim_replay *replay;
    int rank;
    struct trib_program program;
    struct sim_edge *edges; /* [program.n_neighbors] */
    uint32_t *dependent; /* [n_tasks] the first task whose dep it is */
    uint32_t *sister; /* [n_tasks] the next task with the same dep */
    uint8_t *queued; /* [n_tasks] */
    uint16_t *merged; /* [chunks] contributions in the value of a chunk */
    uint32_t *encoded; /* [chunks] rounds whose contribution has been encoded */
    uint32_t *ready; /* a ring of tasks that can run */
    uint32_t ready_head, ready_tail, ready_size;
    float *cost; /* [n_tasks] REDUCE: seconds, once its frames are taken */
    uint32_t running; /* task, or SIM_NONE */
    struct sim_message message; /* that it sends */
    uint32_t remaining;
    uint32_t *agreed; /* [rounds] tasks of the agreement that are done */
    uint32_t share_tasks;
    double cpu_s;
    double done_s;
    bool started;
    bool waits; /* for a core */
    bool asleep; /* it has had nothing to do */
    bool waking; /* and will run soon */
};

struct sim_replay {
    const struct sim_args *args;
    struct sim_plan *plan;
    struct sim_result *out;
    struct trib_run run; /* how the vector is cut; its program is unused */
    struct sim_rank *ranks;
    uint32_t window;
    uint32_t left; /* ranks that are not done */
    double messages; /* frames that have been sent, in messages of the replay */
    double total; /* that all programs send */
    double wire; /* bytes sent so far */
    double half_s, half_messages;
    double *link_bytes; /* [simnet_links()] */
    uint16_t *busy_out; /* [hosts] connections that have bytes under way, of a host */
    uint16_t *busy_in; /* [hosts] and to it */
    size_t busy_cores;
    uint32_t *waiting; /* a ring of ranks that wait for a core: [plan->n] */
    uint32_t waiting_head, waiting_tail;
};

/** sim_rank_make - all of a rank's state; false: out of memory. */
bool sim_rank_make(struct sim_replay *replay, struct sim_rank *r);

/** sim_rank_join - number the edges from both ends, and find their routes. */
void sim_rank_join(struct sim_replay *replay);

/** sim_cursor_next - step to the next frame of a direction that has any. */
void sim_cursor_next(const struct sim_replay *replay, struct sim_cursor *c,
                     uint32_t all, uint32_t share);

/** sim_rank_start - look at all tasks for the first time. */
void sim_rank_start(struct sim_rank *r);

/** sim_cost_reduce - seconds of the processor, when the task has just taken its
 * frames. */
double sim_cost_reduce(struct sim_rank *r, const struct trib_task *t);

/** sim_cost - the same of any other task, and the message of a SEND. */
double sim_cost(struct sim_rank *r, const struct trib_task *t,
                struct sim_message *message_out);

/** sim_replay_start - the first events; for simnet_run. */
void sim_replay_start(void *replay);

#endif
