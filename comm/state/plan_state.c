/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A plan's state as bytes, little-endian:
 *
 *     byte 0-7    "TRIBPLAN"
 *     byte 8      u32 version, u32 number of sections, u64 total bytes, u64 checksum
 *     byte 32     u64 count, u32 ranks, rank, collective, dtype, op, root
 *     then        sections: name, 16 bytes padded with zeros; u64 length; that many
 *                 bytes, padded with zeros to a multiple of 8
 *
 * A residual belongs to this rank's contribution, whatever the algorithm, the chunk and
 * the summing ranks are. So a state may be loaded where these differ. (Not so in
 * version 1.)
 *
 * The checksum is XXH3 of everything else. A plan has a fixed list of sections
 * (sections_of), whose lengths follow from its description: a state matches if it has
 * exactly these sections. The sections "codec" and "feedback" hold their texts. New
 * state of a codec gets a new section.
 */
#include "comm/state/plan_state.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/digest.h"
#include "comm/core/communicator.h"
#include "comm/core/plan_struct.h"
#include "comm/plan/plan_feedback.h"
#include "pipeline/payload/error_feedback.h"
#include "pipeline/payload/undo_log.h"

enum { VERSION = 2, SECTIONS_MAX = 16 };

static const char magic[8] = {'T', 'R', 'I', 'B', 'P', 'L', 'A', 'N'};

