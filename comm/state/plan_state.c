/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A plan's state: named sections (base/sections.h) with the magic "TRIBPLAN".
 *
 * A residual belongs to this rank's contribution, whatever the algorithm, the chunk and
 * the summing ranks are. So a state may be loaded where these differ.
 *
 * A plan has a fixed list of sections (sections_of) after the section "plan". Their
 * lengths follow from its description. The sections "codec" and "feedback" hold their
 * texts. New state of a codec gets a new section.
 */
#include "comm/state/plan_state.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/minmax.h"
#include "comm/core/communicator.h"
#include "comm/core/plan_struct.h"
#include "comm/plan/plan_feedback.h"
#include "pipeline/payload/error_feedback.h"
#include "pipeline/payload/undo_log.h"

enum { SECTIONS_MAX = 16 };

static const struct trib_sections_kind kind = {"TRIBPLAN", 3, "a plan"};

struct section {
    const char *name;
    void *data;
    size_t bytes;
    const char *text; /* compared but not loaded; or NULL */
    struct trib_model *model; /* writes and reads the section; or NULL */
};

struct sections {
    size_t n;
    struct section at[SECTIONS_MAX];
};

static void add(struct sections *s, const char *name, void *data, size_t bytes)
{
    assert(s->n < SECTIONS_MAX);
    if (data)
        s->at[s->n++] = (struct section){.name = name, .data = data, .bytes = bytes};
}

static void add_text(struct sections *s, const char *name, const char *text)
{
    s->at[s->n++] = (struct section){.name = name, .bytes = strlen(text), .text = text};
}

static void sections_of(struct trib_plan *plan, struct sections *s)
{
    struct trib_run *run = &plan->run;
    const struct trib_feedback *f = trib_feedback_of(run);
    const size_t vector = run->desc.total * sizeof(float);

    s->n = 0;
    add_text(s, "codec", plan->codec ? trib_codec_info(plan->codec)->text : "none");
    add_text(s, "feedback", plan->codec ? run->desc.feedback.text : "none");
    add_text(s, "name", plan->identity.name);
    add(s, "step", &run->now.step, sizeof(run->now.step));
    add(s, "noise", &plan->identity.kept, sizeof(plan->identity.kept));
    add(s, "residual", f->residual, vector);
    for (int i = 0; i < TRIB_FEEDBACK_STATES && f->ops; i++)
        add(s, f->ops->states[i].name, f->state[i], vector);
    add(s, "sent", f->sent, run->desc.total / 8 + 1);
    if (run->desc.model)
        s->at[s->n++] = (struct section){.name = "model",
                                         .bytes = trib_model_bytes(run->desc.model),
                                         .model = run->desc.model};
}

static struct trib_state_plan describe(const struct trib_plan *plan)
{
    const struct trib_run_desc *d = &plan->run.desc;

    return (struct trib_state_plan){.count = d->count,
                                    .ranks = (uint32_t)plan->comm->engine.ranks,
                                    .rank = (uint32_t)plan->comm->engine.rank,
                                    .coll = d->op.coll,
                                    .dtype = d->op.dtype,
                                    .op = d->op.op,
                                    .root = d->op.root};
}

/* ---- save ------------------------------------------------------------------------ */

static void add_all(struct trib_plan *plan, struct trib_sections_writer *w)
{
    const struct trib_state_plan about = describe(plan);
    struct sections s;

    sections_of(plan, &s);
    (void)trib_sections_add(w, "plan", &about, sizeof(about));
    for (size_t i = 0; i < s.n; i++) {
        const struct section *x = &s.at[i];
        assert(x->text || x->data || x->model);
        uint8_t *at =
            trib_sections_add(w, x->name, x->text ? x->text : x->data, x->bytes);
        if (at && x->model)
            trib_model_write(x->model, at);
    }
}

