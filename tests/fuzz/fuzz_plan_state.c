/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Any bytes as the state of a plan, as they come and with the length and the checksum that
 * they ought to have: the plan has it, or a sentence why not.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <tributary.h>

#include "base/digest.h"
#include "tests/fuzz/reach.h"

enum { HEAD = 64, AT_BYTES = 16, AT_CHECKSUM = 24 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

unsigned fuzz_reached; /* states that the plan has taken */

static trib_comm_t *comm;
static trib_plan_t *plan;

static void close_all(void)
{
    trib_plan_free(plan);
    trib_free_comm(comm);
}

static void open_all(void)
{
    static float x[40];
    trib_opts_t opts = TRIB_OPTS_INIT;
    trib_desc_t d = TRIB_DESC_INIT;

    opts.config = "transport=shm";
    d.recv = x;
    d.count = 40;
    d.codec = "topk:ratio=0.1";
    d.feedback = "ef21:momentum=0.5";
    if (trib_init(&opts, &comm) != TRIB_OK ||
        trib_plan_allreduce(comm, &d, &plan) != TRIB_OK)
        abort();
    atexit(close_all);
}

static void load(const uint8_t *state, size_t bytes)
{
    trib_status_t st = trib_plan_state_load(plan, state, bytes);
    size_t again;

    if (st != TRIB_OK && (st != TRIB_ERR_INVALID || !trib_last_error(comm)[0]))
        abort();
    if (st != TRIB_OK)
        return;
    fuzz_reached++;
    const size_t room =
        bytes + TRIB_PLAN_NAME_MAX + 1; /* a state may have had no name */
    uint8_t *saved = malloc(room);
    if (!saved || trib_plan_state_save(plan, saved, room, &again) != TRIB_OK ||
        again > room)
        abort();
    free(saved);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!comm)
        open_all();
    load(data, size);
    if (size < HEAD)
        return 0;
    uint8_t *state = malloc(size);
    uint64_t number = size;
    if (!state)
        return 0;
    memcpy(state, data, size);
    memcpy(state + AT_BYTES, &number, sizeof(number));
    number = 0;
    memcpy(state + AT_CHECKSUM, &number, sizeof(number));
    number = trib_digest_seeded(state + HEAD, size - HEAD, trib_digest(state, HEAD));
    memcpy(state + AT_CHECKSUM, &number, sizeof(number));
    load(state, size);
    free(state);
    return 0;
}
