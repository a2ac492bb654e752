/* SPDX-License-Identifier: BSD-3-Clause */
#include "agg/protocol/control.h"

#include <assert.h>
#include <string.h>

static const uint8_t magic[4] = {'T', 'r', 'b', 'C'};

/* Payloads ------------------------------------------------------------------------- */

enum type {
    U8, /* numbers: uint32_t; U64: uint64_t */
    U32,
    U64,
    NONCE,
    JOB, /* texts: length 2, bytes */
    LINE,
    LINES, /* may contain line feeds */
    REST, /* bytes up to the end of the payload: last field */
};

struct field {
    enum type type;
    uint32_t at; /* offset in struct trib_control */
    uint64_t min; /* minimum of a number; minimum length of a text or REST */
    uint64_t max;
};

struct kind {
    const char *name;
    unsigned from; /* bits of enum trib_control_role */
    const struct field *fields;
    size_t n_fields;
    bool (*fits)(
        const struct trib_control *message); /* check across fields; NULL: none */
};

#define AT(member) offsetof(struct trib_control, member)

/* clang-format off */
#define MESSAGE(name) static const struct field name[] = {
#define FIELD(type, message, name, min, max) {type, AT(message.name), min, max},
#define END };
/* clang-format on */
#include "agg/protocol/control.def"

static bool store_join_fits(const struct trib_control *m)
{
    return m->store_join.rank < m->store_join.ranks;
}

static bool hello_fits(const struct trib_control *m)
{
    return m->hello.version_min <= m->hello.version_max;
}

static bool join_fits(const struct trib_control *m)
{
    return m->join.aggregator < m->join.aggregators;
}

static bool blobs_fit(const struct trib_control *m)
{
    const struct trib_control_blobs *b = &m->blobs;

    return b->first < b->total && b->count <= b->total - b->first &&
           (uint64_t)b->count * b->each == b->data.n;
}

#define TRIB_CONTROL_ANY (TRIB_CONTROL_JOB | TRIB_CONTROL_AGGREGATOR)
#define ALL(message) message, sizeof(message) / sizeof((message)[0])
#define FIRST(message) message, 1
#define NOTHING NULL, 0