static trib_status_t save(struct trib_plan *plan, void *state, size_t bytes,
                          size_t *bytes_out)
{
    struct trib_sections_writer w = trib_sections_begin(state, bytes);
    struct trib_error err = {0};

    if (!bytes_out)
        return trib_comm_fail(plan->comm, TRIB_ERR_INVALID,
                              "trib_plan_state_save needs bytes_out, and it is NULL");
    trib_status_t st = trib_plan_idle(plan, "trib_plan_state_save");
    if (st != TRIB_OK)
        return st;
    if (plan->run.now.state == TRIB_RUN_DONE && plan->run.now.status != TRIB_OK)
        return plan->run.now.status; /* the start was aborted midway: the state belongs
                                      * to no step */
    add_all(plan, &w);
    *bytes_out = w.bytes;
    st = trib_sections_finish(&w, &kind, &err);
    return st == TRIB_OK ? st : trib_comm_fail(plan->comm, st, "%s", err.text);
}

trib_status_t trib_plan_state_save(trib_plan_t *plan, void *state, size_t bytes,
                                   size_t *bytes_out)
{
    if (!plan)
        return TRIB_ERR_INVALID;
    return plan->ops->state_save ? plan->ops->state_save(plan, state, bytes, bytes_out)
                                 : save(plan, state, bytes, bytes_out);
}

/* ---- load ------------------------------------------------------------------------ */

trib_status_t trib_state_refuse(struct trib_error *err, const char *what,
                                const char *theirs, const char *ours)
{
    return trib_fail(err, TRIB_ERR_INVALID,
                     "the state belongs to a plan with %s %s, but this plan has %s",
                     what, theirs, ours);
}

static trib_status_t compare(struct trib_error *err, const char *what, uint64_t theirs,
                             uint64_t ours)
{
    char a[24], b[24];

    if (theirs == ours)
        return TRIB_OK;
    snprintf(a, sizeof(a), "%" PRIu64, theirs);
    snprintf(b, sizeof(b), "%" PRIu64, ours);
    return trib_state_refuse(err, what, a, b);
}

trib_status_t trib_state_open(const void *state, size_t bytes, struct trib_error *err,
                              struct trib_sections *out,
                              struct trib_state_plan *plan_out)
{
    const trib_status_t st = trib_sections_open(&kind, state, bytes, err, out);

    return st == TRIB_OK
               ? trib_sections_copy(out, "plan", plan_out, sizeof(*plan_out), err)
               : st;
}

trib_status_t trib_state_check_kind(const struct trib_state_plan *theirs,
                                    const struct trib_state_plan *ours,
                                    struct trib_error *err)
{
    if (theirs->coll != ours->coll)
        return trib_state_refuse(err, "collective",
                                 trib_coll_name((trib_coll_t)theirs->coll),
                                 trib_coll_name((trib_coll_t)ours->coll));
    if (theirs->dtype != ours->dtype)
        return trib_state_refuse(err, "dtype",
                                 trib_dtype_name((trib_dtype_t)theirs->dtype),
                                 trib_dtype_name((trib_dtype_t)ours->dtype));
    if (theirs->op != ours->op)
        return trib_state_refuse(err, "op", trib_op_name((trib_op_t)theirs->op),
                                 trib_op_name((trib_op_t)ours->op));
    return TRIB_OK;
}

static trib_status_t check_plan(const struct trib_state_plan *theirs,
                                const struct trib_state_plan *ours,
                                struct trib_error *err)
{
    trib_status_t st = trib_state_check_kind(theirs, ours, err);

    if (st == TRIB_OK)
        st = compare(err, "root", theirs->root, ours->root);
    if (st == TRIB_OK)
        st = compare(err, "count", theirs->count, ours->count);
    if (st == TRIB_OK)
        st = compare(err, "ranks", theirs->ranks, ours->ranks);
    return st == TRIB_OK ? compare(err, "rank", theirs->rank, ours->rank) : st;
}

trib_status_t trib_state_check_section(const struct trib_section *theirs,
                                       const void *ours, size_t bytes,
                                       struct trib_error *err)
{
    const bool is_name = strcmp(theirs->name, "name") == 0;
    char a[100], b[100];

