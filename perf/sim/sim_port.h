/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The port of a receiving rank in the replay: its grants, as in pipeline/link/grants.h,
 * and the switch's buffer in front of it.
 */
#ifndef PERF_SIM_SIM_PORT_H
#define PERF_SIM_SIM_PORT_H

#include "perf/sim/sim_rank.h"

/**
 * sim_port_admit - let the messages in the queue of an edge into the network, in order,
 * up to the first one that has to wait.
 *
 * resume   called with the edge when that one may enter: when its grant has arrived,
 *          when the buffer has room, or when a lost message is due again
 */
void sim_port_admit(struct sim_edge *e, void (*resume)(void *edge));

/** sim_port_sent - note that the last byte of a message has left the switch. */
void sim_port_sent(struct sim_edge *e, const struct sim_message *m);

/** sim_port_arrived - note that the receiver knows of a message. */
void sim_port_arrived(struct sim_edge *e, const struct sim_message *m);

/** sim_port_make - allocate the ports of all ranks; false: out of memory. */
bool sim_port_make(struct sim_replay *replay);

#endif
