/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/log_pace.h"

#include <stdio.h>
#include <string.h>

#include "base/token_bucket.h"
#include "base/time.h"

#define NS_PER_MS UINT64_C(1000000)

void trib_log_pace_init(struct trib_log_pace *pace)
{
    memset(pace, 0, sizeof(*pace));
    pthread_mutex_init(&pace->mutex, NULL);
}

/* Return the slot of a kind, or a free one; NULL: none. */
static struct trib_log_kind *find(struct trib_log_pace *pace, const char *format)
{
    for (int i = 0; i < TRIB_LOG_KINDS; i++) {
        struct trib_log_kind *k = &pace->kinds[i];
        if (k->format == format || !k->format)
            return k;
    }
    return NULL;
}

static bool take(struct trib_log_kind *k, uint64_t now_ns)
{
    return k->level == TRIB_LOG_WARN
               ? trib_token_bucket_take(&k->used_until_ns, now_ns,
                                        TRIB_LOG_WARNING_MS * NS_PER_MS,
                                        TRIB_LOG_WARNINGS_AT_ONCE)
               : trib_token_bucket_take(&k->used_until_ns, now_ns,
                                        TRIB_LOG_INFO_MS * NS_PER_MS,
                                        TRIB_LOG_INFOS_AT_ONCE);
}

static void tell(struct trib_log_kind *k, uint64_t now_ns, struct trib_log_more *more)
{
    *more = (struct trib_log_more){.lines = k->held_back,
                                   .ns = k->held_back ? now_ns - k->since_ns : 0,
                                   .level = k->level,
                                   .component = k->component};
    memcpy(more->sample, k->sample, sizeof(more->sample));
    k->held_back = 0;
}

bool trib_log_pace_take_mt(struct trib_log_pace *pace, trib_log_level_t level,
                           const char *component, const char *format,
                           struct trib_log_more *more)
{
    const uint64_t now_ns = trib_now_ns();

    more->lines = 0;
    /* Use trylock: in a forked child, the lock may be held by a thread that does not
     * exist there. */
    if (!pace || (level != TRIB_LOG_WARN && level != TRIB_LOG_INFO) ||
        pthread_mutex_trylock(&pace->mutex) != 0)
        return true;
    struct trib_log_kind *k = find(pace, format);
    bool may = true;
    if (k) {
        k->format = format;
        k->component = component;
        k->level = level;
        may = take(k, now_ns);
        if (may)
            tell(k, now_ns, more);
        else if (k->held_back++ == 0)
            k->since_ns = now_ns;
        if (!may)
            atomic_store_explicit(&pace->holds, true, memory_order_relaxed);
    }
    pthread_mutex_unlock(&pace->mutex);
    return may;
}

void trib_log_pace_note_mt(struct trib_log_pace *pace, const char *format,
                           const char *text)
{
    if (!pace || pthread_mutex_trylock(&pace->mutex) != 0)
        return;
    struct trib_log_kind *k = find(pace, format);
    if (k && k->format)
        snprintf(k->sample, sizeof(k->sample), "%s", text);
    pthread_mutex_unlock(&pace->mutex);
}

bool trib_log_pace_next_mt(struct trib_log_pace *pace, uint64_t since_ns,
                           struct trib_log_more *more)
{
    bool found = false, left = false;

    if (!pace || !atomic_load_explicit(&pace->holds, memory_order_relaxed) ||
        pthread_mutex_trylock(&pace->mutex) != 0)
        return false;
    for (int i = 0; i < TRIB_LOG_KINDS && pace->kinds[i].format; i++) {
        struct trib_log_kind *k = &pace->kinds[i];
        const bool due = k->held_back && !found && k->since_ns <= since_ns;
        if (due)
            tell(k, trib_now_ns(), more);
        found |= due;
        left |= k->held_back != 0;
    }
    atomic_store_explicit(&pace->holds, left, memory_order_relaxed);
    pthread_mutex_unlock(&pace->mutex);
    return found;
}

void trib_log_pace_drop_mt(struct trib_log_pace *pace)
{
    atomic_fetch_add_explicit(&pace->dropped, 1, memory_order_relaxed);
}

uint64_t trib_log_pace_report_mt(struct trib_log_pace *pace)
{
    uint64_t reported = atomic_load(&pace->reported), lines;

    do {
        lines = atomic_load(&pace->dropped) - reported;
        if (!lines)
            return 0;
    } while (!atomic_compare_exchange_weak(&pace->reported, &reported,
                                           reported + lines));
    return lines;
}

void trib_log_pace_unreported_mt(struct trib_log_pace *pace, uint64_t lines)
{
    atomic_fetch_sub(&pace->reported, lines);
}
