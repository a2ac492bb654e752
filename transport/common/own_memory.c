/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/common/own_memory.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <sys/random.h>

#include "base/error.h"

#define BUCKETS 256u /* a power of two; keys are random */

struct row {
    uint64_t key;
    void *ptr;
    size_t len;
    unsigned users;
    LIST_ENTRY(row) entry;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static LIST_HEAD(, row) buckets[BUCKETS];

static void take_lock(void)
{
    pthread_mutex_lock(&lock);
}

static void give_lock(void)
{
    pthread_mutex_unlock(&lock);
}

/* A child forked while another thread holds the lock must find the lock free and the
 * table consistent. */
static void survive_fork(void)
{
    (void)pthread_atfork(take_lock, give_lock, give_lock);
}

trib_status_t trib_own_memory_key(uint64_t *out, struct trib_error *err)
{
    if (getrandom(out, sizeof(*out), 0) != (ssize_t)sizeof(*out))
        return trib_fail(err, TRIB_ERR_SYSTEM, "getrandom failed: %m");
    return TRIB_OK;
}

trib_status_t trib_own_memory_add(uint64_t key, void *ptr, size_t len,
                                  struct trib_error *err)
{
    struct row *row = malloc(sizeof(*row));

    assert(ptr && len > 0);
    if (!row)
        return trib_fail(err, TRIB_ERR_NO_MEMORY, "out of memory");
    *row = (struct row){.key = key, .ptr = ptr, .len = len, .users = 1};
    pthread_once(&once, survive_fork);
    take_lock();
    LIST_INSERT_HEAD(&buckets[key & (BUCKETS - 1)], row, entry);
    give_lock();
    return TRIB_OK;
}

/* The lock is held. */
static struct row *find(uint64_t key)
{
    struct row *row;

    LIST_FOREACH(row, &buckets[key & (BUCKETS - 1)], entry)
    if (row->key == key)
        return row;
    return NULL;
}

static void *look_up(uint64_t key, uint64_t len, unsigned users)
{
    void *ptr = NULL;

    take_lock();
    struct row *row = find(key);
    if (row && row->len == len) {
        row->users += users;
        ptr = row->ptr;
    }
    give_lock();
    return ptr;
}

void *trib_own_memory_find(uint64_t key, uint64_t len)
{
    return look_up(key, len, 0);
}

void *trib_own_memory_join(uint64_t key, uint64_t len)
{
    return look_up(key, len, 1);
}

bool trib_own_memory_leave(uint64_t key)
{
    bool last = false;

    take_lock();
    struct row *row = find(key);
    if (row && --row->users == 0) {
        LIST_REMOVE(row, entry);
        free(row);
        last = true;
    }
    give_lock();
    return last;
}
