/* SPDX-License-Identifier: BSD-3-Clause */
#include "agg/store/store_snapshot.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/digest.h"
#include "base/error.h"
#include "base/minmax.h"

enum {
    ORDER = 0x01020304,
};

static const char magic[8] = {'T', 'r', 'i', 'b', 'S', 'n', 'a', 'p'};

struct head {
    char magic[8];
    uint32_t order; /* byte order mark */
    uint32_t format;
    uint64_t file_bytes;
    uint64_t count;
    uint64_t version;
    int64_t taken_s;
    uint32_t ranks;
    uint32_t dtype;
    uint32_t kept;
    uint32_t states;
    uint32_t lasting;
    uint32_t zero;
    uint8_t owner[TRIB_SNAPSHOT_OWNER_BYTES];
    char user[TRIB_SNAPSHOT_TEXT_BYTES];
    char job[TRIB_SNAPSHOT_TEXT_BYTES];
    char name[TRIB_SNAPSHOT_TEXT_BYTES];
    char rule[TRIB_STORE_RULE_TEXT_MAX + 4];
    uint64_t number; /* of the file; 0: unknown */
    uint64_t zeros;
    uint64_t body_digest;
    uint64_t head_digest; /* of all bytes before it */
};

_Static_assert(sizeof(struct head) == TRIB_SNAPSHOT_HEAD_BYTES,
               "must not have padding");
_Static_assert(TRIB_SNAPSHOT_OWNER_BYTES == TRIB_CONTROL_NONCE_BYTES, "size of a key");
_Static_assert(TRIB_CONTROL_JOB_MAX < TRIB_SNAPSHOT_TEXT_BYTES, "names must fit");

static uint64_t vector_bytes(const struct trib_store_image *image)
{
    return image->spec.count * trib_dtype_size(image->kept);
}

uint64_t trib_snapshot_bytes(const struct trib_store_image *image)
{
    return sizeof(struct head) + image->ranks * sizeof(uint64_t) +
           (1 + image->states) * vector_bytes(image);
}

/* Writing -------------------------------------------------------------------------- */

/* Copy elements and rule state, stripe by stripe. */
static void copy_elements(const struct trib_store_image *image,
                          struct trib_store_walk *walk, uint8_t *out)
{
    const uint64_t element = trib_dtype_size(image->kept);
    const uint64_t count = image->spec.count;

    for (uint64_t first = 0; first < count; first += TRIB_STORE_STRIPE) {
        const uint64_t n = trib_min(count - first, TRIB_STORE_STRIPE);
        const uint64_t at = first * element;
        if (walk)
            trib_store_walk_to(walk, first, first + n);
        memcpy(out + at, (const uint8_t *)image->value + at, n * element);
        for (uint32_t i = 0; i < image->states; i++)
            memcpy(out + (1 + i) * vector_bytes(image) + at,
                   (const uint8_t *)image->state[i] + at, n * element);
    }
}

void trib_snapshot_copy(const struct trib_store_image *image,
                        const struct trib_snapshot_about *about,
                        struct trib_store_walk *walk, uint8_t *out)
{
    struct head head = {.order = ORDER,
                        .format = TRIB_SNAPSHOT_FORMAT,
                        .file_bytes = trib_snapshot_bytes(image),
                        .count = image->spec.count,
                        .version = image->version,
                        .taken_s = about->taken_s,
                        .ranks = image->ranks,
                        .dtype = (uint32_t)image->spec.dtype,
                        .kept = (uint32_t)image->kept,
                        .states = image->states,
                        .lasting = about->lasting};

    memcpy(head.magic, magic, sizeof(magic));
    memcpy(head.owner, about->owner, sizeof(head.owner));
    memcpy(head.user, about->user, sizeof(head.user));
    memcpy(head.job, about->job, sizeof(head.job));
    snprintf(head.name, sizeof(head.name), "%s", image->spec.name);
    snprintf(head.rule, sizeof(head.rule), "%s", image->spec.rule);
    memcpy(out, &head, sizeof(head));
    out += sizeof(head);
    memcpy(out, image->clock, image->ranks * sizeof(uint64_t));
    copy_elements(image, walk, out + image->ranks * sizeof(uint64_t));
}

void trib_snapshot_set_number(uint8_t *bytes, uint64_t number)
{
    memcpy(bytes + offsetof(struct head, number), &number, sizeof(number));
}

void trib_snapshot_seal(uint8_t *bytes, uint64_t n)
{
    uint64_t digest = trib_digest(bytes + sizeof(struct head), n - sizeof(struct head));

    assert(n >= sizeof(struct head));
    memcpy(bytes + offsetof(struct head, body_digest), &digest, sizeof(digest));
    digest = trib_digest(bytes, offsetof(struct head, head_digest));
    memcpy(bytes + offsetof(struct head, head_digest), &digest, sizeof(digest));
}

/* Reading -------------------------------------------------------------------------- */

static bool is_text(const char *text, size_t bytes)
{
    const size_t n = strnlen(text, bytes);

    for (size_t i = 0; i < n; i++)
        if (text[i] < ' ' || text[i] > '~')
            return false;
    return n > 0 && n < bytes;
}

