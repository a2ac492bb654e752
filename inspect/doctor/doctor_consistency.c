/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trib_doctor: properties that a job's ranks must agree on. Rank 0 reports them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "boot/rank_names.h"
#include "comm/members/wireup_check.h"
#include "inspect/doctor/doctor_parts.h"

#define OK TRIB_VERDICT_OK
#define WARN TRIB_VERDICT_WARN
#define FAIL TRIB_VERDICT_FAIL
#define CLOCK_WARN_S 1.0

int trib_doctor_first(const struct trib_doctor *d, int rank)
{
    int r = 0;

    while (d->cards[r].machine != d->cards[rank].machine)
        r++;
    return r;
}

/* Return true if the rank reports for its host. */
static bool first_of_host(const struct trib_doctor *d, int rank)
{
    return trib_doctor_first(d, rank) == rank;
}

static void compare_versions(struct trib_doctor *d)
{
    const struct trib_card *first = &d->cards[0];

    for (int r = 1; r < d->size; r++) {
        const struct trib_card *c = &d->cards[r];
        if (strncmp(c->library, first->library, sizeof(c->library)) == 0)
            continue;
        trib_report_say(&d->report, FAIL, "versions",
                        "install the same version on all hosts",
                        "rank %d (%.64s) has Tributary %.11s, rank 0 (%.64s) has %.11s",
                        r, c->host, c->library, first->host, first->library);
        return;
    }
    trib_report_say(&d->report, OK, "versions", "", "%.11s on all ranks",
                    first->library);
}

static void compare_settings(struct trib_doctor *d)
{
    const struct trib_card *first = &d->cards[0];
    char x[128], y[128];

    for (int r = 1; r < d->size; r++) {
        const struct trib_card *c = &d->cards[r];
        if (c->settings == first->settings)
            continue;
        trib_wireup_difference(c->settings_text, first->settings_text, x, y, sizeof(x));
        trib_report_say(&d->report, FAIL, "settings",
                        "give all ranks the same TRIB_* variables and file",
                        "rank %d (%.64s) has %s, rank 0 (%.64s) has %s", r, c->host, x,
                        first->host, y);
        return;
    }
    trib_report_say(&d->report, OK, "settings", "", "the same on all ranks");
}

/* "4 ranks on 2 hosts: host0 (ranks 0-1), host1 (ranks 2-3)" */
static void list_hosts(struct trib_doctor *d)
{
    bool *here = calloc((size_t)d->size, sizeof(*here));
    char list[400] = "", ranks[64];
    int hosts = 0;

    for (int r = 0; here && r < d->size; r++) {
        if (!first_of_host(d, r))
            continue;
        hosts++;
        for (int i = 0; i < d->size; i++)
            here[i] = d->cards[i].machine == d->cards[r].machine;
        size_t n = strlen(list);
        snprintf(list + n, sizeof(list) - n, "%s%.64s (%s)", n ? ", " : "",
                 d->cards[r].host,
                 trib_ranks_format(here, d->size, ranks, sizeof(ranks)));
    }
    free(here);
    trib_report_say(&d->report, OK, "ranks", "", "%d on %d host%s: %s", d->size, hosts,
                    hosts == 1 ? "" : "s", list);
}

static void compare_hosts(struct trib_doctor *d)
{
    for (int r = 1; r < d->size; r++) {
        for (int i = 0; first_of_host(d, r) && i < r; i++) {
            const struct trib_card *a = &d->cards[i], *b = &d->cards[r];
            if (a->boot == b->boot && a->boot)
                trib_report_say(
                    &d->report, WARN, "containers",
                    "start their containers with --pid=host --ipc=host, or all ranks "
                    "of a host in one container",
                    "ranks %d and %d run on one kernel (%.64s) in different "
                    "containers: they do not share memory",
                    i, r, b->host);
            else if (strcmp(a->host, b->host) == 0)
                trib_report_say(
                    &d->report, WARN, "host names",
                    "give each host a unique name (hostnamectl)",
                    "the hosts of rank %d and of rank %d are both named %.64s: error "
                    "messages cannot distinguish them",
                    i, r, b->host);
            else
                continue;
            return;
        }
    }
}

/* Warn about ranks that share memory in different networks: traffic outside shared
 * memory needs a route. */
static void compare_networks(struct trib_doctor *d)
{
    for (int r = 1; r < d->size; r++) {
        int first = trib_doctor_first(d, r);
        if (d->cards[r].network == d->cards[first].network)
            continue;
        trib_report_say(
            &d->report, WARN, "networks",
            "start their containers in one network (--network=host)",
            "ranks %d and %d on %.64s share memory but have different network "
            "namespaces: tcp between them needs a route",
            first, r, d->cards[r].host);
        return;
    }
}

static void compare_cpus(struct trib_doctor *d)
{
    for (int r = 0; r < d->size; r++) {
        struct trib_cpus_sum sum = {.processes = 0};
        for (int i = r; first_of_host(d, r) && i < d->size; i++) {
            if (d->cards[i].machine != d->cards[r].machine)
                continue;
            trib_cpus_add(&sum, &d->cards[i].cpus);
        }
        const int cpus = trib_cpus_count(&sum);
        if (sum.processes > cpus)
            trib_report_say(
                &d->report, WARN, "cpus",
                "start fewer ranks there, or give them more CPUs (launcher binding, "
                "container cpuset and quota)",
                "%d ranks on %.64s share %d hardware thread%s: they wait for each "
                "other",
                sum.processes, d->cards[r].host, cpus, cpus == 1 ? "" : "s");
    }
}

void trib_doctor_compare(struct trib_doctor *d)
{
    if (d->size > 1) {
        list_hosts(d);
        compare_versions(d);
        compare_settings(d);
        compare_hosts(d);
        compare_networks(d);
    }
    compare_cpus(d);
}

void trib_doctor_judge_clocks(struct trib_doctor *d, const double *apart)
{
    int worst = 0;

    for (int r = 1; r < d->size; r++)
        if (apart[r] * apart[r] > apart[worst] * apart[worst])
            worst = r;
    double s = apart[worst] < 0 ? -apart[worst] : apart[worst];
    if (s > CLOCK_WARN_S)
        trib_report_say(
            &d->report, WARN, "clocks", "run chrony or another NTP client on all hosts",
            "the clock of rank %d (%.64s) is %.1f s %s rank 0's (%.64s): timestamps in "
            "their logs do not match",
            worst, d->cards[worst].host, s, apart[worst] < 0 ? "behind" : "ahead of",
            d->cards[0].host);
    else
        trib_report_say(&d->report, OK, "clocks", "", "at most %.0f ms apart",
                        s * 1e3 < 1 ? 1 : s * 1e3);
}
