/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The state of a rank in the replay: its program, its lanes, and pending events.
 */
#ifndef PERF_SIM_SIM_RANK_H
#define PERF_SIM_SIM_RANK_H

#include "perf/sim/sim_plan.h"

#define SIM_NONE UINT32_MAX

/* Position of the next frame in one direction of a lane. */
struct sim_cursor {
    uint32_t round;
    uint32_t ordinal;
};

struct sim_replay;

/* One lane of an edge, as seen by one of its ranks. */
struct sim_lane {
    uint32_t *send_task; /* [frames of a round] the task of each frame */
    uint32_t *recv_task;
    struct sim_cursor send;
    struct sim_cursor recv;
    uint32_t sent; /* frames for which a task has reserved a slot */
    uint32_t released; /* of these, frames whose slot is free again */
    uint32_t arrived; /* frames received */
    uint32_t taken; /* of these, frames that a task has consumed */
    uint16_t *merged; /* [window] contributions in each received frame */
};

struct sim_message {
    double bytes; /* with headers */
    uint16_t merged;
    uint8_t lane;
    bool granted;
};

/* The frames from one rank to another share one socket, in order. */
struct sim_edge {
    struct sim_replay *replay;
    int from;
    int to;
    uint16_t back; /* index of this edge at `to` */
    bool busy;
    bool asked; /* the next message waits: sim_port.h */
    struct sim_edge *next; /* in the queue of a port */
    void (*resume)(void *edge); /* of sim_port_admit; NULL: not called yet */
    double delay_s;
    struct simnet_route route;
    struct sim_lane lane[TRIB_LANES];
    struct sim_message *queue; /* [2 * window] ring: waiting to be sent */
    uint32_t head, tail;
    uint32_t admit; /* the next message to enter the network: sim_port.h */
    struct sim_message *flying; /* ring: in flight, in order */
    uint32_t fly_head, fly_tail;
    uint8_t *credits; /* [2 * window] ring of lanes: free slots on their way back */
    uint32_t credit_head, credit_tail;
};

struct sim_rank {
    struct sim_replay *replay;
    int rank;
    struct trib_program program;
    struct sim_edge *edges; /* [program.n_neighbors] */
    uint32_t *dependent; /* [n_tasks] first task that depends on it */
    uint32_t *sister; /* [n_tasks] next task with the same dependency */
    uint8_t *queued; /* [n_tasks] */
    uint16_t *merged; /* [chunks] contributions in a chunk's value */
    uint32_t *encoded; /* [chunks] rounds whose contribution is encoded */
    uint32_t *ready; /* ring of tasks that can run */
    uint32_t ready_head, ready_tail, ready_size;
    float *cost; /* [n_tasks] REDUCE: seconds, computed when its frames are consumed */
    uint32_t running; /* task, or SIM_NONE */
    struct sim_message message; /* of the running SEND */
    uint32_t remaining;
    uint32_t *agreed; /* [rounds] finished tasks of the agreement */
    uint32_t share_tasks;
    double cpu_s;
    double done_s;
    bool started;
    bool waits; /* waits for a core */
    bool asleep; /* idle: no task could run */
    bool waking; /* waking up; will run soon */
};

struct sim_replay {
    const struct sim_args *args;
    struct sim_plan *plan;
    struct sim_result *out;
    struct trib_run run; /* how the vector is cut; its program is unused */
    struct sim_rank *ranks;
    struct sim_port *ports; /* [plan->n] */
    uint32_t senders[TRIB_LANES]; /* trib_algo_senders */
    uint32_t window;
    uint32_t left; /* ranks not done */
    double messages; /* messages of the replay sent so far */
    double total; /* messages that all programs send */
    double wire; /* bytes sent so far */
    double half_s, half_messages;
    double *link_bytes; /* [simnet_links()] */
    uint16_t *busy_out; /* [hosts] connections that send from a host */
    uint16_t *busy_in; /* [hosts] connections that send to a host */
    size_t busy_cores;
    uint32_t *waiting; /* [plan->n] ring of ranks that wait for a core */
    uint32_t waiting_head, waiting_tail;
};

/** sim_rank_make - allocate a rank's state; false: out of memory. */
bool sim_rank_make(struct sim_replay *replay, struct sim_rank *r);

/** sim_rank_join - number the edges at both ends, and find their routes. */
void sim_rank_join(struct sim_replay *replay);

/** sim_cursor_next - advance to the next frame in this direction. */
void sim_cursor_next(const struct sim_replay *replay, struct sim_cursor *c,
                     uint32_t all, uint32_t share);

/** sim_cost_reduce - return the processor seconds of a REDUCE that has just consumed
 * its frames. */
double sim_cost_reduce(struct sim_rank *r, const struct trib_task *t);

/** sim_cost - return the processor seconds of any other task, and the message of a
 * SEND. */
double sim_cost(struct sim_rank *r, const struct trib_task *t,
                struct sim_message *message_out);

/** sim_replay_start - schedule the first events; for simnet_run. */
void sim_replay_start(void *replay);

#endif