struct section {
    const char *name;
    void *data;
    size_t bytes;
    const char *text; /* compared but not loaded; or NULL */
    bool is_name; /* text that also matches an empty one */
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
    s->at[s->n - 1].is_name = true;
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

static struct trib_state_head head_of(const struct trib_plan *plan,
                                      const struct sections *s)
{
    const struct trib_run_desc *d = &plan->run.desc;
    struct trib_state_head h = {
        .version = VERSION,
        .n_sections = (uint32_t)s->n,
        .bytes = sizeof(h),
        .count = d->count,
        .ranks = (uint32_t)plan->comm->engine.ranks,
        .rank = (uint32_t)plan->comm->engine.rank,
        .coll = d->op.coll,
        .dtype = d->op.dtype,
        .op = d->op.op,
        .root = d->op.root,
    };
    memcpy(h.magic, magic, sizeof(magic));
    for (size_t i = 0; i < s->n; i++)
        h.bytes +=
            sizeof(struct trib_state_section) + trib_state_padded(s->at[i].bytes);
    return h;
}

uint64_t trib_state_checksum(const struct trib_state_head *h, const uint8_t *state)
{
    struct trib_state_head plain = *h;

    assert(h->bytes >= sizeof(plain));
    plain.checksum = 0;
    return trib_digest_seeded(state + sizeof(plain), (size_t)h->bytes - sizeof(plain),
                              trib_digest(&plain, sizeof(plain)));
}

/* ---- save ------------------------------------------------------------------------ */

static void write_sections(const struct sections *s, uint8_t *at)
{
    for (size_t i = 0; i < s->n; i++) {
        const struct section *x = &s->at[i];
        struct trib_state_section h = {.bytes = x->bytes};
        const size_t pad = trib_state_padded(x->bytes) - x->bytes;
        assert(strlen(x->name) < sizeof(h.name));
        memcpy(h.name, x->name, strlen(x->name));
        memcpy(at, &h, sizeof(h));
        at += sizeof(h);
        if (x->model)
            trib_model_write(x->model, at);
        else
            memcpy(at, x->text ? x->text : x->data, x->bytes);
        memset(at + x->bytes, 0, pad);
        at += x->bytes + pad;
    }
}

static trib_status_t save(struct trib_plan *plan, void *state, size_t bytes,
                          size_t *bytes_out)
{
    struct sections s;

    if (!bytes_out)
        return trib_comm_fail(plan->comm, TRIB_ERR_INVALID,
                              "trib_plan_state_save needs bytes_out, and it is NULL");
    trib_status_t st = trib_plan_idle(plan, "trib_plan_state_save");
    if (st != TRIB_OK)
        return st;
    if (plan->run.now.state == TRIB_RUN_DONE && plan->run.now.status != TRIB_OK)
        return plan->run.now.status; /* the start was aborted midway: the state belongs
                                      * to no step */
    sections_of(plan, &s);
    struct trib_state_head h = head_of(plan, &s);
    *bytes_out = (size_t)h.bytes;
    if (!state)
        return TRIB_OK;
    if (bytes < h.bytes)
        return trib_comm_fail(plan->comm, TRIB_ERR_OVERFLOW,
                              "the plan's state has %" PRIu64 " bytes, but there is "
                              "room for %zu",
                              h.bytes, bytes);
    write_sections(&s, (uint8_t *)state + sizeof(h));
    h.checksum = trib_state_checksum(&h, state);
    memcpy(state, &h, sizeof(h));
    return TRIB_OK;
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

trib_status_t trib_state_refuse(struct trib_plan *plan, const char *what,
                                const char *theirs, const char *ours)
{
    return trib_comm_fail(plan->comm, TRIB_ERR_INVALID,
                          "the state belongs to a plan with %s %s, but this plan has "
                          "%s",
                          what, theirs, ours);
}

static trib_status_t compare(struct trib_plan *plan, const char *what, uint64_t theirs,
                             uint64_t ours)
{
    char a[24], b[24];

    if (theirs == ours)
        return TRIB_OK;
    snprintf(a, sizeof(a), "%" PRIu64, theirs);
    snprintf(b, sizeof(b), "%" PRIu64, ours);
    return trib_state_refuse(plan, what, a, b);
}

trib_status_t trib_state_check_whole(struct trib_plan *plan, const uint8_t *state,
                                     size_t bytes, struct trib_state_head *h_out)
{
    if (bytes < sizeof(*h_out) || memcmp(state, magic, sizeof(magic)) != 0)
        return trib_comm_fail(plan->comm, TRIB_ERR_INVALID,
                              "these %zu bytes are not the state of a plan", bytes);
    memcpy(h_out, state, sizeof(*h_out));
    if (h_out->version != VERSION)
        return trib_comm_fail(plan->comm, TRIB_ERR_INVALID,
                              "the state has version %" PRIu32 ", this library reads "
                              "version %d",
                              h_out->version, VERSION);
    if (h_out->bytes != bytes)
        return trib_comm_fail(plan->comm, TRIB_ERR_INVALID,
                              "the state has %" PRIu64 " bytes, but %zu were passed",
                              h_out->bytes, bytes);
    if (trib_state_checksum(h_out, state) != h_out->checksum)
        return trib_comm_fail(plan->comm, TRIB_ERR_INVALID,
                              "the state is damaged: its checksum is wrong");
    return TRIB_OK;
}

trib_status_t trib_state_check_kind(struct trib_plan *plan,
                                    const struct trib_state_head *theirs,
                                    const struct trib_state_head *ours)
{
    if (theirs->coll != ours->coll)
        return trib_state_refuse(plan, "collective",
                                 trib_coll_name((trib_coll_t)theirs->coll),
                                 trib_coll_name((trib_coll_t)ours->coll));
    if (theirs->dtype != ours->dtype)
        return trib_state_refuse(plan, "dtype",
                                 trib_dtype_name((trib_dtype_t)theirs->dtype),
                                 trib_dtype_name((trib_dtype_t)ours->dtype));
    if (theirs->op != ours->op)
        return trib_state_refuse(plan, "op", trib_op_name((trib_op_t)theirs->op),
                                 trib_op_name((trib_op_t)ours->op));
    return TRIB_OK;
}

static trib_status_t check_head(struct trib_plan *plan,
                                const struct trib_state_head *theirs,
                                const struct trib_state_head *ours)
{
    trib_status_t st = trib_state_check_kind(plan, theirs, ours);

    if (st == TRIB_OK)
        st = compare(plan, "root", theirs->root, ours->root);
    if (st == TRIB_OK)
        st = compare(plan, "count", theirs->count, ours->count);
    if (st == TRIB_OK)
        st = compare(plan, "ranks", theirs->ranks, ours->ranks);
    return st == TRIB_OK ? compare(plan, "rank", theirs->rank, ours->rank) : st;
}

void trib_state_printable(char *out, size_t room, const void *bytes, size_t len)
{
    const char *from = bytes;
    size_t i = 0;

    for (; i < len && i + 1 < room && from[i]; i++)
        out[i] = (char)(from[i] >= ' ' && from[i] <= '~' ? from[i] : '?');
    out[i] = '\0';
}

/* Check a section of a state, whose bytes are at `at`. */
static trib_status_t check_section(struct trib_plan *plan, const struct sections *s,
                                   const struct trib_state_section *h,
                                   const uint8_t *at, const uint8_t *found[])
{
    char name[TRIB_STATE_NAME_BYTES + 1], text[100];
    size_t i = 0;

    trib_state_printable(name, sizeof(name), h->name, sizeof(h->name));
    while (i < s->n && strncmp(s->at[i].name, h->name, sizeof(h->name)) != 0)
        i++;
    if (i == s->n || found[i])
        return trib_comm_fail(plan->comm, TRIB_ERR_INVALID,
                              "the state has %s section \"%s\", which the plan lacks",
                              i == s->n ? "a" : "another", name);
    const struct section *ours = &s->at[i];
    found[i] = at;
    if (ours->text) {
        if (h->bytes == ours->bytes && memcmp(at, ours->text, ours->bytes) == 0)
            return TRIB_OK;
        if (ours->is_name &&
            (!h->bytes || (!ours->bytes && h->bytes <= TRIB_PLAN_NAME_MAX)))
            return TRIB_OK;
        trib_state_printable(text, sizeof(text), at, (size_t)h->bytes);
        return trib_state_refuse(plan, name, text, ours->text);
    }
    if (h->bytes == ours->bytes)
        return TRIB_OK;
    return trib_comm_fail(plan->comm, TRIB_ERR_INVALID,
                          "section \"%s\" of the state has %" PRIu64 " bytes, the "
                          "plan's has %zu",
                          name, h->bytes, ours->bytes);
}

bool trib_state_section_at(const uint8_t *state, size_t bytes, size_t at,
                           struct trib_state_section *section_out, size_t *next_out)
{
    assert(at < bytes);
    const size_t left = bytes - at;
    if (left < sizeof(*section_out))
        return false;
    memcpy(section_out, state + at, sizeof(*section_out));
    if (section_out->bytes > left ||
        trib_state_padded((size_t)section_out->bytes) > left - sizeof(*section_out))
        return false;
    *next_out =
        at + sizeof(*section_out) + trib_state_padded((size_t)section_out->bytes);
    return true;
}

static trib_status_t check_sections(struct trib_plan *plan, const struct sections *s,
                                    const uint8_t *state, size_t bytes,
                                    const uint8_t *found[])
{
    struct trib_state_section h;
    size_t next;

    for (size_t at = sizeof(struct trib_state_head); at < bytes; at = next) {
        if (!trib_state_section_at(state, bytes, at, &h, &next))
            return trib_comm_fail(plan->comm, TRIB_ERR_INVALID,
                                  "the state's section at byte %zu exceeds the state",
                                  at);
        trib_status_t st = check_section(plan, s, &h, state + at + sizeof(h), found);
        if (st != TRIB_OK)
            return st;
    }
    for (size_t i = 0; i < s->n; i++)
        if (!found[i])
            return trib_comm_fail(plan->comm, TRIB_ERR_INVALID,
                                  "the state has no section \"%s\"", s->at[i].name);
    return TRIB_OK;
}

/* A model may refuse its bytes, so models are read before anything else changes. */
static trib_status_t read_models(struct trib_plan *plan, const struct sections *s,
                                 const uint8_t *const found[])
{
    struct trib_error err = {0};

    for (size_t i = 0; i < s->n; i++) {
        const struct section *x = &s->at[i];
        const trib_status_t st =
            x->model ? trib_model_read(x->model, found[i], x->bytes, &err) : TRIB_OK;
        if (st != TRIB_OK)
            return trib_comm_fail(plan->comm, TRIB_ERR_INVALID, "section \"%s\": %s",
                                  x->name, trib_error_text(&err));
    }
    return TRIB_OK;
}

static trib_status_t load(struct trib_plan *plan, const void *state, size_t bytes)
{
    const uint8_t *found[SECTIONS_MAX] = {NULL};
    struct sections s;
    struct trib_state_head theirs;

    if (!state)
        return trib_comm_fail(plan->comm, TRIB_ERR_INVALID,
                              "trib_plan_state_load: state is NULL");
    trib_status_t st = trib_plan_idle(plan, "trib_plan_state_load");
    if (st == TRIB_OK)
        st = trib_state_check_whole(plan, state, bytes, &theirs);
    if (st != TRIB_OK)
        return st;
    sections_of(plan, &s);
    const struct trib_state_head ours = head_of(plan, &s);
    st = check_head(plan, &theirs, &ours);
    if (st == TRIB_OK)
        st = check_sections(plan, &s, state, bytes, found);
    if (st != TRIB_OK)
        return st;
    st = read_models(plan, &s, found);
    if (st != TRIB_OK)
        return st;
    for (size_t i = 0; i < s.n; i++)
        if (s.at[i].data)
            memcpy(s.at[i].data, found[i], s.at[i].bytes);
    if (plan->codec)
        trib_feedback_loaded(&plan->run);
    trib_undo_forget(&plan->run);
    trib_identity_loaded(plan); /* models derive random numbers from the key: reread */
    return read_models(plan, &s, found);
}

trib_status_t trib_plan_state_load(trib_plan_t *plan, const void *state, size_t bytes)
{
    if (!plan)
        return TRIB_ERR_INVALID;
    return plan->ops->state_load ? plan->ops->state_load(plan, state, bytes)
                                 : load(plan, state, bytes);
}
