/* SPDX-License-Identifier: BSD-3-Clause */
#include "agg/jobs/drr.h"

#include <assert.h>
#include <stddef.h>

#define DEBT_MAX (INT64_MAX / 4) /* no sum of debts overflows */

void trib_drr_init(struct trib_drr *drr, uint64_t turn_bytes)
{
    assert(turn_bytes && turn_bytes < (uint64_t)1 << 40); /* × any weight: 64 bits */
    *drr = (struct trib_drr){.turn_bytes = turn_bytes};
}

void trib_drr_set_weight(struct trib_drr_member *member, uint32_t weight)
{
    assert(weight && weight <= TRIB_DRR_WEIGHT_ONE * 1024);
    member->weight = weight;
}

static int64_t quantum(const struct trib_drr *drr, const struct trib_drr_member *member)
{
    uint64_t bytes = drr->turn_bytes * member->weight / TRIB_DRR_WEIGHT_ONE;

    return bytes ? (int64_t)bytes : 1;
}

void trib_drr_activate(struct trib_drr *drr, struct trib_drr_member *member)
{
    assert(member->weight);
    if (member->next)
        return;
    if (!drr->head) {
        member->next = member->prev = drr->head = member;
        return;
    }
    member->next = drr->head;
    member->prev = drr->head->prev;
    member->prev->next = member->next->prev = member;
}

static void unlink_member(struct trib_drr *drr, struct trib_drr_member *member)
{
    if (drr->head == member)
        drr->head = member->next == member ? NULL : member->next;
    member->prev->next = member->next;
    member->next->prev = member->prev;
    member->next = member->prev = NULL;
    if (member->deficit > 0)
        member->deficit = 0;
}

/* Apply at once the rounds that every member would sit out, except the last one before
 * a member is out of debt. */
static void skip_rounds(const struct trib_drr *drr)
{
    struct trib_drr_member *member = drr->head;
    int64_t rounds = INT64_MAX;

    do {
        int64_t left = -member->deficit / quantum(drr, member);
        rounds = left < rounds ? left : rounds;
        member = member->next;
    } while (member != drr->head);
    do {
        member->deficit += rounds * quantum(drr, member);
        member = member->next;
    } while (member != drr->head);
}

/* Return the first member, from the head, with a positive deficit. */
static struct trib_drr_member *first_able(const struct trib_drr *drr)
{
    for (;;) {
        struct trib_drr_member *member = drr->head;
        do {
            if (member->deficit <= 0)
                member->deficit += quantum(drr, member);
            if (member->deficit > 0)
                return member;
            member = member->next;
        } while (member != drr->head);
        skip_rounds(drr);
    }
}

struct trib_drr_member *trib_drr_next(struct trib_drr *drr, uint64_t *budget_out)
{
    struct trib_drr_member *member = drr->head;

    assert(!drr->turn);
    if (!member)
        return NULL;
    /* A debt matters only while other members want service. */
    if (member->next == member && member->deficit < 0)
        member->deficit = 0;
    drr->head = member = first_able(drr);
    drr->turn = true;
    *budget_out = (uint64_t)member->deficit;
    return member;
}

void trib_drr_charge(struct trib_drr *drr, uint64_t bytes, bool more)
{
    struct trib_drr_member *member = drr->head;

    assert(drr->turn && member);
    drr->turn = false;
    member->deficit -= bytes < DEBT_MAX ? (int64_t)bytes : DEBT_MAX;
    if (member->deficit < -DEBT_MAX)
        member->deficit = -DEBT_MAX;
    if (!more) {
        unlink_member(drr, member);
        return;
    }
    /* A member that wants more and left part of its budget could not use it: no
     * credit. */
    if (member->deficit > 0)
        member->deficit = 0;
    drr->head = member->next;
}

void trib_drr_remove(struct trib_drr *drr, struct trib_drr_member *member)
{
    assert(!drr->turn);
    if (member->next)
        unlink_member(drr, member);
}
