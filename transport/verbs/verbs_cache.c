/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/verbs/verbs_cache.h"

#include <assert.h>
#include <string.h>

#include "base/cache_counts.h"
#include "base/map_watch.h"
#include "base/memlock.h"
#include "base/wait.h"
#include "transport/verbs/verbs_iova.h"

enum {
    ROWS = 1024,
    USES = 2, /* memory that is used once stays unregistered */
    USES_MAX = 1024,
    DEARER =
        8, /* factor of `needed` after a registration that failed, or that had fewer
                 * uses than this */
    PAGE = 4096,
};

enum state {
    UNUSED,
    COUNTED, /* not registered; its uses are counted */
    REGISTERING, /* by a thread, without the lock */
    REGISTERED,
    ENDING, /* a thread deregisters it, without the lock */
};

/* Guarded by the watch's lock. */
static struct {
    struct verbs_cached rows[ROWS];
    unsigned n; /* rows from n on were never used */
    unsigned stale; /* rows that are, and registered */
    uint64_t clock;
    size_t pinned; /* bytes of pages, of all rows that may be registered */
} table;
static pthread_mutex_t starting = PTHREAD_MUTEX_INITIALIZER; /* of watches */
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* The parent's registrations stay the parent's. */
static void begin_child(void)
{
    memset(&table, 0, sizeof(table));
    memset(&trib_cache_counts, 0, sizeof(trib_cache_counts));
    starting = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}

static void survive_fork(void)
{
    (void)pthread_atfork(NULL, NULL, begin_child);
}

static size_t pages_of(const struct verbs_cached *c)
{
    const uintptr_t begin = (uintptr_t)c->ptr / PAGE;

    return ((uintptr_t)c->ptr + c->len - 1) / PAGE * PAGE - begin * PAGE + PAGE;
}

/* Call with the lock held. */
static void set_pinned(size_t bytes)
{
    table.pinned = bytes;
    trib_cache_count_set(&trib_cache_counts.pinned, bytes);
}

static bool is_idle(const struct verbs_cached *c)
{
    return c->state == REGISTERED && !c->users;
}

/* Called by the watch, with the lock held. Compares whole pages. */
static void mark_stale(uintptr_t begin, uintptr_t end)
{
    assert(begin < end && table.n <= ROWS);
    for (struct verbs_cached *c = table.rows; c < table.rows + table.n; c++) {
        const uintptr_t first = (uintptr_t)c->ptr & ~(uintptr_t)(PAGE - 1);
        if (c->state == UNUSED || c->stale || begin >= first + pages_of(c) ||
            end <= first)
            continue;
        c->stale = c->state != COUNTED;
        table.stale += c->state == REGISTERED;
        if (c->state == COUNTED)
            c->uses = 0;
    }
}

/* Ends of registrations ------------------------------------------------------------ */

/* Require more uses the next time. */
static void grow_dearer(struct verbs_cached *c)
{
    if (c->needed < USES_MAX)
        c->needed *= DEARER;
    c->uses = 0;
}

/* Take a row for end(). Call with the lock held. */
static void begin_end(struct verbs_cached *c)
{
    assert(c->state == REGISTERED && !c->users);
    table.stale -= c->stale;
    c->state = ENDING;
}

/* End the watch of pages [begin, end), except those that rows from c on need. */
static void unwatch(const struct verbs_cached *c, uintptr_t begin, uintptr_t end)
{
    uintptr_t first = 0, last = 0; /* of c */

    for (; c < table.rows + table.n; c++) {
        first = (uintptr_t)c->ptr & ~(uintptr_t)(PAGE - 1);
        last = first + pages_of(c);
        if (c->state >= REGISTERING && begin < last && first < end)
            break;
    }
    if (c == table.rows + table.n) {
        trib_map_watch_drop((const void *)begin, end - begin);
        return;
    }
    if (begin < first)
        unwatch(c + 1, begin, first);
    if (last < end)
        unwatch(c + 1, last, end);
}

/* Give up a row's registration. Call with the lock held. */
static void unpin(struct verbs_cached *c, enum state state)
{
    const uintptr_t first = (uintptr_t)c->ptr & ~(uintptr_t)(PAGE - 1);

    assert(state == COUNTED || state == UNUSED);
    set_pinned(table.pinned - pages_of(c));
    c->state = state;
    if (c->domain->is_watched)
        unwatch(table.rows, first, first + pages_of(c));
}

/* Deregister a row that begin_end has taken. Call without the lock. */
static void end(const struct trib_verbs_api *api, struct verbs_cached *c)
{
    assert(c->state == ENDING);
    (void)api->ibv_dereg_mr(c->mr);
    trib_map_lock();
    unpin(c, c->stale ? COUNTED : UNUSED);
    if (c->uses < DEARER) { /* unmapped so soon that a copy was cheaper */
        grow_dearer(c);
    } else {
        c->needed = USES;
        c->uses = 0;
    }
    c->stale = false;
    trib_map_unlock();
}

