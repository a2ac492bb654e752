/* SPDX-License-Identifier: BSD-3-Clause */
/* A plan that is served: between core/service.c and core/served.c. */
#ifndef CORE_SERVED_H
#define CORE_SERVED_H

#include "core/service.h"

struct trib_fed {
    size_t first, count;
};

struct trib_served {
    struct trib_service *service;
    struct trib_plan *now;     /* of the channel, or of the spare */
    struct trib_plan *confirm; /* the barrier behind each start; NULL: of the spare */
    trib_coll_t coll;
    trib_desc_t desc;          /* its texts are copies */
    struct trib_served *next;  /* in service->first */
    struct trib_served *newer; /* behind service->oldest */
    bool pending;              /* in that list */
    uint64_t ordinal;          /* of the newest start */
    uint32_t step_before;      /* now->run.step then: did the start begin? */
    uint32_t elsewhere; /* of a plan that came to the channel: loaded of the spare's, less step */
    trib_status_t status;      /* of the newest start that is not pending */
    const void *send;
    void *recv;
    struct trib_fed *fed; /* parts that trib_plan_ready has named */
    size_t n_fed, room_fed;
};

/** trib_service_recover - the channel has failed: all ranks meet here. Blocks. */
void trib_service_recover(struct trib_service *v);
bool trib_service_lost(const struct trib_service *v);

/**
 * trib_service_turn - before each start, while there is no channel: ask, or go to services.
 *
 * s        the plan that is to be started; all ranks come here with the same starts
 */
void trib_service_turn(struct trib_service *v, const struct trib_served *s);

/** trib_service_leave - rank 0: as if the channel had failed, for a better one. */
void trib_service_leave(struct trib_service *v);

/** trib_service_give_up - by has failed: a rank is lost, and with it the communicator. */
void trib_service_give_up(struct trib_service *v, const struct trib_comm *by, trib_status_t st);

/**
 * trib_council_ask, _hear - an agreement, and its end: what all say of it is in v->said.
 *
 * One at a time, the same ones in the same order on all ranks. trib_council_meet is both.
 * errors   the council has failed
 */
trib_status_t trib_council_ask(struct trib_service *v, const int64_t say[TRIB_SAY_WORDS]);
trib_status_t trib_council_hear(struct trib_service *v);
trib_status_t trib_council_meet(struct trib_service *v, const int64_t say[TRIB_SAY_WORDS]);

/** trib_council_close - before the council is freed. */
void trib_council_close(struct trib_service *v);

/** trib_served_confirmed - has this rank left the barrier behind its newest start? */
bool trib_served_confirmed(const struct trib_served *s);

/** trib_served_pop - the oldest pending start has ended. */
void trib_served_pop(struct trib_service *v, trib_status_t status);

/**
 * trib_served_move - to a plan of the spare or of the channel, with all that it keeps.
 *
 * errors   as trib_plan_make, the sentence in `to`; it is where it was
 */
trib_status_t trib_served_move(struct trib_served *s, struct trib_comm *to);

/** trib_served_again - start the newest start again, on the spare. */
trib_status_t trib_served_again(struct trib_served *s);

/** trib_served_waits - can it not end before the user names more of its elements? */
bool trib_served_waits(const struct trib_served *s);

/** trib_served_finish - wait for all that is under way on the spare. */
void trib_served_finish(struct trib_service *v);

#endif
