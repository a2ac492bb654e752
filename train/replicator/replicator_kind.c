/* SPDX-License-Identifier: BSD-3-Clause */
#include "train/replicator/replicator_kind.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/keyed_text.h"

enum { THREADS, DEVICES, GROUPS, STALENESS, SHARES, INPUT, KEYS };
enum {
    TAKES_THREADS = 1 << THREADS,
    TAKES_DEVICES = 1 << DEVICES,
    TAKES_GROUPS = 1 << GROUPS,
    TAKES_STALENESS = 1 << STALENESS,
    TAKES_SHARES = 1 << SHARES,
};

struct row {
    const char *name;
    unsigned takes;
    const char *strategy;
    bool alone;
    int groups;
};

static const struct row rows[] = {
#define KIND(name, takes, strategy, alone, groups) \
    {name, takes, strategy, alone, groups},
#include "train/replicator/kinds.def"
#undef KIND
};

static const char *const inputs[] = {"replica", "worker", "single", NULL};

static const char *row_name(int i)
{
    return (size_t)i < sizeof(rows) / sizeof(rows[0]) ? rows[i].name : NULL;
}

static int row_keys(int i, struct trib_keyed_key keys_out[TRIB_KEYED_KEYS])
{
    static const struct trib_keyed_key keys[KEYS] = {
        [THREADS] = {"threads", 1, 1024, true, "a number of threads from 1 to 1024",
                     NULL},
        [DEVICES] = {"devices", 1, 1024, true, "a number of devices from 1 to 1024",
                     NULL},
        [GROUPS] = {"groups", 1, 65536, true, "a number of groups from 1", NULL},
        [STALENESS] = {"staleness", -1, 1e6, true,
                       "a number of pushes, or -1, no bound", NULL},
        [SHARES] = {"shares", 1, 65536, true, "a number of shares from 1", NULL},
        [INPUT] = {"input", 0, 0, true, "replica, worker or single", inputs},
    };

    for (int k = 0; k < KEYS; k++) {
        keys_out[k] = keys[k];
        if (k != INPUT && !(rows[i].takes & 1u << k))
            keys_out[k].name = NULL;
    }
    return KEYS;
}

static const struct trib_keyed_family family = {"kind", 120, row_name, row_keys};

/* Expand "threads:4" to "threads:threads=4". */
static void spell_out(const char *text, char *out, size_t bytes)
{
    const char *const short_form = "threads:";
    const size_t len = strlen(short_form);
    const bool is_short =
        strncmp(text, short_form, len) == 0 && isdigit((unsigned char)text[len]);

    snprintf(out, bytes, "%.*s%s%s", (int)(is_short ? len : 0), text,
             is_short ? "threads=" : "", text + (is_short ? len : 0));
}

trib_status_t trib_kind_parse(const char *text, struct trib_error *err,
                              struct trib_kind *out)
{
    struct trib_keyed_text given;
    char whole[sizeof(out->text) + 8];

    text = text ? text : "workers";
    *out = (struct trib_kind){.threads = 1, .devices = 1};
    snprintf(out->text, sizeof(out->text), "%s", text);
    spell_out(text, whole, sizeof(whole));

    const trib_status_t st = trib_keyed_parse(&family, whole, err, &given);
    if (st != TRIB_OK)
        return st;
    const struct row *row = &rows[given.name];
    const bool has_groups = given.given & 1u << GROUPS;

    out->strategy = row->strategy;
    out->alone = row->alone;
    out->pushes = row->groups >= 0;
    out->groups = has_groups ? (int)given.value[GROUPS] : row->groups;
    if (given.given & 1u << THREADS)
        out->threads = (int)given.value[THREADS];
    else if (row->alone && row->takes & TAKES_THREADS)
        return trib_fail(err, TRIB_ERR_INVALID,
                         "kind \"%s\": the number of threads is missing; \"threads:4\" "
                         "has four",
                         out->text);
    if (given.given & 1u << DEVICES)
        out->devices = (int)given.value[DEVICES];
    out->staleness = given.given & 1u << STALENESS ? (int)given.value[STALENESS] : -1;
    out->shares = (int)given.value[SHARES];
    out->input = (enum trib_kind_input)given.value[INPUT];
    return TRIB_OK;
}