/* Return the idle registration that was not used for longest, or a stale one; NULL:
 * there is none. Call with the lock held. */
static struct verbs_cached *oldest_idle(void)
{
    struct verbs_cached *oldest = NULL;

    for (struct verbs_cached *c = table.rows; c < table.rows + table.n; c++) {
        if (!is_idle(c))
            continue;
        if (c->stale)
            return c;
        if (!oldest || c->used_at < oldest->used_at)
            oldest = c;
    }
    return oldest;
}

static bool end_oldest(const struct trib_verbs_api *api)
{
    trib_map_lock();
    struct verbs_cached *c = oldest_idle();
    if (c)
        begin_end(c);
    trib_map_unlock();
    if (c)
        end(api, c);
    return c != NULL;
}

void trib_verbs_cache_tidy(const struct trib_verbs_api *api)
{
    for (;;) {
        struct verbs_cached *c = NULL;
        trib_map_lock();
        if (table.stale)
            c = oldest_idle();
        if (c && c->stale)
            begin_end(c);
        else
            c = NULL;
        trib_map_unlock();
        if (!c)
            return;
        end(api, c);
    }
}

bool trib_verbs_cache_trim(const struct trib_verbs_api *api)
{
    bool any = false;

    while (end_oldest(api))
        any = true;
    return any;
}

void trib_verbs_cache_forget(const struct trib_verbs_api *api,
                             struct verbs_domain *domain)
{
    bool others = true; /* threads of other domains deregister some */

    for (unsigned turn = 1; others; turn++) {
        struct verbs_cached *c = NULL;
        others = false;
        trib_map_lock();
        for (struct verbs_cached *r = table.rows; r < table.rows + table.n; r++) {
            if (r->domain != domain || r->state == UNUSED)
                continue;
            assert(!r->users && r->state != REGISTERING);
            if (r->state == COUNTED)
                r->state = UNUSED;
            else if (r->state == ENDING)
                others = true;
            else
                c = r;
        }
        if (c)
            begin_end(c);
        trib_map_unlock();
        if (c)
            end(api, c);
        else if (others)
            trib_wait_turn(turn, TRIB_WAIT_YIELDS);
        others |= c != NULL;
    }
    if (domain->is_watched)
        trib_map_watch_stop();
}

/* Uses ----------------------------------------------------------------------------- */

static bool covers(const struct verbs_cached *c, const struct verbs_domain *domain,
                   const uint8_t *ptr, size_t len)
{
    return c->domain == domain && ptr >= c->ptr && len <= c->len &&
           (size_t)(ptr - c->ptr) <= c->len - len;
}

/* Return the registration to use. *is_busy_out: there is one, which another user has.
 * Call with the lock held. */
static struct verbs_cached *find(const struct verbs_cache_owner *owner,
                                 const uint8_t *ptr, size_t len, bool written,
                                 bool *is_busy_out)
{
    for (struct verbs_cached *c = table.rows; c < table.rows + table.n; c++) {
        if (c->state < REGISTERING || c->stale || !covers(c, owner->domain, ptr, len) ||
            (written && !c->writable))
            continue;
        if (c->state == REGISTERED &&
            (!c->users || c->user == owner->user || !(written || c->is_written)))
            return c;
        *is_busy_out = true;
    }
    return NULL;
}

/* Return the row that counts the uses of a range, or a new one; NULL: the table is full
 * of registrations. Call with the lock held. */
static struct verbs_cached *row_of(const struct verbs_domain *domain, uint8_t *ptr,
                                   size_t len, bool written)
{
    struct verbs_cached *fresh = NULL;

    for (struct verbs_cached *c = table.rows; c < table.rows + table.n; c++) {
        if (c->state == COUNTED && c->domain == domain && c->ptr == ptr &&
            c->len == len && c->writable == written)
            return c;
        if (c->state == UNUSED || (c->state == COUNTED && (!fresh || fresh->state) &&
                                   (!fresh || c->used_at < fresh->used_at)))
            fresh = c;
    }
    if ((!fresh || fresh->state) && table.n < ROWS)
        fresh = &table.rows[table.n++];
    if (fresh)
        *fresh = (struct verbs_cached){.ptr = ptr,
                                       .len = len,
                                       .domain = domain,
                                       .state = COUNTED,
                                       .needed = USES,
                                       .writable = written};
    return fresh;
}

/* Call with the lock held. */
static void use(const struct verbs_cache_owner *owner, struct verbs_cached *c,
                bool written)
{
    assert(c->state == REGISTERED && c->mr && (c->writable || !written));
    c->is_written = written || (c->users && c->is_written);
    c->user = owner->user;
    c->users++;
    c->uses++;
    c->used_at = ++table.clock;
}

