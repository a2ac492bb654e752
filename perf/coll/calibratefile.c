/* SPDX-License-Identifier: BSD-3-Clause */
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "perf/coll/calibrate.h"
#include "perf/common/machine_json.h"

static json_t *machine_here(void)
{
    json_t *all = perf_machine_json();
    json_t *machine =
        json_pack("{s:O, s:O}", "cpu", json_object_get(all, "cpu"), "cores",
                  json_object_get(all, "cores"));

    json_decref(all);
    return machine;
}

static json_t *link_json(const struct calibrate_link *link)
{
    char day[16] = "";
    const time_t now = time(NULL);
    struct tm tm;

    if (gmtime_r(&now, &tm) != NULL)
        (void)strftime(day, sizeof(day), "%Y-%m-%d", &tm);
    return json_pack("{s:s, s:s, s:s, s:i, s:f, s:f, s:f, s:f}", "transport",
                     link->transport, "scope", link->hosts ? "hosts" : "host",
                     "measured", day, "ranks", link->ranks, "hop_us", link->hop_us,
                     "message_us", link->message_us, "wire_Bps", link->wire_Bps,
                     "sum_Bps", link->sum_Bps);
}

static bool same_link(json_t *a, json_t *b)
{
    return json_equal(json_object_get(a, "transport"),
                      json_object_get(b, "transport")) &&
           json_equal(json_object_get(a, "scope"), json_object_get(b, "scope"));
}

/* Return the other links of this machine that the file already has. */
static json_t *other_links(const char *path, json_t *machine, json_t *link)
{
    json_t *file = json_load_file(path, 0, NULL), *links = json_array(), *old;
    size_t i;

    if (json_equal(json_object_get(file, "machine"), machine))
        json_array_foreach(json_object_get(file, "links"), i, old)
        {
            if (!same_link(old, link))
                json_array_append(links, old);
        }
    json_decref(file);
    return links;
}

/* Write a temporary file and rename it, so that readers never see half a file. */
static bool put(const char *path, json_t *file)
{
    char temp[4096];

    if (snprintf(temp, sizeof(temp), "%s.%ld", path, (long)getpid()) >=
        (int)sizeof(temp))
        return false;
    if (json_dump_file(file, temp, JSON_INDENT(2) | JSON_REAL_PRECISION(6)) == 0 &&
        rename(temp, path) == 0)
        return true;
    (void)unlink(temp);
    return false;
}

bool calibrate_write(const char *path, const struct calibrate_link *link, char *why,
                     size_t why_bytes)
{
    json_t *machine = machine_here(), *new = link_json(link);
    json_t *links = other_links(path, machine, new);
    json_t *file;

    json_array_append_new(links, new);
    file = json_pack("{s:i, s:o, s:o}", "format", 1, "machine",
                     machine, "links", links);
    const bool done = file != NULL && put(path, file);
    if (!done)
        snprintf(why, why_bytes, "cannot write %.500s: does the folder exist?", path);
    json_decref(file);
    return done;
}
