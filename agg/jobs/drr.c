/* SPDX-License-Identifier: BSD-3-Clause */
#include "agg/jobs/drr.h"

#include <assert.h>
#include <stddef.h>

#define OWED_MOST (INT64_MAX / 4) /* no sum of debts overflows */

void trib_drr_init(struct trib_drr *share, uint64_t turn_bytes)
{
    assert(turn_bytes && turn_bytes < (uint64_t)1 << 40); /* × any weight: 64 bits */
    *share = (struct trib_drr){.turn_bytes = turn_bytes};
}

void trib_drr_set_weight(struct trib_drr_member *member, uint32_t weight)
{
    assert(weight && weight <= TRIB_DRR_WEIGHT_ONE * 1024);
    member->weight = weight;
}

static int64_t quantum(const struct trib_drr *share,
                       const struct trib_drr_member *member)
{
    uint64_t bytes = share->turn_bytes * member->weight / TRIB_DRR_WEIGHT_ONE;

    return bytes ? (int64_t)bytes : 1;
}

void trib_drr_activate(struct trib_drr *share, struct trib_drr_member *member)
{
    assert(member->weight);
    if (member->next)
        return;
    if (!share->head) {
        member->next = member->prev = share->head = member;
        return;
    }
    member->next = share->head;
    member->prev = share->head->prev;
    member->prev->next = member->next->prev = member;
}

static void take_out(struct trib_drr *share, struct trib_drr_member *member)
{
    if (share->head == member)
        share->head = member->next == member ? NULL : member->next;
    member->prev->next = member->next;
    member->next->prev = member->prev;
    member->next = member->prev = NULL;
    if (member->deficit > 0)
        member->deficit = 0;
}

/* Apply at once the rounds that every member would sit out, except the last one before
 * a member is out of debt. */
static void skip_rounds(const struct trib_drr *share)
{
    struct trib_drr_member *member = share->head;
    int64_t rounds = INT64_MAX;

    do {
        int64_t left = -member->deficit / quantum(share, member);
        rounds = left < rounds ? left : rounds;
        member = member->next;
    } while (member != share->head);
    do {
        member->deficit += rounds * quantum(share, member);
        member = member->next;
    } while (member != share->head);
}

/* Return the first member, from the head, with a positive deficit. */
static struct trib_drr_member *first_able(const struct trib_drr *share)
{
    for (;;) {
        struct trib_drr_member *member = share->head;
        do {
            if (member->deficit <= 0)
                member->deficit += quantum(share, member);
            if (member->deficit > 0)
                return member;
            member = member->next;
        } while (member != share->head);
        skip_rounds(share);
    }
}

struct trib_drr_member *trib_drr_next(struct trib_drr *share,
                                          uint64_t *budget_out)
{
    struct trib_drr_member *member = share->head;

    assert(!share->turn);
    if (!member)
        return NULL;
    /* A debt matters only while other members want service. */
    if (member->next == member && member->deficit < 0)
        member->deficit = 0;
    share->head = member = first_able(share);
    share->turn = true;
    *budget_out = (uint64_t)member->deficit;
    return member;
}

void trib_drr_charge(struct trib_drr *share, uint64_t bytes, bool more)
{
    struct trib_drr_member *member = share->head;

    assert(share->turn && member);
    share->turn = false;
    member->deficit -= bytes < OWED_MOST ? (int64_t)bytes : OWED_MOST;
    if (member->deficit < -OWED_MOST)
        member->deficit = -OWED_MOST;
    if (!more) {
        take_out(share, member);
        return;
    }
    /* A member that wants more and left part of its budget could not use it: no
     * credit. */
    if (member->deficit > 0)
        member->deficit = 0;
    share->head = member->next;
}

void trib_drr_remove(struct trib_drr *share, struct trib_drr_member *member)
{
    assert(!share->turn);
    if (member->next)
        take_out(share, member);
}