    if (is_name || strcmp(theirs->name, "codec") == 0 ||
        strcmp(theirs->name, "feedback") == 0) {
        if (theirs->bytes == bytes && memcmp(theirs->data, ours, bytes) == 0)
            return TRIB_OK;
        if (is_name &&
            (!theirs->bytes || (!bytes && theirs->bytes <= TRIB_PLAN_NAME_MAX)))
            return TRIB_OK;
        snprintf(a, sizeof(a), "%.*s", (int)trib_min(theirs->bytes, sizeof(a)),
                 (const char *)theirs->data);
        snprintf(b, sizeof(b), "%.*s", (int)trib_min(bytes, sizeof(b)),
                 (const char *)ours);
        return trib_state_refuse(err, theirs->name, a, b);
    }
    if (theirs->bytes == bytes || strcmp(theirs->name, "model") == 0)
        return TRIB_OK;
    return trib_fail(err, TRIB_ERR_INVALID,
                     "section \"%s\" of the state has %zu bytes, the plan's has %zu",
                     theirs->name, theirs->bytes, bytes);
}

/* Read and check all sections into found. */
static trib_status_t check_sections(struct trib_sections *r, const struct sections *s,
                                    struct trib_section found[], struct trib_error *err)
{
    trib_status_t st = TRIB_OK;

    for (size_t i = 0; i < s->n && st == TRIB_OK; i++) {
        st = trib_sections_next(r, s->at[i].name, err, &found[i]);
        if (st == TRIB_OK)
            st =
                trib_state_check_section(&found[i], s->at[i].text, s->at[i].bytes, err);
    }
    return st == TRIB_OK ? trib_sections_close(r, err) : st;
}

/* Only a plan with a codec draws random numbers, so only it may have a key. */
static trib_status_t check_key(const struct trib_plan *plan, const uint8_t *noise,
                               struct trib_error *err)
{
    struct trib_identity_kept kept;

    memcpy(&kept, noise, sizeof(kept));
    return kept.settled <= (plan->codec != NULL)
               ? TRIB_OK
               : trib_fail(err, TRIB_ERR_INVALID,
                           "the state has an impossible key of random draws");
}

/* A model may refuse its bytes, so models are read before anything else changes. */
static trib_status_t read_models(const struct sections *s,
                                 const struct trib_section found[],
                                 struct trib_error *err)
{
    trib_status_t st = TRIB_OK;

    for (size_t i = 0; i < s->n && st == TRIB_OK; i++)
        if (s->at[i].model)
            st = trib_model_read(s->at[i].model, found[i].data, found[i].bytes, err);
    return st == TRIB_OK ? st : TRIB_ERR_INVALID;
}

static trib_status_t apply(struct trib_plan *plan, const struct sections *s,
                           const struct trib_section found[], struct trib_error *err)
{
    const trib_status_t st = read_models(s, found, err);

    if (st != TRIB_OK)
        return st;
    for (size_t i = 0; i < s->n; i++) {
        assert(s->at[i].text || found[i].bytes == s->at[i].bytes);
        if (s->at[i].data)
            memcpy(s->at[i].data, found[i].data, s->at[i].bytes);
    }
    if (plan->codec)
        trib_feedback_loaded(&plan->run);
    trib_undo_forget(&plan->run);
    trib_identity_loaded(plan); /* models derive random numbers from the key: reread */
    return read_models(s, found, err);
}

static trib_status_t load(struct trib_plan *plan, const void *state, size_t bytes)
{
    const struct trib_state_plan ours = describe(plan);
    struct trib_section found[SECTIONS_MAX];
    struct trib_error err = {0};
    struct trib_state_plan theirs;
    struct trib_sections r;
    struct sections s;

    trib_status_t st = trib_plan_idle(plan, "trib_plan_state_load");
    if (st != TRIB_OK)
        return st;
    sections_of(plan, &s);
    st = trib_state_open(state, bytes, &err, &r, &theirs);
    if (st == TRIB_OK)
        st = check_plan(&theirs, &ours, &err);
    if (st == TRIB_OK)
        st = check_sections(&r, &s, found, &err);
    if (st == TRIB_OK)
        st = check_key(plan, trib_sections_find(state, bytes, "noise").data, &err);
    if (st == TRIB_OK)
        st = apply(plan, &s, found, &err);
    return st == TRIB_OK ? st : trib_comm_fail(plan->comm, st, "%s", err.text);
}

trib_status_t trib_plan_state_load(trib_plan_t *plan, const void *state, size_t bytes)
{
    if (!plan)
        return TRIB_ERR_INVALID;
    return plan->ops->state_load ? plan->ops->state_load(plan, state, bytes)
                                 : load(plan, state, bytes);
}
