/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Boot over the caller's all-gather, trib_opts_t.allgather; needs no port.
 *
 * A rank's block has the same size in each exchange and begins with a head. The head
 * lets a rank verify the caller's all-gather. It also lets a failed rank report its
 * failure in its next block, whatever the exchange.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/idle_function.h"
#include "base/plain.h"
#include "base/release.h"
#include "boot/boot.h"
#include "boot/rank_names.h"

enum { LAYOUT = 1, GUARD = 0x5a, LIBRARY_BYTES = 24 };

struct head {
    char magic[8];
    uint32_t version;
    uint32_t size, rank;
    uint32_t bytes; /* bytes of the body */
    int32_t status; /* not TRIB_OK: the rank has failed; the body is the message */
    int32_t pid;
    char phase[TRIB_BOOT_PHASE_MAX];
    char library[LIBRARY_BYTES];
    char host[TRIB_HOST_BYTES];
};

struct block {
    struct head head;
    char body[TRIB_BOOT_BLOB_MAX];
};

struct user_exchange {
    struct trib_boot boot;
    int (*call)(void *arg, const void *in, void *out, size_t bytes);
    void *arg;
    struct trib_rank_name self;
    int size;
    int exchanges; /* exchanges so far */
    bool is_over; /* the function failed, or all ranks know of a failure */
    struct trib_idle *idle;
    struct trib_error *err;
    struct block mine;
    struct block *all; /* [size + 1]: the last block detects writes beyond the end */
};

static const char magic[8] = {'T', 'R', 'I', 'B', 'M', 'E', 'E', 'T'};

static struct user_exchange *of(struct trib_boot *b)
{
    return (struct user_exchange *)b;
}

static void fill(struct user_exchange *u, const char *phase, trib_status_t status)
{
    struct head *h = &u->mine.head;

    memset(&u->mine, 0, sizeof(u->mine));
    memcpy(h->magic, magic, sizeof(magic));
    h->version = LAYOUT;
    h->size = (uint32_t)u->size;
    h->rank = (uint32_t)u->self.rank;
    h->status = status;
    h->pid = u->self.pid;
    snprintf(h->phase, sizeof(h->phase), "%s", phase);
    snprintf(h->library, sizeof(h->library), "%s", trib_release);
    snprintf(h->host, sizeof(h->host), "%s", u->self.host);
}

/* Return true if nothing was written beyond the blocks of all ranks. */
static bool guard_is_whole(const struct user_exchange *u)
{
    const uint8_t *guard = (const uint8_t *)&u->all[u->size];
    size_t i = 0;

    while (i < sizeof(struct block) && guard[i] == GUARD)
        i++;
    return i == sizeof(struct block);
}

/* Pass this rank's block to the caller's function. */
static trib_status_t exchange(struct user_exchange *u)
{
    const size_t blocks = (size_t)u->size + 1;

    assert(!u->is_over && u->exchanges < TRIB_BOOT_EXCHANGES + 1);
    u->exchanges++;
    memset(u->all, GUARD, blocks * sizeof(struct block));
    const int error = u->call(u->arg, &u->mine, u->all, sizeof(struct block));
    u->is_over = error != 0;
    if (error)
        return trib_fail(
            u->err, TRIB_ERR_BOOT,
            "rank %d cannot join: trib_opts_t.allgather has returned %d in phase %s of "
            "the start",
            u->self.rank, error, u->mine.head.phase);
    if (guard_is_whole(u))
        return TRIB_OK;
    return trib_fail(u->err, TRIB_ERR_BOOT,
                     "trib_opts_t.allgather has written to rank %d more than ranks * "
                     "bytes, %d * %zu: each rank gives `bytes` alone",
                     u->self.rank, u->size, sizeof(struct block));
}

static void name_of(const struct block *b, char name[TRIB_RANK_NAME_BYTES])
{
    struct trib_rank_name who = {.rank = (int)b->head.rank, .pid = b->head.pid};

    snprintf(who.host, sizeof(who.host), "%.*s", (int)sizeof(b->head.host) - 1,
             b->head.host);
    trib_rank_name_format(&who, name);
}

/* Check that the function stored rank r's block at its position. */
static trib_status_t check_place(struct user_exchange *u, int r)
{
    const struct head *h = &u->all[r].head;

    if (memcmp(h->magic, magic, sizeof(magic)) != 0)
        return trib_fail(
            u->err, TRIB_ERR_BOOT,
            "trib_opts_t.allgather has not given rank %d the block of rank "
            "%d: it must fill ranks * bytes, %d * %zu, by rank",
            u->self.rank, r, u->size, sizeof(struct block));
    if (h->version == LAYOUT && h->rank != (uint32_t)r)
        return trib_fail(u->err, TRIB_ERR_BOOT,
                         "trib_opts_t.allgather has given rank %d the block of rank %u "
                         "in the place of rank %d: it must order them by rank",
                         u->self.rank, h->rank, r);
    return TRIB_OK;
}

