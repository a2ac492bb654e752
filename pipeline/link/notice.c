/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Notices of a link: messages of a rank to a peer outside the lanes.
 */
#include <assert.h>

#include "pipeline/link/arena_layout.h"
#include "pipeline/link/link_words.h"

/* Copy the notice between its two versions in 32-bit words. The words may change during
 * the copy; the versions then show it. */
static void copy_notice(struct trib_oob_notice *to, const struct trib_oob_notice *from)
{
    uint32_t *dst = &to->kind;
    const uint32_t *src = &from->kind;
    size_t words = (offsetof(struct trib_oob_notice, version_end) -
                    offsetof(struct trib_oob_notice, kind)) /
                   sizeof(*dst);

    for (size_t i = 0; i < words; i++)
        __atomic_store_n(&dst[i], __atomic_load_n(&src[i], __ATOMIC_RELAXED),
                         __ATOMIC_RELAXED);
}

static void fill_notice(struct trib_oob_notice *out,
                        const struct trib_oob_notice *notice, uint32_t version)
{
    assert(version % 2 == 0);
    atomic_store_explicit(&out->version, version - 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    copy_notice(out, notice);
    atomic_store_explicit(&out->version_end, version, memory_order_release);
    atomic_store_explicit(&out->version, version, memory_order_release);
}

static void store_notice(struct trib_link *l, const struct trib_oob_notice *notice)
{
    assert(l->notice_out);
    fill_notice(l->notice_out, notice, l->notice_version += 2);
    l->transport->ops->wake(l->transport, l->peer);
}

/* The source of a notice's write. */
struct source {
    const struct trib_region *region;
    size_t off;
    uint64_t token;
};

static trib_status_t post_notice(struct trib_link *l, struct source from,
                                 uint32_t imm_kind)
{
    assert(from.region && l->notice_version);
    const struct trib_write w = {
        .local = from.region,
        .local_off = from.off,
        .remote = l->arena,
        .remote_off =
            l->head_off + (imm_kind == LINK_IMM_WAITING ? WAITING_OFF : NOTICE_OFF),
        .len = sizeof(struct trib_oob_notice),
        .imm = trib_link_imm(imm_kind, l->notice_version),
        .signal = true,
        .token = from.token,
    };

    return l->transport->ops->write(l->transport, l->peer, &w);
}

/* Use the single abort notice shared by all peers whose links were not open. It is each
 * peer's first notice and is filled once, because the transport may read it until the
 * end. */
static void use_abort_notice(struct trib_link *l, struct trib_arena *a,
                             const struct trib_oob_notice *notice)
{
    size_t off = abort_notice_off(a->size);

    assert(a->base && a->region);
    l->outbox = (struct trib_outbox){.region = a->region, .base = a->base};
    l->notice_version = 2;
    assert(a->per_link && !l->opened);
    if (!a->abort_notice)
        fill_notice((struct trib_oob_notice *)(a->base + off), notice, 2);
    a->abort_notice = true;
}

trib_status_t trib_link_notify(struct trib_link *l, struct trib_arena *a,
                               const struct trib_oob_notice *notice)
{
    bool failed = notice->kind == TRIB_OOB_NOTICE_FAILED;
    size_t from = 0;

    if (!l->connected || l->lost || (l->notices_busy && !failed))
        return TRIB_OK;
    if (l->mapped) {
        store_notice(l, notice);
        return TRIB_OK;
    }
    if (!l->opened && a->per_link && failed) {
        use_abort_notice(l, a, notice);
        from = abort_notice_off(a->size);
    } else if (l->outbox.region) {
        from = l->outbox.sources_off + (failed ? offsetof(struct sources, failed) : 0);
        fill_notice((struct trib_oob_notice *)(l->outbox.base + from), notice,
                    l->notice_version += 2);
    } else {
        return TRIB_OK;
    }
    trib_status_t st =
        post_notice(l, (struct source){l->outbox.region, from, LINK_TOKEN_NOTICE},
                    failed ? LINK_IMM_NOTICE : LINK_IMM_WAITING);
    l->notices_busy += st == TRIB_OK;
    return st;
}

trib_status_t trib_link_report(struct trib_link *l, const struct trib_arena *a,
                               const struct trib_oob_notice *notice)
{
    const size_t from = (size_t)l->peer * sizeof(*notice);

    if (!l->connected || (l->lost && !l->mapped))
        return TRIB_OK;
    if (l->mapped) {
        store_notice(l, notice);
        return TRIB_OK;
    }
    /* Of two writes to one place over several rails, the earlier may land last. */
    if (l->report_busy || l->notices_busy)
        return TRIB_ERR_NO_RESOURCE;
    assert(a->reports);
    fill_notice((struct trib_oob_notice *)(a->reports + from), notice,
                l->notice_version += 2);
    const trib_status_t st =
        post_notice(l, (struct source){a->reports_region, from, LINK_TOKEN_REPORT},
                    LINK_IMM_NOTICE);
    l->report_busy = st == TRIB_OK;
    return st;
}

/* Return true if the notice of this version may be read. Without load/store reach only
 * events are ordered. After the loss of the peer no event follows. */
static bool has_arrived(const struct trib_link *l, enum trib_oob_notice_place place,
                        uint32_t version)
{
    return !l->connected || l->mapped || l->lost ||
           l->notice_arrived[place] == (version & LINK_IMM_BITS);
}

static bool read_notice(struct trib_link *l, const struct trib_arena *a, int peer,
                        enum trib_oob_notice_place place, struct trib_oob_notice *out)
{
    const size_t off = place == TRIB_OOB_NOTICE_LAST_WORDS ? NOTICE_OFF : WAITING_OFF;
    const struct trib_oob_notice *in =
        (struct trib_oob_notice *)(a->base + own_head_off(a, peer) + off);
    uint32_t version = atomic_load_explicit(&in->version, memory_order_acquire);

    if (version == l->notice_seen[place] || version % 2 != 0 ||
        !has_arrived(l, place, version) ||
        atomic_load_explicit(&in->version_end, memory_order_acquire) != version)
        return false;
    copy_notice(out, in);
    out->text[sizeof(out->text) - 1] = 0;
    atomic_thread_fence(memory_order_acquire);
    if (atomic_load_explicit(&in->version, memory_order_relaxed) != version)
        return false;
    l->notice_seen[place] = version;
    return true;
}

bool trib_link_notice(struct trib_link *l, const struct trib_arena *a, int peer,
                      struct trib_oob_notice *out)
{
    return read_notice(l, a, peer, TRIB_OOB_NOTICE_LAST_WORDS, out) ||
           (!l->mapped && read_notice(l, a, peer, TRIB_OOB_NOTICE_OF_WAITING, out));
}
