/* SPDX-License-Identifier: BSD-3-Clause */
#include "comm/members/wireup_check.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/plain.h"

void trib_wireup_difference(const char *a, const char *b, char *x, char *y,
                            size_t bytes)
{
    assert(bytes > 0);
    while (*a && *b) {
        size_t la = strcspn(a, " "), lb = strcspn(b, " ");
        if (la != lb || memcmp(a, b, la) != 0) {
            snprintf(x, bytes, "%.*s", (int)la, a);
            snprintf(y, bytes, "%.*s", (int)lb, b);
            return;
        }
        a += la + strspn(a + la, " ");
        b += lb + strspn(b + lb, " ");
    }
    snprintf(x, bytes, "%s", "other settings");
    snprintf(y, bytes, "%s", "these");
}

trib_status_t trib_wireup_could_not_join(struct trib_comm *comm, int rank)
{
    return trib_fail(&comm->err, TRIB_ERR_BOOT,
                     "rank %d could not join; its own trib_last_error gives the reason",
                     rank);
}

/* Builds between releases can share a release name but differ in message layout. */
static trib_status_t other_release(struct trib_comm *comm,
                                   const struct wireup_msg1 *first,
                                   const struct wireup_msg1 *h, int rank)
{
    char who[24];

    assert(comm->engine.ranks > 0);
    if (rank < comm->engine.ranks)
        snprintf(who, sizeof(who), "rank %d", rank);
    else
        snprintf(who, sizeof(who), "tribd");
    if (strcmp(h->release, first->release) != 0)
        return trib_fail(&comm->err, TRIB_ERR_MISMATCH,
                         "%s (host %s) has Tributary %s, rank 0 (host %s) has %s: "
                         "install the same version",
                         who, h->host, h->release, first->host, first->release);
    return trib_fail(&comm->err, TRIB_ERR_MISMATCH,
                     "%s (host %s) and rank 0 (host %s) have builds of Tributary %s "
                     "with different wireup messages, versions %u and %u: install the "
                     "same build",
                     who, h->host, first->host, h->release, (unsigned)h->version,
                     (unsigned)first->version);
}

static trib_status_t check_msg1(struct trib_comm *comm, const struct wireup_msg1 *first,
                                const struct wireup_msg1 *h, int rank)
{
    char x[128], y[128];

    if (!h->magic) /* a rank that could not continue sends zeros */
        return trib_wireup_could_not_join(comm, rank);
    if (h->magic != first->magic || h->version != first->version ||
        strcmp(h->release, first->release) != 0)
        return other_release(comm, first, h, rank);
    if (memcmp(h->secret_mark, first->secret_mark, sizeof(h->secret_mark)) != 0)
        return trib_fail(
            &comm->err, TRIB_ERR_MISMATCH,
            "rank %d (host %.64s, process %d) has a different secret than rank 0 (host "
            "%.64s), or only one has a secret: set the same TRIB_KEY on all ranks, or "
            "none, and install libsodium on all hosts",
            rank, h->host, h->pid, first->host);
    if (h->settings == first->settings)
        return TRIB_OK;
    trib_wireup_difference(h->settings_text, first->settings_text, x, y, sizeof(x));
    return trib_fail(&comm->err, TRIB_ERR_MISMATCH,
                     "rank %d (host %.64s, process %d) has %s, rank 0 (host %.64s) has "
                     "%s: use the same TRIB_* settings on all ranks",
                     rank, h->host, h->pid, x, first->host, y);
}

/* Terminate a peer's strings, and make release and host printable: they are reported
 * before any other check. */
static void end_texts(struct wireup_msg1 *h)
{
    char text[TRIB_HOST_BYTES];

    h->release[sizeof(h->release) - 1] = 0;
    memcpy(text, h->release, sizeof(h->release));
    (void)trib_plain(text, h->release, sizeof(h->release));
    h->host[sizeof(h->host) - 1] = 0;
    memcpy(text, h->host, sizeof(h->host));
    (void)trib_plain(text, h->host, sizeof(h->host));
    h->settings_text[sizeof(h->settings_text) - 1] = 0;
}

trib_status_t trib_wireup_check(struct trib_comm *comm, struct wireup_msg1 *all)
{
    trib_status_t st = TRIB_OK;

    for (int r = 0; r < comm->engine.size; r++)
        end_texts(&all[r]);
    for (int r = 0; r < comm->engine.size && st == TRIB_OK; r++)
        st = check_msg1(comm, &all[0], &all[r], r);
    return st;
}
