/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The layout of a plan's state: plan_state.c describes, writes and reads it,
 * state_merge.c makes one state of several.
 */
#ifndef COMM_PLAN_STATE_H
#define COMM_PLAN_STATE_H

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
_Static_assert(sizeof(struct trib_state_head) == 64, "trib_state_head has no holes");

struct trib_state_section {
    char name[TRIB_STATE_NAME_BYTES];
    uint64_t bytes;
};
_Static_assert(sizeof(struct trib_state_section) == 24,
               "a section's head has no holes");

/** trib_state_padded - the bytes that a section of so many bytes takes. */
static inline size_t trib_state_padded(size_t bytes)
{
    return (bytes + TRIB_STATE_ALIGN - 1) / TRIB_STATE_ALIGN * TRIB_STATE_ALIGN;
}

/** trib_state_checksum - of a whole state with this head, whose checksum counts as
 * 0. */
uint64_t trib_state_checksum(const struct trib_state_head *h, const uint8_t *state);

/**
 * trib_state_check_whole - are these bytes a state, undamaged?
 *
 * h_out    its head
 * errors   TRIB_ERR_INVALID with a sentence in the plan's communicator
 */
trib_status_t trib_state_check_whole(struct trib_plan *plan, const uint8_t *state,
                                     size_t bytes, struct trib_state_head *h_out);

/** trib_state_check_kind - TRIB_OK if both are of the same collective, dtype and op;
 * else TRIB_ERR_INVALID and a sentence. */
trib_status_t trib_state_check_kind(struct trib_plan *plan,
                                    const struct trib_state_head *theirs,
                                    const struct trib_state_head *ours);

/**
 * trib_state_section_at - the section whose head is at byte `at`.
 *
 * next_out the byte behind it, where the next head is, or the end
 * returns  false: it goes beyond the end of the state
 */
bool trib_state_section_at(const uint8_t *state, size_t bytes, size_t at,
                           struct trib_state_section *section_out, size_t *next_out);

/** trib_state_refuse - the sentence that a state is of a plan that differs in `what`;
 * returns TRIB_ERR_INVALID. */
trib_status_t trib_state_refuse(struct trib_plan *plan, const char *what,
                                const char *theirs, const char *ours);

/* The head of each rank's message about what is to be moved. */
struct trib_offer {
    int32_t status; /* trib_status_t of the rank's own checks */
    uint32_t gives; /* 0: the rank is new, and has no old one */
};

/**
 * trib_offers_check - whether all ranks can go on.
 *
 * offers   [ranks] messages of `bytes` bytes each, the same on all ranks
 * first_out the lowest rank that gives
 * errors   of this rank, or of another one, with a sentence in comm; TRIB_ERR_INVALID:
 *          none gives
 */
trib_status_t trib_offers_check(struct trib_comm *comm, const char *call,
                                const void *offers, size_t bytes, int *first_out);

/* A move of a plan's state to a plan of another communicator. */
struct trib_state_mover {
    struct trib_comm *comm; /* of the new plan */
    struct trib_plan *from; /* NULL: this rank has none */
    uint64_t steps; /* as of trib_plan_state_move */
    const char *call; /* for sentences */
};

/**
 * trib_plan_state_move_by - trib_plan_state_move, where a rank may have failed to make
 * its plan.
 *
 * to       the new plan; NULL: this rank has none, because of `status`, whose sentence
 *          is in c->comm. The others hear of it
 */
trib_status_t trib_plan_state_move_by(const struct trib_state_mover *c,
                                      struct trib_plan *to, trib_status_t status);

/** trib_state_printable - copy a name or text of a section so that it can be shown. */
void trib_state_printable(char *out, size_t room, const void *bytes, size_t len);

#endif