static const struct kind kinds[TRIB_CONTROL_KINDS] = {
#define KIND(name, from, payload, fits) \
    [TRIB_CONTROL_##name] = {#name, TRIB_CONTROL_##from, payload, fits},
#include "agg/protocol/control.def"
};

const char *trib_control_name(enum trib_control_kind kind)
{
    assert(kind > 0 && kind < TRIB_CONTROL_KINDS);
    return kinds[kind].name;
}

/* Limits --------------------------------------------------------------------------- */

static uint64_t wire_bytes(const struct field *f, uint64_t n)
{
    switch (f->type) {
    case U8:
        return 1;
    case U32:
        return 4;
    case U64:
        return 8;
    case NONCE:
        return TRIB_CONTROL_NONCE_BYTES;
    case JOB:
    case LINE:
    case LINES:
        return 2 + n;
    default:
        return n;
    }
}

static bool length_fits(const struct kind *kind, uint32_t length)
{
    uint64_t least = 0;
    uint64_t most = 0;

    for (size_t i = 0; i < kind->n_fields; i++) {
        least += wire_bytes(&kind->fields[i], kind->fields[i].min);
        most += wire_bytes(&kind->fields[i], kind->fields[i].max);
    }
    return length >= least && length <= most;
}

static bool in_range(const struct field *f, uint64_t value)
{
    return value >= f->min && value <= f->max;
}

static bool job_character(uint8_t c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
           (c && strchr("._:-+@/%=,", c));
}

/* Return true for a byte that is safe on a terminal; 0x80 and above belong to UTF-8. */
static bool text_character(enum type type, uint8_t c)
{
    if (type == JOB)
        return job_character(c);
    return (c >= 0x20 && c != 0x7f) || (type == LINES && c == '\n');
}

bool trib_control_job_fits(const char *name)
{
    size_t n = strnlen(name, TRIB_CONTROL_JOB_MAX + 1);

    for (size_t i = 0; i < n; i++)
        if (!job_character((uint8_t)name[i]))
            return false;
    return n >= 1 && n <= TRIB_CONTROL_JOB_MAX;
}

/* Reading -------------------------------------------------------------------------- */

struct reader {
    const uint8_t *at;
    size_t left;
};

/* Return the next n bytes; NULL: fewer are left. */
static const uint8_t *take(struct reader *r, size_t n)
{
    const uint8_t *at = r->at;

    if (n > r->left)
        return NULL;
    r->at += n;
    r->left -= n;
    return at;
}

static bool get_number(struct reader *r, size_t bytes, uint64_t *out)
{
    const uint8_t *at = take(r, bytes);

    *out = 0;
    for (size_t i = 0; at && i < bytes; i++)
        *out |= (uint64_t)at[i] << (8 * i);
    return at != NULL;
}

static bool get_text(struct reader *r, const struct field *f, char *out)
{
    uint64_t n;

    if (!get_number(r, 2, &n) || !in_range(f, n))
        return false;
    const uint8_t *at = take(r, (size_t)n);
    if (!at)
        return false;
    for (size_t i = 0; i < n; i++)
        if (!text_character(f->type, at[i]))
            return false;
    memcpy(out, at, (size_t)n);
    out[n] = '\0';
    return true;
}

static bool get_rest(struct reader *r, const struct field *f,
                     struct trib_control_bytes *out)
{
    if (!in_range(f, r->left))
        return false;
    out->n = (uint32_t)r->left;
    out->at = take(r, r->left);
    return true;
}

static bool get_field(struct reader *r, const struct field *f, struct trib_control *out)
{
    void *place = (char *)out + f->at;
    const uint8_t *at;
    uint64_t value;

    switch (f->type) {
    case U8:
    case U32:
        if (!get_number(r, (size_t)wire_bytes(f, 0), &value) || !in_range(f, value))
            return false;
        *(uint32_t *)place = (uint32_t)value;
        return true;
    case U64:
        return get_number(r, 8, place) && in_range(f, *(uint64_t *)place);
    case NONCE:
        at = take(r, TRIB_CONTROL_NONCE_BYTES);
        if (at)
            memcpy(place, at, TRIB_CONTROL_NONCE_BYTES);
        return at != NULL;
    case REST:
        return get_rest(r, f, place);
    default:
        return get_text(r, f, place);
    }
}

trib_status_t trib_control_get(enum trib_control_kind kind, const uint8_t *payload,
                               size_t n, struct trib_control *out)
{
    struct reader r = {payload, n};

    assert(kind > 0 && kind < TRIB_CONTROL_KINDS);
    memset(out, 0, sizeof(*out));
    out->kind = kind;
    const struct kind *k = &kinds[kind];
    for (size_t i = 0; i < k->n_fields; i++)
        if (!get_field(&r, &k->fields[i], out))
            return TRIB_ERR_PROTOCOL;
    if (r.left || (k->fits && !k->fits(out)))
        return TRIB_ERR_PROTOCOL;
    return TRIB_OK;
}

static uint32_t get_u32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
           (uint32_t)p[3] << 24;
}

trib_status_t trib_control_parse(const uint8_t *bytes, size_t n, uint32_t seal,
                                 enum trib_control_role from,
                                 struct trib_control_frame *out)
{
    /* Reject a foreign protocol at its first byte, without waiting for a whole head. */
    if (n && memcmp(bytes, magic, n < sizeof(magic) ? n : sizeof(magic)))
        return TRIB_ERR_PROTOCOL;
    if (n > 4 && bytes[4] != TRIB_CONTROL_FRAMING)
        return TRIB_ERR_UNSUPPORTED;
    if (n < TRIB_CONTROL_HEAD_BYTES)
        return TRIB_INPROGRESS;
    if (bytes[5] == 0 || bytes[5] >= TRIB_CONTROL_KINDS || bytes[6] || bytes[7])
        return TRIB_ERR_PROTOCOL;
    const struct kind *kind = &kinds[bytes[5]];
    uint32_t length = get_u32(bytes + 8);
    if (!(kind->from & from) || length < seal || !length_fits(kind, length - seal))
        return TRIB_ERR_PROTOCOL;
    if (n - TRIB_CONTROL_HEAD_BYTES < length)
        return TRIB_INPROGRESS;
    *out = (struct trib_control_frame){(enum trib_control_kind)bytes[5], length, bytes,
                                       bytes + TRIB_CONTROL_HEAD_BYTES};
    return TRIB_OK;
}

