/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Scheduling of tasks: users take turns, and so do the stores of one user. The user
 * with fewer running tasks goes first, then the one with the older last turn.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "agg/daemon/archive_parts.h"

static bool is_same_user(const struct archive_task *a, const struct archive_task *b)
{
    return strcmp(a->key.user, b->key.user) == 0;
}

static bool is_same_store(const struct archive_task *a, const struct archive_task *b)
{
    return is_same_user(a, b) &&
           memcmp(a->key.owner, b->key.owner, TRIB_SNAPSHOT_OWNER_BYTES) == 0;
}

static bool is_same_snapshot(const struct archive_task *a, const struct archive_task *b)
{
    return is_same_store(a, b) && strcmp(a->key.name, b->key.name) == 0;
}

/* Return true if one of two writes needs the disk for itself. */
static bool excludes(const struct archive_task *a, const struct archive_task *b)
{
    return a->writes && b->writes && (a->alone || b->alone);
}

/* Return true if a task of the same snapshot is running or queued earlier. Two
 * concurrent tasks would write one file, and an older snapshot could replace a newer
 * one, or be read instead of it. Also if a running write excludes this one. */
static bool must_wait(const struct archive *a, const struct archive_task *task)
{
    for (uint32_t i = 0; i < a->n_threads; i++) {
        const struct archive_task *other = a->threads[i].task;
        if (other && (is_same_snapshot(other, task) || excludes(other, task)))
            return true;
    }
    for (const struct archive_task *t = a->first; t != task; t = t->next) {
        assert(t); /* the task is queued */
        if (is_same_snapshot(t, task))
            return true;
    }
    return false;
}

/* Priority of a queued task: the lowest is next. */
struct rank {
    uint64_t part[4]; /* compared in order */
};

static struct rank rank_of(const struct archive *a, const struct archive_task *task)
{
    struct rank rank = {.part = {0}};

    for (uint32_t i = 0; i < a->n_threads; i++) {
        const struct archive_task *other = a->threads[i].task;
        rank.part[0] += other && is_same_user(other, task);
        rank.part[2] += other && is_same_store(other, task);
    }
    for (int i = 0; i < ARCHIVE_TURNS; i++) {
        const struct archive_turn *t = &a->turns[i];
        const struct archive_task of = {.key = {t->owner, t->user, NULL}};
        if (t->number > rank.part[1] && is_same_user(&of, task))
            rank.part[1] = t->number;
        if (t->number > rank.part[3] && is_same_store(&of, task))
            rank.part[3] = t->number;
    }
    return rank;
}

static bool is_before(const struct rank *a, const struct rank *b)
{
    for (size_t i = 0; i < sizeof(a->part) / sizeof(*a->part); i++)
        if (a->part[i] != b->part[i])
            return a->part[i] < b->part[i];
    return false;
}

static bool is_small(const struct archive *a, const struct archive_task *task)
{
    const struct archive_file *f = task->writes ? NULL : archive_find(a, &task->key);
    const uint64_t bytes = f ? f->bytes : task->n;

    return bytes <= ARCHIVE_SMALL_BYTES;
}

/* Return true if the task may start: the last free thread is reserved for small tasks
 * and for users without a running task. */
static bool may_begin(const struct archive *a, const struct archive_task *task,
                      const struct rank *rank)
{
    uint32_t n_free = 0;

    assert(a->n_threads > 0);
    for (uint32_t i = 0; i < a->n_threads; i++)
        n_free += !a->threads[i].task;
    n_free -= a->chore && n_free > 0;
    return n_free > 1 || a->n_threads == 1 || a->stop || !rank->part[0] ||
           is_small(a, task);
}

/* Record the turn, replacing the store's previous turn or the oldest one. */
static void note_turn(struct archive *a, const struct archive_task *task)
{
    struct archive_turn *oldest = &a->turns[0];

    for (int i = 0; i < ARCHIVE_TURNS; i++) {
        struct archive_turn *t = &a->turns[i];
        const struct archive_task of = {.key = {t->owner, t->user, NULL}};
        if (t->number && is_same_store(&of, task)) {
            oldest = t;
            break;
        }
        if (t->number < oldest->number)
            oldest = t;
    }
    oldest->number = ++a->turn;
    memcpy(oldest->owner, task->key.owner, sizeof(oldest->owner));
    snprintf(oldest->user, sizeof(oldest->user), "%s", task->key.user);
}

void archive_dequeue(struct archive *a, const struct archive_task *task)
{
    struct archive_task *before = NULL;
    struct archive_task **at = &a->first;

    while (*at && *at != task) {
        before = *at;
        at = &before->next;
    }
    assert(*at && a->last && !a->last->next);
    *at = task->next;
    if (a->last == task)
        a->last = before;
}

struct archive_task *archive_take_turn(struct archive *a)
{
    struct archive_task *best = NULL;
    struct rank lowest = {.part = {0}};

    for (struct archive_task *t = a->first; t; t = t->next) {
        const struct rank rank = rank_of(a, t);
        if (t->prepared || !may_begin(a, t, &rank) ||
            (best && !is_before(&rank, &lowest)) || must_wait(a, t) ||
            archive_awaits_deletions(a, t))
            continue;
        best = t;
        lowest = rank;
    }
    if (!best)
        return NULL;
    archive_dequeue(a, best);
    note_turn(a, best);
    return best;
}
