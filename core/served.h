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
    trib_status_t status;      /* of the newest start that is not pending */
    const void *send;
    void *recv;
    struct trib_fed *fed; /* parts that trib_plan_ready has named */
    size_t n_fed, room_fed;
};

/** trib_service_recover - the channel has failed: all ranks meet here. Blocks. */
void trib_service_recover(struct trib_service *v);
bool trib_service_lost(const struct trib_service *v);

/** trib_service_give_up - the spare has failed: a rank is lost, and with it the communicator. */
void trib_service_give_up(struct trib_service *v, trib_status_t st);

/** trib_served_confirmed - has this rank left the barrier behind its newest start? */
bool trib_served_confirmed(const struct trib_served *s);

/** trib_served_pop - the oldest pending start has ended. */
void trib_served_pop(struct trib_service *v, trib_status_t status);

/** trib_served_move - from the channel to a plan of the spare, with all that it keeps. */
trib_status_t trib_served_move(struct trib_served *s, struct trib_comm *spare);

/** trib_served_again - start the newest start again, on the spare. */
trib_status_t trib_served_again(struct trib_served *s);

#endif