static trib_status_t check_block(struct user_exchange *u, int r)
{
    const struct block *b = &u->all[r];
    const struct head *mine = &u->mine.head;
    char name[TRIB_RANK_NAME_BYTES], text[400];
    trib_status_t st = check_place(u, r);

    if (st != TRIB_OK)
        return st;
    u->is_over = true; /* if this rank stops here, so do all others */
    name_of(b, name);
    if (b->head.version != LAYOUT ||
        strncmp(b->head.library, mine->library, LIBRARY_BYTES) != 0)
        return trib_fail(u->err, TRIB_ERR_MISMATCH,
                         "%s has Tributary %.*s, rank %d has %s: install the same "
                         "version",
                         name, LIBRARY_BYTES - 1, b->head.library, u->self.rank,
                         mine->library);
    if (b->head.size != mine->size)
        return trib_fail(u->err, TRIB_ERR_MISMATCH,
                         "%s was started with %u ranks, rank %d with %d: set the same "
                         "trib_opts_t.ranks on all ranks",
                         name, b->head.size, u->self.rank, u->size);
    if (b->head.status != TRIB_OK) {
        snprintf(text, sizeof(text), "%.*s", (int)sizeof(text) - 1, b->body);
        st = trib_status_of_peer(b->head.status);
        return st == TRIB_ERR_ABORTED
                   ? trib_fail(u->err, st, "%s", text)
                   : trib_fail(u->err, TRIB_ERR_PEER_LOST,
                               "%s failed during the start: %s", name, text);
    }
    if (b->head.bytes != mine->bytes ||
        strncmp(b->head.phase, mine->phase, sizeof(mine->phase)) != 0)
        return trib_fail(u->err, TRIB_ERR_MISMATCH,
                         "%s is in phase %.*s of the start with %u bytes, rank %d in "
                         "phase %s with %u",
                         name, TRIB_BOOT_PHASE_MAX - 1, b->head.phase, b->head.bytes,
                         u->self.rank, mine->phase, mine->bytes);
    u->is_over = false;
    return TRIB_OK;
}

static trib_status_t user_allgather(struct trib_boot *b, const char *phase,
                                    const void *in, size_t bytes, void *out)
{
    struct user_exchange *u = of(b);

    assert(bytes <= sizeof(u->mine.body));
    fill(u, phase, TRIB_OK);
    u->mine.head.bytes = (uint32_t)bytes;
    memcpy(u->mine.body, in, bytes);
    trib_status_t st = exchange(u);
    for (int r = 0; st == TRIB_OK && r < u->size; r++) {
        st = check_block(u, r);
        if (st == TRIB_OK)
            memcpy((char *)out + (size_t)r * bytes, u->all[r].body, bytes);
    }
    return st;
}

/* Send the failure in one more exchange, in which the other ranks wait. */
static void user_fail(struct trib_boot *b, const char *why)
{
    struct user_exchange *u = of(b);

    if (u->is_over || u->exchanges > TRIB_BOOT_EXCHANGES)
        return;
    fill(u, "fail", trib_idle_answer(u->idle) ? TRIB_ERR_ABORTED : TRIB_ERR_PEER_LOST);
    snprintf(u->mine.body, sizeof(u->mine.body), "%s", why);
    (void)exchange(u);
    u->is_over = true;
}

static void user_close(struct trib_boot *b)
{
    struct user_exchange *u = of(b);

    trib_secret_wipe(&u->boot.secret);
    free(u->all);
    free(u);
}

/* Join. Rank 0 generates the job's secret, unless the ranks were given one; the first
 * exchange distributes it. */
static trib_status_t join(struct user_exchange *u, const struct trib_boot_opts *opts)
{
    const bool given = opts->secret && opts->secret->is_set;
    char mine[TRIB_SECRET_TEXT] = "", why[160];
    char(*all)[TRIB_SECRET_TEXT] = calloc((size_t)u->size, sizeof(*all));
    struct trib_secret *secret = &u->boot.secret;

    if (!all)
        return trib_fail(u->err, TRIB_ERR_NO_MEMORY, "out of memory in boot");
    if (given)
        *secret = *opts->secret;
    else if (u->self.rank == 0 && trib_secret_make(secret, NULL) == TRIB_OK &&
             trib_secret_arm(secret, why, sizeof(why)))
        trib_secret_format(secret, mine);
    trib_status_t st = user_allgather(&u->boot, "join", mine, sizeof(mine), all);
    all[0][sizeof(mine) - 1] = '\0';
    if (st == TRIB_OK && !given && all[0][0]) {
        if (!trib_secret_parse(all[0], sizeof(mine) - 1, secret))
            st = trib_fail(u->err, TRIB_ERR_BOOT,
                           "trib_opts_t.allgather has changed what rank 0 gave");
        else
            trib_boot_arm(opts, secret);
    }
    memset(all, 0, (size_t)u->size * sizeof(*all));
    free(all);
    return st;
}

static bool user_accepts(const char *root)
{
    (void)root;
    return false; /* selected by trib_boot_opts.allgather */
}

static trib_status_t user_open(const struct trib_boot_opts *opts,
                               struct trib_boot **out)
{
    struct user_exchange *u = calloc(1, sizeof(*u));

    if (u)
        u->all = calloc((size_t)opts->size + 1, sizeof(*u->all));
    if (!u || !u->all) {
        free(u);
        return trib_fail(opts->err, TRIB_ERR_NO_MEMORY, "out of memory in boot");
    }
    u->boot.ops = &trib_boot_user;
    u->call = opts->allgather;
    u->arg = opts->allgather_arg;
    u->size = opts->size;
    u->idle = opts->idle;
    u->err = opts->err;
    trib_rank_name_self(opts->rank, &u->self);
    const trib_status_t st = join(u, opts);
    if (st != TRIB_OK) {
        user_fail(&u->boot, trib_error_text(u->err));
        user_close(&u->boot);
        return st;
    }
    *out = &u->boot;
    return TRIB_OK;
}

const struct trib_boot_ops trib_boot_user = {
    .name = "user",
    .detail = "rendezvous over the program's all-gather (trib_opts_t.allgather)",
    .accepts = user_accepts,
    .open = user_open,
    .allgather = user_allgather,
    .fail = user_fail,
    .close = user_close,
};
