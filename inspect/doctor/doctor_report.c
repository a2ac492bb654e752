/* SPDX-License-Identifier: BSD-3-Clause */
#include "inspect/doctor/doctor_report.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "boot/boot.h"
#include "comm/core/communicator.h"
#include "comm/members/wireup.h"

#define STRINGS 4
#define TEXT_MAX 700
#define REPORT_MAX ((size_t)1 << 24)

void trib_report_init(struct trib_report *r)
{
    *r = (struct trib_report){.where = ""};
    pthread_mutex_init(&r->lock, NULL);
}

void trib_report_free(struct trib_report *r)
{
    free(r->bytes);
    pthread_mutex_destroy(&r->lock);
}

/* Make room for `more` bytes; with the lock, or while no other thread uses r. */
static bool make_room(struct trib_report *r, size_t more)
{
    size_t room = r->room ? r->room : 4096;

    while (more <= REPORT_MAX && room - r->len < more)
        room *= 2;
    if (room == r->room && more <= REPORT_MAX)
        return true;
    char *bytes =
        more <= REPORT_MAX && room <= REPORT_MAX ? realloc(r->bytes, room) : NULL;
    r->lacks_memory |= !bytes;
    if (!bytes)
        return false;
    r->bytes = bytes;
    r->room = room;
    return true;
}

void trib_report_add(struct trib_report *r, const trib_finding_t *f)
{
    const char *const strings[STRINGS] = {f->where, f->topic, f->text, f->cure};
    size_t need = 1;

    for (int i = 0; i < STRINGS; i++)
        need += strlen(strings[i]) + 1;
    pthread_mutex_lock(&r->lock);
    if (make_room(r, need)) {
        r->bytes[r->len++] = (char)f->verdict;
        for (int i = 0; i < STRINGS; i++) {
            size_t n = strlen(strings[i]) + 1;
            memcpy(r->bytes + r->len, strings[i], n);
            r->len += n;
        }
    }
    pthread_mutex_unlock(&r->lock);
}

void trib_report_say(struct trib_report *r, trib_verdict_t verdict, const char *topic,
                     const char *cure, const char *format, ...)
{
    char text[TEXT_MAX];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    trib_report_add(r, &(trib_finding_t){.verdict = verdict,
                                         .where = r->where,
                                         .topic = topic,
                                         .text = text,
                                         .cure = cure});
}

bool trib_report_next(const struct trib_report *r, size_t *at, trib_finding_t *out)
{
    const char **strings[STRINGS] = {&out->where, &out->topic, &out->text, &out->cure};
    size_t i = *at;

    if (i >= r->len || r->bytes[i] < TRIB_VERDICT_OK || r->bytes[i] > TRIB_VERDICT_FAIL)
        return false;
    out->verdict = (trib_verdict_t)r->bytes[i++];
    for (int s = 0; s < STRINGS; s++) {
        const char *end = i < r->len ? memchr(r->bytes + i, '\0', r->len - i) : NULL;
        if (!end)
            return false;
        *strings[s] = r->bytes + i;
        i = (size_t)(end - r->bytes) + 1;
    }
    *at = i;
    return true;
}

trib_verdict_t trib_report_worst(const struct trib_report *r)
{
    trib_verdict_t worst = r->lacks_memory ? TRIB_VERDICT_FAIL : TRIB_VERDICT_OK;
    trib_finding_t f;

    for (size_t at = 0; trib_report_next(r, &at, &f);)
        worst = f.verdict > worst ? f.verdict : worst;
    return worst;
}

/* Gathering ------------------------------------------------------------------------ */

/* All-gather one piece of each rank's report; a finished rank sends nothing. */
static trib_status_t gather_piece(const struct trib_report *mine, size_t from,
                                  const struct trib_exchange *x, char *pieces)
{
    char piece[TRIB_BOOT_BLOB_MAX] = {0};
    size_t n = mine->len > from ? mine->len - from : 0;

    if (n > sizeof(piece))
        n = sizeof(piece);
    if (n)
        memcpy(piece, mine->bytes + from, n);
    return x->allgather(x->arg, "findings", piece, sizeof(piece), pieces);
}

