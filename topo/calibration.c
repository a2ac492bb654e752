/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/calibration.h"

#include <assert.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/release.h"

static trib_status_t refuse_machine(const char *path, json_t *machine, const char *root,
                                    struct trib_error *err)
{
    const char *cpu = json_string_value(json_object_get(machine, "cpu"));
    const json_int_t cores = json_integer_value(json_object_get(machine, "cores"));
    const long here = sysconf(_SC_NPROCESSORS_ONLN);
    char model[128] = "unknown";

    (void)trib_file_field(root, "/proc/cpuinfo", "model name", true, model,
                          sizeof(model));
    if (cpu && strcmp(cpu, model) == 0 && cores == here)
        return TRIB_OK;
    return trib_fail(
        err, TRIB_ERR_INVALID,
        "calibration %s is from another machine (%.60s, %d cores; this one "
        "is %.60s, %ld cores): run trib-perf calibrate here",
        path, cpu ? cpu : "unknown", (int)cores, model, here);
}

/* Files written before the format was numbered have format 1. */
static trib_status_t refuse_format(const char *path, json_t *file,
                                   struct trib_error *err)
{
    json_t *format = json_object_get(file, "format");
    const json_int_t n = format ? json_integer_value(format) : 1;

    if (n == TRIB_CALIBRATION_FORMAT)
        return TRIB_OK;
    return trib_fail(err, TRIB_ERR_INVALID,
                     "calibration %s has format %d, this library (%s) reads %d: run "
                     "trib-perf calibrate of this release",
                     path, (int)n, trib_release, TRIB_CALIBRATION_FORMAT);
}

/* Read a positive number; false: missing or not positive. */
static bool take(json_t *link, const char *key, double *out)
{
    json_t *value = json_object_get(link, key);

    *out = json_is_number(value) ? json_number_value(value) : 0;
    return isfinite(*out) && *out > 0;
}

static trib_status_t take_link(const char *path, json_t *link, struct trib_error *err,
                               struct trib_calibration *out)
{
    const char *day = json_string_value(json_object_get(link, "measured"));
    unsigned y, m, d;

    if (!take(link, "hop_us", &out->hop_us) ||
        !take(link, "message_us", &out->message_us) ||
        !take(link, "wire_Bps", &out->wire_Bps) ||
        !take(link, "sum_Bps", &out->sum_Bps) || !day ||
        sscanf(day, "%4u-%2u-%2u", &y, &m, &d) != 3 || m > 12 || d > 31)
        return trib_fail(err, TRIB_ERR_INVALID,
                         "calibration %s: a link lacks measured, hop_us, message_us, "
                         "wire_Bps or sum_Bps, above 0: run trib-perf calibrate again",
                         path);
    out->measured = y * 10000 + m * 100 + d;
    out->known = 1;
    return TRIB_OK;
}

static bool is_link(json_t *link, const char *transport, const char *scope)
{
    const char *t = json_string_value(json_object_get(link, "transport"));
    const char *s = json_string_value(json_object_get(link, "scope"));

    return t && s && strcmp(t, transport) == 0 && strcmp(s, scope) == 0;
}

trib_status_t trib_calibration_read(const char *path, const char *transport, bool hosts,
                                    const char *root, struct trib_error *err,
                                    struct trib_calibration *out)
{
    json_error_t wrong;
    json_t *file, *link, *found = NULL;
    size_t i;

    memset(out, 0, sizeof(*out));
    if (!path[0])
        return TRIB_OK;
    file = json_load_file(path, 0, &wrong);
    if (!file)
        return trib_fail(err, TRIB_ERR_INVALID,
                         "calibration %s: line %d: %s (trib-perf calibrate --out "
                         "writes such files)",
                         path, wrong.line, wrong.text);
    trib_status_t st = refuse_format(path, file, err);
    if (st == TRIB_OK)
        st = refuse_machine(path, json_object_get(file, "machine"), root, err);
    json_array_foreach(json_object_get(file, "links"), i, link)
    {
        if (is_link(link, transport, hosts ? "hosts" : "host"))
            found = link;
    }
    if (st == TRIB_OK && found)
        st = take_link(path, found, err, out);
    if (st != TRIB_OK)
        memset(out, 0, sizeof(*out));
    json_decref(file);
    return st;
}

struct trib_calibration trib_calibration_agree(const struct trib_calibration *of,
                                               int ranks)
{
    struct trib_calibration all = of[0];

    assert(ranks > 0);
    for (int r = 0; r < ranks; r++) {
        const struct trib_calibration *c = &of[r];
        if (!c->known || !(c->hop_us > 0) || !(c->message_us > 0) ||
            !(c->wire_Bps > 0) || !(c->sum_Bps > 0))
            return (struct trib_calibration){0};
        all.hop_us = fmax(all.hop_us, c->hop_us);
        all.message_us = fmax(all.message_us, c->message_us);
        all.wire_Bps = fmin(all.wire_Bps, c->wire_Bps);
        all.sum_Bps = fmin(all.sum_Bps, c->sum_Bps);
        all.measured = c->measured < all.measured ? c->measured : all.measured;
    }
    return all;
}

struct trib_cost_model trib_calibration_cost(const struct trib_calibration *c)
{
    const struct trib_cost_model *usual = trib_cost_default(TRIB_COST_NETWORK);

    assert(c->known);
    return (struct trib_cost_model){
        .hop_us = c->hop_us,
        .switch_us = usual->switch_us,
        .message_us = c->message_us,
        .wire_Bps = c->wire_Bps,
        .sum_Bps = c->sum_Bps,
    };
}