/* Writing -------------------------------------------------------------------------- */

struct writer {
    uint8_t *at;
    size_t left;
    trib_status_t status; /* first error; nothing is written after it */
};

static void refuse(struct writer *w, trib_status_t status)
{
    if (w->status == TRIB_OK)
        w->status = status;
}

/* Reserve n bytes; NULL: no space, or an earlier error. */
static uint8_t *place_for(struct writer *w, size_t n)
{
    uint8_t *at = w->at;

    if (n > w->left)
        refuse(w, TRIB_ERR_OVERFLOW);
    if (w->status != TRIB_OK)
        return NULL;
    w->at += n;
    w->left -= n;
    return at;
}

static void put_bytes(struct writer *w, const void *from, size_t n)
{
    uint8_t *at = place_for(w, n);

    if (at && n)
        memcpy(at, from, n);
}

static void put_number(struct writer *w, size_t bytes, uint64_t value)
{
    uint8_t *at = place_for(w, bytes);

    for (size_t i = 0; at && i < bytes; i++)
        at[i] = (uint8_t)(value >> (8 * i));
}

static void put_text(struct writer *w, const struct field *f, const char *text)
{
    size_t n = strnlen(text, (size_t)f->max + 1);

    if (!in_range(f, n) || (f->type == JOB && !trib_control_job_fits(text))) {
        refuse(w, TRIB_ERR_INVALID);
        return;
    }
    put_number(w, 2, n);
    uint8_t *at = place_for(w, n);
    for (size_t i = 0; at && i < n; i++)
        at[i] = text_character(f->type, (uint8_t)text[i]) ? (uint8_t)text[i] : '?';
}

static void put_field(struct writer *w, const struct field *f,
                      const struct trib_control *message)
{
    const void *place = (const char *)message + f->at;
    const struct trib_control_bytes *rest = place;
    uint64_t value;

    switch (f->type) {
    case U8:
    case U32:
    case U64:
        value = f->type == U64 ? *(const uint64_t *)place : *(const uint32_t *)place;
        if (!in_range(f, value))
            refuse(w, TRIB_ERR_INVALID);
        put_number(w, (size_t)wire_bytes(f, 0), value);
        return;
    case NONCE:
        put_bytes(w, place, TRIB_CONTROL_NONCE_BYTES);
        return;
    case REST:
        if (!in_range(f, rest->n))
            refuse(w, TRIB_ERR_INVALID);
        put_bytes(w, rest->at, rest->n);
        return;
    default:
        put_text(w, f, place);
    }
}

static void put_length(uint8_t head[TRIB_CONTROL_HEAD_BYTES], size_t length)
{
    for (int i = 0; i < 4; i++)
        head[8 + i] = (uint8_t)(length >> (8 * i));
}

trib_status_t trib_control_put(const struct trib_control *message, uint8_t *out,
                               size_t bytes, size_t *used_out)
{
    struct writer w = {out, bytes, TRIB_OK};

    assert(message->kind > 0 && message->kind < TRIB_CONTROL_KINDS);
    const struct kind *k = &kinds[message->kind];
    if (k->fits && !k->fits(message))
        return TRIB_ERR_INVALID;
    put_bytes(&w, magic, sizeof(magic));
    put_number(&w, 1, TRIB_CONTROL_FRAMING);
    put_number(&w, 1, message->kind);
    put_number(&w, 6, 0);
    for (size_t i = 0; i < k->n_fields; i++)
        put_field(&w, &k->fields[i], message);
    if (w.status != TRIB_OK)
        return w.status;
    *used_out = bytes - w.left;
    put_length(out, *used_out - TRIB_CONTROL_HEAD_BYTES);
    return TRIB_OK;
}

void trib_control_seal_head(uint8_t head[TRIB_CONTROL_HEAD_BYTES])
{
    put_length(head, get_u32(head + 8) + TRIB_CONTROL_SEAL_BYTES);
}
