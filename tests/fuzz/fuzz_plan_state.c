/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Any bytes as the state of a plan, unchanged and with the correct length and checksum:
 * the plan has the state or an error message. If the first byte is 0, the next selects
 * the plan whose state is used, and edits of it (edits.h) follow.
 */
#include <tributary.h>

#include "base/sections.h"
#include "tests/fuzz/edits.h"

enum { HEAD = TRIB_SECTIONS_HEAD_BYTES, PLANS = 3, EDITS_MOST = 24 };

unsigned fuzz_reached; /* states that the plan has accepted */

static trib_comm_t *comm;
static struct kept {
    const char *codec, *feedback;
    trib_plan_t *plan;
    uint8_t *state; /* as saved first */
    size_t bytes;
} kept[PLANS] = {{.codec = "topk:ratio=0.1", .feedback = "ef21:momentum=0.5"},
                 {.codec = "powersgd:rank=2"},
                 {.codec = "qsgd:bits=8,bucket=64,ef=1"}};

static void close_all(void)
{
    for (int i = 0; i < PLANS; i++) {
        trib_plan_free(kept[i].plan);
        free(kept[i].state);
    }
    trib_free_comm(comm);
}

static void open_plan(struct kept *k)
{
    static float x[40];
    trib_desc_t d = TRIB_DESC_INIT;

    d.recv = x;
    d.count = 40;
    d.codec = k->codec;
    d.feedback = k->feedback;
    need(trib_plan_allreduce(comm, &d, &k->plan) == TRIB_OK);
    need(trib_plan_start(k->plan) == TRIB_OK && trib_plan_wait(k->plan) == TRIB_OK);
    need(trib_plan_state_save(k->plan, NULL, 0, &k->bytes) == TRIB_OK);
    need((k->state = malloc(k->bytes)) != NULL);
    need(trib_plan_state_save(k->plan, k->state, k->bytes, &k->bytes) == TRIB_OK);
}

static void open_all(void)
{
    trib_opts_t opts = TRIB_OPTS_INIT;

    opts.config = "transport=shm";
    need(trib_init(&opts, &comm) == TRIB_OK);
    for (int i = 0; i < PLANS; i++)
        open_plan(&kept[i]);
    atexit(close_all);
}

static void load(trib_plan_t *plan, const uint8_t *state, size_t bytes)
{
    const void *states[] = {state};
    trib_status_t st = trib_plan_state_load_from(plan, states, &bytes, 1);
    size_t again;

    if (st != TRIB_OK && st != TRIB_ERR_INVALID)
        abort();
    st = trib_plan_state_load(plan, state, bytes);

    if (st != TRIB_OK && (st != TRIB_ERR_INVALID || !trib_last_error(comm)[0]))
        abort();
    if (st != TRIB_OK)
        return;
    fuzz_reached++;
    const size_t room =
        bytes + TRIB_PLAN_NAME_MAX + 1; /* the state may be of a plan without a name */
    uint8_t *saved = malloc(room);
    if (!saved || trib_plan_state_save(plan, saved, room, &again) != TRIB_OK ||
        again > room)
        abort();
    free(saved);
}

/* Load with the correct length and checksum. */
static void load_sealed(trib_plan_t *plan, uint8_t *state, size_t size)
{
    trib_sections_seal(state, size);
    load(plan, state, size);
}

/* Repeat a part of it, like a section that is a copy of another. */
static size_t repeat(uint8_t *state, size_t n, const struct edit *e)
{
    const size_t at = HEAD + e->offset % (n - HEAD + 1) / 8 * 8;
    const size_t len = 8 * (1 + (e->value & 15));

    if (at + len > n)
        return n;
    memmove(state + at + len, state + at, n - at);
    return n + len;
}

static void run_edits(const struct kept *k, struct edits *all)
{
    const size_t room = k->bytes + EDITS_MOST * 128;
    uint8_t *state = malloc(room);
    size_t n = k->bytes;
    struct edit e;

    if (!state)
        return;
    memcpy(state, k->state, n);
    for (int i = 0; i < EDITS_MOST && edits_next(all, &e); i++) {
        if (e.place % 8 == 7 && n > HEAD)
            n = HEAD + e.offset % (n - HEAD + 1);
        else if (e.place % 8 == 6)
            n = repeat(state, n, &e);
        else
            (void)edit_apply(all, &e, state, n);
    }
    uint8_t *exact = malloc(n); /* exact size, so that ASan detects reads past the
                                 * end */
    if (exact) {
        memcpy(exact, state, n);
        load_sealed(k->plan, exact, n);
        load(k->plan, k->state, k->bytes);
    }
    free(exact);
    free(state);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint64_t special[] = {0, 1, 8, 24, 40, 160, UINT64_MAX, INT64_MAX,
                                       UINT64_MAX - 7, UINT64_C(1) << 32};
    struct edits all = {.special = special,
                        .n_special = sizeof(special) / sizeof(*special)};

    if (!comm)
        open_all();
    if (size > 1 && data[0] == 0) {
        all.at = data + 2;
        all.left = size - 2;
        run_edits(&kept[data[1] % PLANS], &all);
        return 0;
    }
    load(kept[0].plan, data, size);
    if (size < HEAD)
        return 0;
    uint8_t *state = malloc(size);
    if (!state)
        return 0;
    memcpy(state, data, size);
    load_sealed(kept[0].plan, state, size);
    free(state);
    return 0;
}
