/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/sections.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/digest.h"
#include "base/error.h"

enum { ALIGN = 8 };

struct head {
    char magic[8];
    uint32_t version, zero;
    uint64_t bytes, checksum;
};
_Static_assert(sizeof(struct head) == TRIB_SECTIONS_HEAD_BYTES, "head has no padding");

struct section_head {
    char name[TRIB_SECTION_NAME_BYTES];
    uint64_t bytes;
};
_Static_assert(sizeof(struct section_head) == 24, "section_head has no padding");

static size_t padded(size_t bytes)
{
    return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

static uint64_t checksum_of(const uint8_t *state, size_t bytes)
{
    return trib_digest_seeded(state + sizeof(struct head), bytes - sizeof(struct head),
                              trib_digest(state, offsetof(struct head, checksum)));
}

/* Writing -------------------------------------------------------------------------- */

void *trib_sections_add(struct trib_sections_writer *w, const char *name,
                        const void *data, size_t bytes)
{
    struct section_head h = {.bytes = bytes};
    const size_t at = w->bytes;

    assert(strlen(name) <= sizeof(h.name));
    w->bytes += sizeof(h) + padded(bytes);
    if (!w->out || w->bytes > w->room)
        return NULL;
    memcpy(h.name, name, strlen(name));
    memcpy(w->out + at, &h, sizeof(h));
    uint8_t *to = w->out + at + sizeof(h);
    if (data)
        memcpy(to, data, bytes);
    memset(to + bytes, 0, padded(bytes) - bytes);
    return to;
}

trib_status_t trib_sections_finish(const struct trib_sections_writer *w,
                                   const struct trib_sections_kind *kind,
                                   struct trib_error *err)
{
    struct head h = {.version = kind->version};

    if (!w->out)
        return TRIB_OK;
    if (w->bytes > w->room)
        return trib_fail(err, TRIB_ERR_OVERFLOW,
                         "the state of %s has %zu bytes, but there is room for %zu",
                         kind->what, w->bytes, w->room);
    memcpy(h.magic, kind->magic, sizeof(h.magic));
    memcpy(w->out, &h, sizeof(h));
    trib_sections_seal(w->out, w->bytes);
    return TRIB_OK;
}

void trib_sections_seal(void *state, size_t bytes)
{
    uint8_t *at = state;
    const uint64_t total = bytes;

    assert(bytes >= sizeof(struct head));
    memcpy(at + offsetof(struct head, bytes), &total, sizeof(total));
    const uint64_t checksum = checksum_of(at, bytes);
    memcpy(at + offsetof(struct head, checksum), &checksum, sizeof(checksum));
}

/* Reading -------------------------------------------------------------------------- */

bool trib_sections_step(struct trib_sections *r, struct trib_section *out)
{
    const size_t left = r->bytes - r->at;
    struct section_head h;

    assert(r->at <= r->bytes);
    if (left < sizeof(h))
        return false;
    memcpy(&h, r->state + r->at, sizeof(h));
    if (h.bytes > left - sizeof(h) || padded((size_t)h.bytes) > left - sizeof(h))
        return false;
    *out = (struct trib_section){.data = r->state + r->at + sizeof(h),
                                 .bytes = (size_t)h.bytes};
    memcpy(out->name, h.name, sizeof(h.name));
    r->at += sizeof(h) + padded(out->bytes);
    return true;
}

static trib_status_t check_head(const struct trib_sections *r, struct trib_error *err)
{
    const struct trib_sections_kind *kind = r->kind;
    struct head h;

    if (!r->state)
        return trib_fail(err, TRIB_ERR_INVALID, "the state of %s is NULL", kind->what);
    if (r->bytes < sizeof(h) || memcmp(r->state, kind->magic, sizeof(h.magic)) != 0)
        return trib_fail(err, TRIB_ERR_INVALID,
                         "these %zu bytes are not the state of %s", r->bytes,
                         kind->what);
    memcpy(&h, r->state, sizeof(h));
    if (h.version != kind->version)
        return trib_fail(err, TRIB_ERR_INVALID,
                         "the state of %s has version %" PRIu32 ", but this library "
                         "reads version %" PRIu32 ": load it with the release that "
                         "saved it",
                         kind->what, h.version, kind->version);
    if (h.bytes != r->bytes)
        return trib_fail(err, TRIB_ERR_INVALID,
                         "the state of %s has %" PRIu64 " bytes, but %zu were passed: "
                         "it was truncated",
                         kind->what, h.bytes, r->bytes);
    return checksum_of(r->state, r->bytes) == h.checksum
               ? TRIB_OK
               : trib_fail(err, TRIB_ERR_INVALID,
                           "the state of %s is damaged: its checksum is wrong",
                           kind->what);
}

trib_status_t trib_sections_open(const struct trib_sections_kind *kind,
                                 const void *state, size_t bytes,
                                 struct trib_error *err, struct trib_sections *out)
{
    struct trib_section section;

    *out = (struct trib_sections){kind, state, bytes, sizeof(struct head)};
    const trib_status_t st = check_head(out, err);
    if (st != TRIB_OK)
        return st;
    while (out->at < bytes)
        if (!trib_sections_step(out, &section))
            return trib_fail(err, TRIB_ERR_INVALID,
                             "the section at byte %zu exceeds the state of %s", out->at,
                             kind->what);
    out->at = sizeof(struct head);
    return TRIB_OK;
}

trib_status_t trib_sections_next(struct trib_sections *r, const char *name,
                                 struct trib_error *err, struct trib_section *out)
{
    struct trib_sections ahead = *r;

    if (!trib_sections_step(&ahead, out))
        return trib_fail(err, TRIB_ERR_INVALID, "the state of %s has no section \"%s\"",
                         r->kind->what, name);
    if (strcmp(out->name, name) != 0)
        return trib_fail(err, TRIB_ERR_INVALID,
                         "the state of %s has section \"%s\" instead of \"%s\"",
                         r->kind->what, out->name, name);
    r->at = ahead.at;
    return TRIB_OK;
}

trib_status_t trib_sections_copy(struct trib_sections *r, const char *name, void *to,
                                 size_t bytes, struct trib_error *err)
{
    struct trib_section s;
    const trib_status_t st = trib_sections_next(r, name, err, &s);

    if (st != TRIB_OK)
        return st;
    if (s.bytes != bytes)
        return trib_fail(err, TRIB_ERR_INVALID,
                         "section \"%s\" of the state of %s has %zu bytes instead of "
                         "%zu",
                         name, r->kind->what, s.bytes, bytes);
    memcpy(to, s.data, bytes);
    return TRIB_OK;
}

trib_status_t trib_sections_close(const struct trib_sections *r, struct trib_error *err)
{
    struct trib_sections ahead = *r;
    struct trib_section s;

    return trib_sections_step(&ahead, &s)
               ? trib_fail(err, TRIB_ERR_INVALID,
                           "the state of %s has section \"%s\", which is unknown here",
                           r->kind->what, s.name)
               : TRIB_OK;
}

struct trib_section trib_sections_find(const void *state, size_t bytes,
                                       const char *name)
{
    struct trib_sections r = {
        .state = state, .bytes = bytes, .at = sizeof(struct head)};
    struct trib_section s;

    while (trib_sections_step(&r, &s))
        if (strcmp(s.name, name) == 0)
            return s;
    return (struct trib_section){.data = NULL};
}