static trib_status_t fit_replicas(const struct trib_kind *kind, struct trib_error *err,
                                  struct trib_kind_shape *s)
{
    if (kind->alone && s->processes > 1)
        return trib_fail(err, TRIB_ERR_INVALID,
                         "kind \"%s\" has one process, but this job has %d: use "
                         "\"workers:threads=%d\", or start a single process",
                         kind->text, s->processes, kind->threads);
    if (s->ranks % kind->devices != 0)
        return trib_fail(
            err, TRIB_ERR_INVALID,
            "kind \"%s\": %d ranks cannot be divided into replicas of %d devices",
            kind->text, s->ranks, kind->devices);
    s->replicas = s->ranks / kind->devices;
    s->groups = !kind->pushes ? 1 : kind->groups == 0 ? s->replicas : kind->groups;
    if (s->replicas % s->groups != 0)
        return trib_fail(err, TRIB_ERR_INVALID,
                         "kind \"%s\": %d replicas cannot be divided into %d equal "
                         "groups",
                         kind->text, s->replicas, s->groups);
    s->in_sync = s->replicas / s->groups;
    return TRIB_OK;
}

static trib_status_t fit_batch(const struct trib_kind *kind, size_t batch,
                               struct trib_error *err, struct trib_kind_shape *s)
{
    const size_t n = (size_t)s->in_sync, shares = (size_t)kind->shares;

    if (batch == 0 || batch % n != 0)
        return trib_fail(err, TRIB_ERR_INVALID,
                         "kind \"%s\": a batch of %zu samples is not divisible by %zu "
                         "replica%s: %zu would be",
                         kind->text, batch, n, n > 1 ? "s" : "", (batch / n + 1) * n);
    s->batch = batch / n;
    if (shares > 0 && shares % n != 0)
        return trib_fail(err, TRIB_ERR_INVALID,
                         "kind \"%s\": %zu shares are not divisible by %zu replicas",
                         kind->text, shares, n);
    if (shares > 0 && batch % shares != 0)
        return trib_fail(err, TRIB_ERR_INVALID,
                         "kind \"%s\": a batch of %zu samples is not divisible by %zu "
                         "shares: %zu would be",
                         kind->text, batch, shares, (batch / shares + 1) * shares);
    return TRIB_OK;
}

static trib_status_t fit_steps(const struct trib_kind *kind, uint64_t steps,
                               struct trib_error *err, struct trib_kind_shape *s)
{
    const uint64_t groups = (uint64_t)s->groups;

    if (steps == 0 || steps % groups != 0)
        return trib_fail(err, TRIB_ERR_INVALID,
                         "kind \"%s\": %llu steps are not divisible by %d group%s: "
                         "%llu would be",
                         kind->text, (unsigned long long)steps, s->groups,
                         s->groups > 1 ? "s" : "",
                         (unsigned long long)((steps / groups + 1) * groups));
    s->steps = steps / groups;
    return TRIB_OK;
}

static trib_status_t fit_input(const struct trib_kind *kind, struct trib_error *err,
                               const struct trib_kind_shape *s)
{
    if (kind->input == TRIB_INPUT_REPLICA || s->ranks == 1)
        return TRIB_OK;
    if (kind->input == TRIB_INPUT_SINGLE)
        return s->groups == 1
                   ? TRIB_OK
                   : trib_fail(
                         err, TRIB_ERR_INVALID,
                         "kind \"%s\": one pipeline for %d groups would make them wait "
                         "for each other: use input=replica",
                         kind->text, s->groups);
    if (kind->threads % kind->devices != 0)
        return trib_fail(
            err, TRIB_ERR_INVALID,
            "kind \"%s\": a process has %d of the %d devices of a replica, so it has "
            "no pipeline of its own: use input=replica",
            kind->text, kind->threads, kind->devices);
    if (s->in_sync % (kind->threads / kind->devices) != 0)
        return trib_fail(err, TRIB_ERR_INVALID,
                         "kind \"%s\": a process has replicas of several groups, which "
                         "one pipeline would make wait for each other: use "
                         "input=replica",
                         kind->text);
    return TRIB_OK;
}

trib_status_t trib_kind_fit(const struct trib_kind *kind, int processes, size_t batch,
                            uint64_t steps, struct trib_error *err,
                            struct trib_kind_shape *out)
{
    *out = (struct trib_kind_shape){.processes = processes,
                                    .ranks = processes * kind->threads};
    trib_status_t st = fit_replicas(kind, err, out);

    if (st == TRIB_OK)
        st = fit_batch(kind, batch, err, out);
    if (st == TRIB_OK)
        st = fit_steps(kind, steps, err, out);
    return st != TRIB_OK ? st : fit_input(kind, err, out);
}