trib_status_t trib_report_gather(const struct trib_report *mine,
                                 const struct trib_exchange *x, int size,
                                 struct trib_report *all)
{
    uint64_t len = mine->len, longest = 0;
    uint64_t *lens = calloc((size_t)size, sizeof(*lens));
    char *pieces = malloc((size_t)size * TRIB_BOOT_BLOB_MAX);
    trib_status_t status = lens && pieces ? TRIB_OK : TRIB_ERR_NO_MEMORY;

    if (status == TRIB_OK)
        status = x->allgather(x->arg, "report", &len, sizeof(len), lens);
    for (int r = 0; status == TRIB_OK && r < size; r++) {
        longest = lens[r] > longest ? lens[r] : longest;
        if (!make_room(&all[r], (size_t)lens[r]))
            status = TRIB_ERR_NO_MEMORY;
    }
    for (uint64_t at = 0; status == TRIB_OK && at < longest; at += TRIB_BOOT_BLOB_MAX) {
        status = gather_piece(mine, (size_t)at, x, pieces);
        for (int r = 0; status == TRIB_OK && r < size; r++) {
            uint64_t left = lens[r] > at ? lens[r] - at : 0;
            size_t n = left < TRIB_BOOT_BLOB_MAX ? (size_t)left : TRIB_BOOT_BLOB_MAX;
            memcpy(all[r].bytes + all[r].len, pieces + (size_t)r * TRIB_BOOT_BLOB_MAX,
                   n);
            all[r].len += n;
        }
    }
    free(lens);
    free(pieces);
    return status;
}

/* Merging -------------------------------------------------------------------------- */

static bool alike(const trib_finding_t *a, const trib_finding_t *b)
{
    return a->verdict == b->verdict && !a->where[0] && !b->where[0] &&
           strcmp(a->topic, b->topic) == 0 && strcmp(a->text, b->text) == 0 &&
           strcmp(a->cure, b->cure) == 0;
}

static bool has(const struct trib_report *r, const trib_finding_t *wanted)
{
    trib_finding_t f;

    for (size_t at = 0; trib_report_next(r, &at, &f);)
        if (alike(&f, wanted))
            return true;
    return false;
}

/* Return true if any rank of r's host below `end` has this finding. */
static bool host_has(const struct trib_report *all,
                     const struct trib_report_place *places, int r, int end,
                     const trib_finding_t *f)
{
    for (int i = places[r].first; i < end; i++)
        if (places[i].first == places[r].first && has(&all[i], f))
            return true;
    return false;
}

/* List the hosts with this finding; "" for all hosts. */
static const char *who_found(const struct trib_report *all,
                             const struct trib_report_place *places, int size,
                             const trib_finding_t *f, char *text, size_t bytes)
{
    bool everywhere = true, cut = false;
    size_t n = 0;

    text[0] = '\0';
    for (int r = 0; r < size; r++) {
        if (places[r].first != r)
            continue;
        if (!host_has(all, places, r, size, f)) {
            everywhere = false;
            continue;
        }
        cut |= n + strlen(places[r].host) + 8 > bytes;
        if (!cut)
            n += (size_t)snprintf(text + n, bytes - n, "%s%s", n ? ", " : "",
                                  places[r].host);
    }
    if (cut)
        snprintf(text + n, bytes - n, " ...");
    return everywhere ? "" : text;
}

static bool said_before(const struct trib_report *all, int rank,
                        const trib_finding_t *f)
{
    for (int r = 0; r < rank; r++)
        if (has(&all[r], f))
            return true;
    return false;
}

void trib_report_merge(const struct trib_report *all,
                       const struct trib_report_place *places, int size,
                       struct trib_report *out)
{
    char text[256];
    trib_finding_t f;

    for (int r = 0; r < size; r++) {
        out->lacks_memory |= all[r].lacks_memory;
        for (size_t at = 0; trib_report_next(&all[r], &at, &f);) {
            if (strcmp(f.where, "*") == 0)
                f.where = "";
            else if (!f.where[0] && said_before(all, r, &f))
                continue;
            else if (!f.where[0])
                f.where = who_found(all, places, size, &f, text, sizeof(text));
            trib_report_add(out, &f);
        }
    }
}
