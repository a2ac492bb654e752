/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Layout of a plan's saved state: plan_state.c describes, writes and reads it,
 * state_merge.c merges several states.
 */
#ifndef COMM_STATE_PLAN_STATE_H
#define COMM_STATE_PLAN_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tributary/status.h>

struct trib_comm;
struct trib_plan;

enum { TRIB_STATE_NAME_BYTES = 16, TRIB_STATE_ALIGN = 8 };

struct trib_state_head {
    char magic[8];
    uint32_t version;
    uint32_t n_sections;
    uint64_t bytes;
    uint64_t checksum;
    uint64_t count;
    uint32_t ranks, rank;
    uint32_t coll, dtype, op, root;
};
_Static_assert(sizeof(struct trib_state_head) == 64, "trib_state_head has no padding");

struct trib_state_section {
    char name[TRIB_STATE_NAME_BYTES];
    uint64_t bytes;
};
_Static_assert(sizeof(struct trib_state_section) == 24,
               "a section header has no padding");

/** trib_state_padded - return the padded size of a section of `bytes` bytes. */
static inline size_t trib_state_padded(size_t bytes)
{
    return (bytes + TRIB_STATE_ALIGN - 1) / TRIB_STATE_ALIGN * TRIB_STATE_ALIGN;
}

/** trib_state_checksum - return the checksum of a whole state with header h; h's
 * checksum counts as 0. */
uint64_t trib_state_checksum(const struct trib_state_head *h, const uint8_t *state);

/**
 * trib_state_check_whole - check that the bytes are an undamaged state.
 *
 * h_out    its header
 * errors   TRIB_ERR_INVALID with a message in the plan's communicator
 */
trib_status_t trib_state_check_whole(struct trib_plan *plan, const uint8_t *state,
                                     size_t bytes, struct trib_state_head *h_out);

/** trib_state_check_kind - return TRIB_OK if collective, dtype and op are equal; else
 * TRIB_ERR_INVALID with a message. */
trib_status_t trib_state_check_kind(struct trib_plan *plan,
                                    const struct trib_state_head *theirs,
                                    const struct trib_state_head *ours);

/**
 * trib_state_section_at - read the section whose header is at byte `at`.
 *
 * next_out offset after the section: the next header, or the end
 * returns  false if the section exceeds the state
 */
bool trib_state_section_at(const uint8_t *state, size_t bytes, size_t at,
                           struct trib_state_section *section_out, size_t *next_out);

/** trib_state_refuse - report that the state's plan differs in `what`; returns
 * TRIB_ERR_INVALID. */
trib_status_t trib_state_refuse(struct trib_plan *plan, const char *what,
                                const char *theirs, const char *ours);

/* Header of each rank's message about the state to move. */
struct trib_offer {
    int32_t status; /* trib_status_t of the rank's local checks */
    uint32_t gives; /* 0: the rank is new and has no old plan */
};

/**
 * trib_offers_check - check whether all ranks can continue.
 *
 * offers   [ranks] messages of `bytes` bytes each, equal on all ranks
 * first_out  the lowest rank with state to move
 * errors   of any rank, with a message in comm; TRIB_ERR_INVALID: no rank has state
 */
trib_status_t trib_offers_check(struct trib_comm *comm, const char *call,
                                const void *offers, size_t bytes, int *first_out);

/* Moves a plan's state to a plan of another communicator. */
struct trib_state_mover {
    struct trib_comm *comm; /* of the new plan */
    struct trib_plan *from; /* NULL: this rank has no old plan */
    uint64_t steps; /* as for trib_plan_state_move */
    const char *call; /* for error messages */
};

/**
 * trib_plan_state_move_by - trib_plan_state_move where a rank may have failed to create
 * its plan.
 *
 * to       the new plan; NULL: creation failed with `status`, whose message is in
 *          c->comm. The other ranks are notified
 */
trib_status_t trib_plan_state_move_by(const struct trib_state_mover *c,
                                      struct trib_plan *to, trib_status_t status);

/** trib_state_printable - copy a section's name or text in printable form. */
void trib_state_printable(char *out, size_t room, const void *bytes, size_t len);

#endif
