/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/boot.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "boot/launcher.h"

const struct trib_boot_ops *const trib_boots[] = {
    &trib_boot_local, &trib_boot_tcp, &trib_boot_self, &trib_boot_user, NULL,
};

static bool self_accepts(const char *root)
{
    return root[0] == '\0';
}

static trib_status_t self_open(const struct trib_boot_opts *opts,
                               struct trib_boot **out)
{
    struct trib_boot *b = calloc(1, sizeof(*b));

    if (!b)
        return trib_fail(opts->err, TRIB_ERR_NO_MEMORY, "out of memory in boot");
    assert(opts->size == 1);
    b->ops = &trib_boot_self;
    if (opts->secret)
        b->secret = *opts->secret;
    *out = b;
    return TRIB_OK;
}

static trib_status_t self_allgather(struct trib_boot *b, const char *phase,
                                    const void *in, size_t bytes, void *out)
{
    (void)b;
    (void)phase;
    if (bytes)
        memmove(out, in, bytes);
    return TRIB_OK;
}

static void self_fail(struct trib_boot *b, const char *why)
{
    (void)b;
    (void)why;
}

static void self_close(struct trib_boot *b)
{
    free(b);
}

const struct trib_boot_ops trib_boot_self = {
    .name = "self",
    .detail = "single rank; needs no TRIB_ROOT",
    .accepts = self_accepts,
    .open = self_open,
    .allgather = self_allgather,
    .fail = self_fail,
    .close = self_close,
};

/* Contact a running job as a newcomer, which has no rank yet. */
static trib_status_t open_newcomer(const struct trib_boot_opts *opts,
                                   struct trib_boot **out)
{
    if (trib_boot_tcp.accepts(opts->root))
        return trib_boot_tcp.open(opts, out);
    return trib_fail(opts->err, TRIB_ERR_CONFIG,
                     "\"%s\" is not where newcomers come to a job: give the text of "
                     "trib_listener_text, host:port",
                     opts->root);
}

static trib_status_t check_opts(const struct trib_boot_opts *opts, const char *root)
{
    if (opts->is_newcomer)
        return TRIB_OK;
    if (opts->size < 1)
        return trib_fail(opts->err, TRIB_ERR_CONFIG,
                         "the number of ranks is %d: set TRIB_SIZE to 1 or more",
                         opts->size);
    if (opts->rank < 0 || opts->rank >= opts->size)
        return trib_fail(opts->err, TRIB_ERR_CONFIG,
                         "rank %d of %d: set TRIB_RANK to a number from 0 to %d, and "
                         "TRIB_SIZE to the number of ranks",
                         opts->rank, opts->size, opts->size - 1);
    if (opts->size > 1 && !root[0] && !opts->allgather)
        return trib_fail(
            opts->err, TRIB_ERR_CONFIG,
            "rank %d of %d: no rendezvous address: start the ranks with "
            "trib-run, or set TRIB_ROOT=host:port, with the host of rank 0 and a "
            "free port there, the same for all ranks",
            opts->rank, opts->size);
    return TRIB_OK;
}

/* Take the given secret, or the one in the root, and strip it from the root. */
static trib_status_t take_secret(const struct trib_boot_opts *opts, char *root,
                                 size_t bytes, struct trib_secret *out)
{
    if (!trib_secret_split(opts->root ? opts->root : "", root, bytes, out))
        return trib_fail(
            opts->err, TRIB_ERR_CONFIG,
            "TRIB_ROOT is \"%s#…\": what follows # must be the secret that "
            "trib_root_create has put there, %d hexadecimal digits",
            root, TRIB_SECRET_TEXT - 1);
    if (opts->secret && opts->secret->is_set)
        *out = *opts->secret;
    return TRIB_OK;
}

trib_status_t trib_boot_open(const struct trib_boot_opts *opts, struct trib_boot **out)
{
    struct trib_boot_opts o = *opts;
    char root[TRIB_LAUNCH_ROOT_BYTES];
    struct trib_secret secret;

    *out = NULL;
    o.root = root;
    o.secret = &secret;
    trib_status_t status = take_secret(opts, root, sizeof(root), &secret);
    if (status == TRIB_OK)
        status = check_opts(&o, o.root);
    if (status != TRIB_OK)
        return status;
    trib_boot_arm(&o, &secret);
    if (o.is_newcomer)
        return open_newcomer(&o, out);
    if (o.allgather && o.size > 1)
        return trib_boot_user.open(&o, out);
    for (size_t i = 0; trib_boots[i]; i++)
        if (trib_boots[i]->accepts(o.root))
            return trib_boots[i]->open(&o, out);
    return trib_fail(
        o.err, TRIB_ERR_CONFIG,
        "TRIB_ROOT is \"%s\": it must be host:port, [address]:port, or the "
        "text that trib-run gives",
        o.root);
}
