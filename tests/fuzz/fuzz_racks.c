/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Any bytes as a file of racks, in each format: they result in an error message, or in
 * a consistent tree that can be drawn and has groups of aggregators.
 */
#include "base/error.h"
#include "inspect/draw/draw_tree.h"
#include "tests/fuzz/reach.h"
#include "topo/racks/agg_groups.h"

unsigned fuzz_reached; /* files of racks */

static void check_switches(const struct trib_racks *r)
{
    for (int i = 0; i < r->n_switches; i++) {
        const struct trib_racks_switch *s = &r->switches[i];
        need(s->parent >= -1 && s->parent < i);
        need(s->depth == (s->parent < 0 ? 0 : r->switches[s->parent].depth + 1));
        need(s->name[0] && memchr(s->name, 0, sizeof(s->name)) != NULL);
        need(s->Gbps >= 0 && s->hosts >= 0);
    }
}

static void check_hosts(const struct trib_racks *r)
{
    for (int i = 0; i < r->n_hosts; i++) {
        const struct trib_racks_host *h = &r->hosts[i];
        need(h->rack >= 0 && h->rack < r->n_switches);
        need(trib_hostname_ok(h->name));
        need(i == 0 || strverscmp(r->hosts[i - 1].name, h->name) < 0);
        need(trib_racks_find(r, h->name) == h->rack);
    }
}

static void check_line(void *arg, const char *line)
{
    (*(int *)arg)++;
    for (; *line; line++)
        need((unsigned char)*line >= ' ' && *line != 127);
}

static void check_drawing(const struct trib_racks *r)
{
    const struct trib_drawing drawing = {.racks = r};
    int text = 0;
    int dot = 0;

    need(trib_draw_text(&drawing, check_line, &text) == TRIB_OK);
    need(trib_draw_dot(&drawing, check_line, &dot) == TRIB_OK);
    need(text > r->n_switches && dot > text);
}

/* Check up to three aggregators, and a rank on each host. */
static void check_aggregators(const struct trib_racks *r)
{
    const char *aggregators[] = {r->hosts[0].name, r->hosts[r->n_hosts / 2].name,
                              r->hosts[r->n_hosts - 1].name};
    const char *ranks[300];
    struct trib_places places;
    struct trib_agg_groups groups;

    for (int i = 0; i < r->n_hosts; i++)
        ranks[i] = r->hosts[i].name;
    need(trib_places_of_racks(r, aggregators, 3, ranks, r->n_hosts, &places) ==
         TRIB_OK);
    need(trib_agg_groups_make(&places, NULL, &groups) == TRIB_OK);
    need(groups.n >= 1 && groups.n <= 4 && groups.first[groups.n] <= 6);
    for (int u = 0; u < groups.n; u++) {
        need(groups.first[u] < groups.first[u + 1]);
        need(u == 0 || (groups.parent[u] >= 0 && groups.parent[u] < u));
    }
    for (int i = 0; i < r->n_hosts; i++)
        need(groups.of_rank[i] >= 0 && groups.of_rank[i] < groups.n);
    trib_agg_groups_free(&groups);
    trib_places_free(&places);
}

static void run(const uint8_t *data, size_t size, const char *format)
{
    const struct trib_racks_source source = {"file", (const char *)data, size, format,
                                             .names_max = 300};
    struct trib_error err = {0};
    struct trib_racks *racks;

    if (trib_racks_parse(&source, &err, &racks) != TRIB_OK) {
        int said = 0;
        check_line(&said, err.text);
        need(err.text[0] != '\0');
        return;
    }
    need(racks->n_switches > 0 && racks->n_switches <= 300);
    need(racks->n_hosts > 0 && racks->n_hosts <= 300);
    check_switches(racks);
    check_hosts(racks);
    check_drawing(racks);
    check_aggregators(racks);
    fuzz_reached++;
    trib_racks_free(racks);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    run(data, size, NULL);
    for (int i = 0; trib_racks_formats[i]; i++)
        run(data, size, trib_racks_formats[i]->name);
    return 0;
}