/* Return the fault of a snapshot's head, such as "its head is damaged", or NULL if it
 * is valid. */
static const char *fault_of(const struct head *h, uint64_t file_bytes)
{
    if (memcmp(h->magic, magic, sizeof(magic)))
        return "it is not a snapshot";
    if (h->order != ORDER)
        return "it was written by a host of another byte order";
    if (h->format != TRIB_SNAPSHOT_FORMAT)
        return "it was written by another release";
    if (h->head_digest != trib_digest(h, offsetof(struct head, head_digest)))
        return "its head is damaged";
    if (h->file_bytes != file_bytes)
        return "it is truncated, or too long";
    if (!is_text(h->user, sizeof(h->user)) || !is_text(h->job, sizeof(h->job)) ||
        !is_text(h->name, sizeof(h->name)) || !is_text(h->rule, sizeof(h->rule)) ||
        h->dtype >= TRIB_DTYPE_COUNT || h->kept >= TRIB_DTYPE_COUNT || !h->count ||
        h->states > TRIB_STORE_RULE_STATES || !h->ranks || h->lasting > 1 ||
        h->ranks > TRIB_CONTROL_RANKS_MAX || h->count > TRIB_CONTROL_COUNT_MAX ||
        h->version > TRIB_CONTROL_PUSHES_MAX)
        return "its head has invalid fields";
    const uint64_t body =
        h->ranks * sizeof(uint64_t) +
        (1 + h->states) * h->count * trib_dtype_size((trib_dtype_t)h->kept);
    return file_bytes - sizeof(*h) == body ? NULL
                                           : "its length does not match its elements";
}

trib_status_t trib_snapshot_head(const uint8_t *bytes, uint64_t file_bytes,
                                 struct trib_error *err, struct trib_snapshot *out)
{
    struct head head;
    const char *fault = "it is shorter than its head";

    memset(out, 0, sizeof(*out));
    if (file_bytes >= sizeof(head)) {
        memcpy(&head, bytes, sizeof(head));
        fault = fault_of(&head, file_bytes);
    }
    if (fault && file_bytes >= sizeof(head) && head.format != TRIB_SNAPSHOT_FORMAT &&
        memcmp(head.magic, magic, sizeof(magic)) == 0 && head.order == ORDER)
        return trib_fail(err, TRIB_ERR_MISMATCH,
                         "it was written in format %u, but this tribd reads format %d: "
                         "run the release that wrote it",
                         head.format, TRIB_SNAPSHOT_FORMAT);
    if (fault)
        return trib_fail(err, TRIB_ERR_MISMATCH, "%s", fault);
    out->file_bytes = file_bytes;
    out->about.lasting = head.lasting;
    out->about.taken_s = head.taken_s;
    out->about.version = head.version;
    out->about.number = head.number;
    memcpy(out->about.owner, head.owner, sizeof(head.owner));
    memcpy(out->about.user, head.user, sizeof(head.user));
    memcpy(out->about.job, head.job, sizeof(head.job));
    memcpy(out->about.name, head.name, sizeof(head.name));
    memcpy(out->rule, head.rule, sizeof(head.rule));
    out->image = (struct trib_store_image){
        .spec = {.dtype = (trib_dtype_t)head.dtype, .count = head.count},
        .kept = (trib_dtype_t)head.kept,
        .states = head.states,
        .ranks = head.ranks,
        .version = head.version};
    return TRIB_OK;
}

/* Return true if no push number exceeds the maximum. */
static bool clock_fits(const struct trib_store_image *image)
{
    const uint8_t *clock = image->clock;
    uint64_t pushes;

    for (uint32_t i = 0; i < image->ranks; i++) {
        memcpy(&pushes, clock + i * sizeof(pushes), sizeof(pushes));
        if (pushes > TRIB_CONTROL_PUSHES_MAX)
            return false;
    }
    return true;
}

trib_status_t trib_snapshot_read(const uint8_t *bytes, uint64_t n,
                                 struct trib_error *err, struct trib_snapshot *out)
{
    struct trib_store_image *image = &out->image;
    const uint8_t *at = bytes + sizeof(struct head);
    uint64_t digest;

    const trib_status_t st = trib_snapshot_head(bytes, n, err, out);
    if (st != TRIB_OK)
        return st;
    memcpy(&digest, bytes + offsetof(struct head, body_digest), sizeof(digest));
    if (digest != trib_digest(at, n - sizeof(struct head)))
        return trib_fail(err, TRIB_ERR_MISMATCH, "its elements are damaged");
    image->spec.name = out->about.name;
    image->spec.rule = out->rule;
    image->clock = at;
    if (!clock_fits(image))
        return trib_fail(err, TRIB_ERR_MISMATCH,
                         "a rank's push number exceeds the maximum");
    at += image->ranks * sizeof(uint64_t);
    image->value = at;
    for (uint32_t i = 0; i < image->states; i++)
        image->state[i] = at + (1 + i) * vector_bytes(image);
    return TRIB_OK;
}
