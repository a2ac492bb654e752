/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The slots of a communicator where little memory may be locked.
 */
#ifndef COMM_SLOT_BUDGET_H
#define COMM_SLOT_BUDGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Slots of an edge, and their payload in bytes. */
struct trib_slot_budget {
    uint32_t window;
    size_t chunk;
};

/**
 * trib_slot_budget_fit - the largest slots of `size` ranks that leave room for others.
 *
 * room     bytes that each rank can still register; SIZE_MAX: no limit. Slots that were
 *          asked for and take no more than half of it stay as they are; so do those of
 *          which not even the smallest fit: registering them says what is wrong
 * returns  the same on all ranks that give the same
 */
struct trib_slot_budget trib_slot_budget_fit(struct trib_slot_budget asked, size_t room,
                                             int size);

/**
 * trib_slot_budget_is_ample - would such slots for all edges leave half of the room?
 *
 * Then they may be registered as edges come into use. Where room is scarce they are
 * taken at the start: a communicator that begins can go on.
 */
bool trib_slot_budget_is_ample(struct trib_slot_budget w, size_t room, int size);

#endif