/* Return true if a use is the one at which to register. Call with the lock held. */
static bool is_due(struct verbs_cached *c)
{
    assert(c->state == COUNTED && !c->users);
    c->used_at = ++table.clock;
    if (++c->uses < c->needed)
        return false;
    c->state = REGISTERING;
    c->uses = 0;
    c->stale = false;
    set_pinned(table.pinned + pages_of(c));
    return true;
}

static bool exceeds(size_t most)
{
    trib_map_lock();
    const bool exceeds = table.pinned > most;
    trib_map_unlock();
    return exceeds;
}

/* Return true if the cache, with a row to register, takes at most half of the memory
 * that it and slots may lock. */
static bool leaves_room(const struct trib_verbs_api *api, const struct verbs_cached *c)
{
    const size_t cached = trib_verbs_cache_pinned();
    struct trib_memlock memlock;

    assert(cached >= pages_of(c));
    api->memlock(&memlock);
    const size_t left = trib_memlock_left(&memlock);
    return left == SIZE_MAX || cached <= (left + cached - pages_of(c)) / 2;
}

static bool make_room(const struct verbs_cache_owner *owner,
                      const struct verbs_cached *c)
{
    while (exceeds(owner->most) || !leaves_room(owner->api, c)) {
        if (!end_oldest(owner->api))
            return false;
    }
    return true;
}

/* Use the watch for a domain, until trib_verbs_cache_forget. Return NULL, or why there
 * is none. */
static const char *watch(struct verbs_domain *domain)
{
    const char *why = NULL;

    pthread_mutex_lock(&starting);
    if (!domain->is_watched && !domain->unwatched) {
        why = trib_map_watch_start(mark_stale);
        trib_map_lock();
        domain->is_watched = !why;
        domain->unwatched = why;
        trib_map_unlock();
    }
    pthread_mutex_unlock(&starting);
    return why;
}

/* Register a row that is_due has taken. The memory is watched before: pages that are
 * unmapped after that make the row stale. Call without the lock. */
static struct verbs_cached *fill(const struct verbs_cache_owner *owner,
                                 struct verbs_cached *c, const char **why_out)
{
    const int access =
        owner->relaxed |
        (c->writable ? IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE : 0);
    struct ibv_mr *mr = NULL;

    assert(c->state == REGISTERING);
    if (make_room(owner, c)) {
        *why_out = watch(owner->domain);
        if (!*why_out)
            *why_out = trib_map_watch_add(c->ptr, c->len);
        if (!*why_out)
            mr = trib_verbs_reg_mr(owner->api, owner->domain->pd, c->ptr, c->len,
                                   access, &c->iova);
    }
    trib_map_lock();
    const bool good = mr && !c->stale;
    c->mr = mr;
    if (mr)
        c->state = REGISTERED;
    if (good)
        use(owner, c, c->writable);
    if (mr && !good) {
        table.stale++;
        begin_end(c);
    } else if (!mr) {
        unpin(c, COUNTED);
        grow_dearer(c);
    }
    trib_map_unlock();
    if (mr && !good)
        end(owner->api, c);
    return good ? c : NULL;
}

struct verbs_cached *trib_verbs_cache_get(const struct verbs_cache_owner *owner,
                                          void *ptr, size_t len, bool written,
                                          const char **why_out)
{
    struct verbs_cached *c = NULL, *due = NULL;
    bool is_busy = false, is_full = false;

    *why_out = NULL;
    pthread_once(&once, survive_fork);
    trib_verbs_cache_tidy(owner->api);
    trib_map_lock();
    if (!owner->domain->unwatched && len <= owner->most)
        c = find(owner, ptr, len, written, &is_busy);
    else
        is_busy = true;
    if (!c && !is_busy) {
        due = row_of(owner->domain, ptr, len, written);
        is_full = !due;
    }
    if (c && trib_map_is_changing())
        c = NULL;
    if (c)
        use(owner, c, written);
    if (due && !is_due(due))
        due = NULL;
    trib_map_unlock();
    trib_cache_count(c ? &trib_cache_counts.hits : &trib_cache_counts.misses, 1);
    if (is_full)
        (void)end_oldest(owner->api);
    return due ? fill(owner, due, why_out) : c;
}

void trib_verbs_cache_put(const struct verbs_cache_owner *owner, struct verbs_cached *c,
                          bool revoke)
{
    trib_map_lock();
    assert(c->users > 0 && c->state == REGISTERED);
    c->users--;
    if (revoke && !c->stale) {
        c->stale = true;
        table.stale++;
    }
    const bool ends = c->stale && !c->users;
    if (ends)
        begin_end(c);
    trib_map_unlock();
    if (ends)
        end(owner->api, c);
}

size_t trib_verbs_cache_pinned(void)
{
    trib_map_lock();
    const size_t bytes = table.pinned;
    trib_map_unlock();
    return bytes;
}
