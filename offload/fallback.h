/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A communicator's service: nodes of tribd that sum its all-reduces, what happens when
 * they are lost, and how the ranks come to others.
 *
 * There are three communicators beside the user's: the channel (channel.h), a spare one
 * of the ranks alone, and a small one, the control_comm, on which they agree. A plan
 * that is served has a plan of the channel, and behind each of its starts comes a
 * barrier of the channel's: who has left it knows that all ranks have their results. So
 * when the channel fails
 *
 *   - the ranks tell each other, over the control_comm, up to which start number each
 *     has left the barrier; all starts up to the largest of these are done, on every
 *     rank;
 *   - each later one is undone (pipeline/payload/undo_log.h) and started anew over the
 *     spare, in the same order on all ranks: nothing is lost and nothing is counted
 *     twice;
 *   - from then on the spare does what the channel did.
 *
 * A rank that is not in a call meets the others at its next one: ranks that wait for
 * each other in whatever operation of the user's communicator look after the channel
 * meanwhile.
 *
 * While there is no channel the ranks ask each other now and then, at start numbers on
 * which they have agreed, whether rank 0 knows of services that would take the job;
 * then they open a channel, and each plan goes to it with its next start (rejoin.c). A
 * channel of fewer services than are to be had is left as if it had failed, and the
 * ranks come to more.
 *
 * With a quorum (pipeline/payload/partial.h) the barrier is of another communicator, of
 * the ranks, and its end is awaited before the plan's next start: so it holds up no
 * other plan, and a rank may be late by one start of each. A user may then have a
 * result that is not confirmed. It is not undone, but given to the ranks that have not
 * got it: offload_partial.c.
 *
 * None of this uses the user's communicator, whose operations have an order of their
 * own.
 */
#ifndef OFFLOAD_FALLBACK_H
#define OFFLOAD_FALLBACK_H

#include "offload/channel.h"

struct trib_offload_plan;

/* What ranks say in one agreement; each learns the largest of all. */
enum trib_agreement_word {
    TRIB_AGREE_COMMITTED, /* starts that all ranks have done, as far as this one
                           * knows */
    TRIB_AGREE_STARTED,
    TRIB_AGREE_LEAVING, /* rank 0: the channel did not fail, it is left for a better
                       * one */
    TRIB_AGREE_REJOIN, /* rank 0: there are services */
    TRIB_AGREE_NEXT, /* rank 0: so many starts from here to the next question */
    TRIB_AGREE_BUSY, /* a start cannot end before the user has done more */
    TRIB_AGREE_LOST, /* this rank's channel has failed */
    TRIB_AGREE_ENDED, /* newest start with a quorum whose result its user may have */
    TRIB_AGREE_HAS, /* who has that result: ranks from here to the last */
    TRIB_AGREE_WORDS,
};

/* How ranks come to services. Calls are of a user's thread, on one rank at a time. */
struct trib_agg_provider_ops {
    void (*look)(void *arg);  /* rank 0, now and then, while there is a channel; or
                               * NULL */
    bool (*found)(void *arg); /* rank 0: could there be a better channel than now?
                               * Cheap */
    /*
     * All ranks at once: open a channel; the same status on all of them. NULL: they
     * never come back. text receives who serves, or why nobody does; control_comm is
     * theirs meanwhile
     */
    trib_status_t (*open)(void *arg, struct trib_comm **channel_out, char *text,
                          size_t bytes);
    void (*lost)(void *arg); /* the channel is no more, or all of it has failed; or
                              * NULL */
    void (*free)(void *arg); /* at the end; or NULL */
    void *arg;
};

struct trib_offload {
    struct trib_comm *home;
    struct trib_comm *channel; /* NULL: there is none, the spare serves */
    struct trib_comm *spare;
    struct trib_comm *control_comm;
    struct trib_comm *confirms; /* of the ranks: barriers behind starts with a quorum;
                                 * or NULL */
    struct trib_plan *agreement; /* of the control_comm; NULL: not yet needed */
    int64_t said[TRIB_AGREE_WORDS];
    struct trib_offload_plan *first; /* all plans that are served */
    struct trib_offload_plan *oldest, *newest; /* started, and not known to be done by
                                                * all */
    uint64_t started;
    uint64_t confirmed; /* starts that all ranks have done */
    uint64_t ended;     /* newest start with a quorum whose result the user may have */
    uint64_t offloaded; /* starts that the channel has done */
    struct trib_committed_start *freed; /* results not confirmed, of plans that are
                                         * freed */
    struct trib_committed_start *ahead; /* of starts that this rank has not begun; the
                               * others have ended */
    uint64_t ask_at;    /* before this start the ranks ask; 0: they do not */
    uint64_t asked_ns;  /* rank 0: when they did last, and how many starts come
                         * between */
    uint64_t stride;
    bool asking;        /* the question of ask_at is under way */
    bool recovering;
    bool leaving; /* rank 0 gave the channel up on purpose */
    bool in_home; /* called from where the home is locked */
    trib_status_t broken; /* spare or control_comm failed, too; the sentence is the
                           * home's failure */
    struct trib_agg_provider_ops way;
};

/** The home's table, while a service is attached: offload_plan.c. */
extern const struct trib_comm_hooks trib_offload_hooks;

/**
 * trib_offload_attach - let a service sum comm's all-reduces; for now the spare.
 *
 * All ranks at once. The caller then sets way, and channel, which comm owns from then
 * on.
 * errors   as trib_split, the same on all ranks
 */
trib_status_t trib_offload_attach(struct trib_comm *comm);

/**
 * trib_offload_join - of trib_init: join the services of TRIB_SERVICE, if any.
 *
 * A service that cannot be had is no error: rank 0 warns, and the ranks sum by
 * themselves, until there is one.
 */
trib_status_t trib_offload_join(struct trib_comm *comm);

/** trib_offload_detach - leave all three; before the home leaves. Errors as
 * trib_free_comm. */
trib_status_t trib_offload_detach(struct trib_comm *comm);

/** trib_offload_drop - free them without a word: the communicator has failed. */
void trib_offload_drop(struct trib_comm *comm);

/** trib_offload_forget_in_child - free a forked child's copy of it. */
void trib_offload_forget_in_child(struct trib_comm *comm);

/** trib_offload_poll - while ranks wait for each other elsewhere: meet those for whom
 * the channel failed. */
void trib_offload_poll(struct trib_comm *comm);

/**
 * trib_offload_register - the home can reach this memory: so shall the channel and the
 * spare.
 *
 * Where one cannot, its vectors go through slots.
 */
void trib_offload_register(struct trib_comm *comm, void *ptr, size_t bytes);

/** trib_offload_register_all - what the home can reach, a new channel shall. */
void trib_offload_register_all(struct trib_offload *v);

/** trib_offload_deregister - TRIB_ERR_BUSY while a start is under way. */
trib_status_t trib_offload_deregister(struct trib_comm *comm, void *ptr);

/** trib_offload_stats - add what channel and spare have counted. */
void trib_offload_stats(const struct trib_comm *comm, trib_stats_t *stats);

/** trib_offload_any_quorum - would a service have to close chunks of a plan without the
 * late ones? */
bool trib_offload_any_quorum(const struct trib_offload *v);

#endif
