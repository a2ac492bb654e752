/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A communicator's service: nodes of tribd that sum its all-reduces, and what happens when
 * they are lost.
 *
 * There are two communicators beside the user's: the channel (channel.h), and a spare one of
 * the ranks alone. A plan that is served has a plan of the channel, and behind each of its
 * starts comes a barrier of the channel's: who has left it knows that all ranks have their
 * results. So when the channel fails
 *
 *   - the ranks tell each other, over the spare, up to which start number each has left the
 *     barrier; all starts up to the largest of these are done, on every rank;
 *   - each later one is undone (pipeline/keep.h) and started anew over the spare, in the same
 *     order on all ranks: nothing is lost and nothing is counted twice;
 *   - from then on the spare does what the channel did.
 *
 * A rank that is not in a call meets the others at its next one: ranks that wait for each
 * other in whatever operation of the user's communicator look after the channel meanwhile.
 * None of this uses that communicator, whose operations have an order of their own.
 */
#ifndef CORE_SERVICE_H
#define CORE_SERVICE_H

#include "core/channel.h"

struct trib_served;

struct trib_service {
    struct trib_comm *home;
    struct trib_comm *channel; /* NULL: it failed, the spare serves */
    struct trib_comm *spare;
    struct trib_served *first; /* all plans that are served */
    struct trib_served *oldest, *newest; /* started, and not known to be done by all */
    uint64_t started;
    uint64_t confirmed; /* starts that all ranks have done */
    uint64_t served;    /* of these, by the channel */
    bool recovering;
    bool in_home; /* called from where the home is locked */
    trib_status_t broken; /* the spare failed, too; the sentence is the home's failure */
    void (*look)(void *arg); /* now and then, while there is a channel; or NULL */
    void (*gone)(void *arg); /* the channel is no more: close what it needed; or NULL */
    void *arg;
};

/**
 * trib_service_attach - let these two sum comm's all-reduces; comm owns them then.
 *
 * look, gone, arg of struct trib_service are the caller's to set.
 * errors   TRIB_ERR_NO_MEMORY; they are still the caller's
 */
trib_status_t trib_service_attach(struct trib_comm *comm, struct trib_comm *channel,
                                  struct trib_comm *spare);

/**
 * trib_service_join - of trib_init: join the services of TRIB_SERVICE, if any.
 *
 * A service that cannot be had is no error: rank 0 warns, and the ranks sum by themselves.
 */
trib_status_t trib_service_join(struct trib_comm *comm);

/** trib_service_detach - leave both; before the home leaves. Errors as trib_free_comm. */
trib_status_t trib_service_detach(struct trib_comm *comm);

/** trib_service_drop - free both without a word: the communicator has failed. */
void trib_service_drop(struct trib_comm *comm);

/** trib_service_look - while ranks wait for each other elsewhere: meet those for whom the
 * channel failed. */
void trib_service_look(struct trib_comm *comm);

/**
 * trib_service_register - the home can reach this memory: so shall the channel and the spare.
 *
 * Where one cannot, its vectors go through slots.
 */
void trib_service_register(struct trib_comm *comm, void *ptr, size_t bytes);

/** trib_service_deregister - TRIB_ERR_BUSY while a start is under way. */
trib_status_t trib_service_deregister(struct trib_comm *comm, void *ptr);

/** trib_service_stats - add what channel and spare have counted. */
void trib_service_stats(const struct trib_comm *comm, trib_stats_t *stats);

/** trib_service_takes - is this plan one for the service? */
bool trib_service_takes(const struct trib_comm *comm, trib_coll_t coll,
                        const trib_desc_t *desc, bool leaving);

/** trib_served_make - plan->served; errors as trib_plan_make, the sentence in plan->comm. */
trib_status_t trib_served_make(struct trib_plan *plan, trib_coll_t coll,
                               const trib_desc_t *desc);
void trib_served_destroy(struct trib_served *s);

/** trib_served_plan - the plan that does it now: for questions, and for its state. */
struct trib_plan *trib_served_plan(struct trib_served *s);

/* The public calls of the same names; buffers as trib_plan_run. */
trib_status_t trib_served_start(struct trib_plan *plan, const void *send, void *recv);
trib_status_t trib_served_ready(struct trib_plan *plan, size_t first, size_t count);
trib_status_t trib_served_test(struct trib_plan *plan);
trib_status_t trib_served_wait(struct trib_plan *plan);
bool trib_served_busy(const struct trib_plan *plan);
trib_status_t trib_served_state_save(struct trib_plan *plan, void *state, size_t bytes,
                                     size_t *bytes_out);
trib_status_t trib_served_state_load(struct trib_plan *plan, const void *state,
                                     size_t bytes);
trib_status_t trib_served_sent(struct trib_plan *plan, const unsigned char **mask_out,
                               size_t *sent_out);

#endif
