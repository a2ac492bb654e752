/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trib_doctor: runs the checks in order.
 */
#include "base/config_report.h"
#include "inspect/doctor/doctor_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/process.h"
#include "base/sized.h"
#include "boot/boot.h"
#include "comm/core/comm_setup.h"
#include "comm/life/join.h"
#include "comm/life/settings.h"
#include "comm/members/wireup.h"

#define OK TRIB_VERDICT_OK
#define WARN TRIB_VERDICT_WARN
#define FAIL TRIB_VERDICT_FAIL
#define STEP_MS 12000 /* longer than a pair takes between two exchanges */
#define CLOCK_ROUNDS 5

static void note_warning(void *arg, trib_log_level_t level, const char *line)
{
    struct trib_doctor *d = arg;

    if (level <= TRIB_LOG_WARN)
        trib_report_say(&d->report, WARN, "warning", "", "%s", line);
}

/* Return the id of this process's network namespace; 0: unknown. */
static uint64_t network_space(void)
{
    struct stat st;

    return stat("/proc/self/ns/net", &st) == 0 ? (uint64_t)st.st_ino : 0;
}

static void fill_card(struct trib_doctor *d, struct trib_card *card)
{
    struct trib_process self;

    memset(card, 0, sizeof(*card));
    trib_process_self(&self);
    card->machine = trib_wireup_machine();
    card->boot = self.boot;
    card->network = network_space();
    card->settings = trib_config_digest(&d->comm.cfg);
    card->pid = self.pid;
    trib_cpus_self(&card->cpus);
    snprintf(card->library, sizeof(card->library), "%s", trib_version());
    if (!trib_host_name(card->host))
        snprintf(card->host, sizeof(card->host), "unknown");
    trib_doctor_links(d->folder, card->links, sizeof(card->links));
    trib_config_same_text(&d->comm.cfg, card->settings_text,
                          sizeof(card->settings_text));
}

/* Clocks --------------------------------------------------------------------------- */

static double wall_clock(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/*
 * All ranks leave an exchange at nearly the same time and then read their clocks; of
 * several readings the smallest difference counts.
 */
static trib_status_t compare_clocks(struct trib_doctor *d)
{
    double *all = calloc((size_t)d->size, sizeof(*all)), mine = 0;
    double *apart = calloc((size_t)d->size, sizeof(*apart));
    trib_status_t st = all && apart ? TRIB_OK : TRIB_ERR_NO_MEMORY;

    for (int round = 0; st == TRIB_OK && round <= CLOCK_ROUNDS; round++) {
        st = d->x->allgather(d->x->arg, "clock", &mine, sizeof(mine), all);
        mine = wall_clock();
        for (int r = 0; st == TRIB_OK && round > 0 && r < d->size; r++) {
            double now = all[r] - all[0];
            if (round == 1 || now * now < apart[r] * apart[r])
                apart[r] = now;
        }
    }
    if (st == TRIB_OK && d->rank == 0)
        trib_doctor_judge_clocks(d, apart);
    free(all);
    free(apart);
    return st;
}

/* Whole examination ---------------------------------------------------------------- */

/* Report each setting that would make trib_init or a collective fail. */
static void judge_settings(struct trib_doctor *d, const char *overrides)
{
    struct trib_config_faults faults;
    struct trib_config cfg;

    trib_config_examine(&cfg, overrides, &faults);
    if (trib_settings_check(&cfg, &faults))
        return;
    for (int i = 0; i < TRIB_CONFIG_ROWS; i++)
        if (faults.row[i][0])
            trib_report_say(&d->report, FAIL, "settings",
                            "trib-info --config shows where it was set", "%s",
                            faults.row[i]);
    if (faults.other[0])
        trib_report_say(&d->report, FAIL, "settings", "", "%s", faults.other);
}

/* Terminate strings received from other ranks. */
static void end_texts(struct trib_card *card)
{
    card->library[sizeof(card->library) - 1] = 0;
    card->host[sizeof(card->host) - 1] = 0;
    card->links[sizeof(card->links) - 1] = 0;
    card->settings_text[sizeof(card->settings_text) - 1] = 0;
}

static trib_status_t examine_all(struct trib_doctor *d)
{
    struct trib_card mine;

    fill_card(d, &mine);
    trib_status_t st =
        d->x->allgather(d->x->arg, "card", &mine, sizeof(mine), d->cards);
    if (st != TRIB_OK)
        return st;
    for (int r = 0; r < d->size; r++)
        end_texts(&d->cards[r]);
    const bool first = trib_doctor_first(d, d->rank) == d->rank;
    if (first)
        trib_doctor_host(d);
    if (first)
        trib_doctor_counters_begin(d);
    d->report.where = "*";
    if (d->rank == 0)
        trib_doctor_compare(d);
    st = d->size > 1 ? compare_clocks(d) : TRIB_OK;
    if (st == TRIB_OK)
        st = trib_doctor_reach(d);
    d->report.where = "";
    if (first)
        trib_doctor_counters_end(d);
    return st;
}

/* Gather and merge the findings of all ranks. */
static trib_status_t collect(struct trib_doctor *d, struct trib_report *merged)
{
    struct trib_report *all = calloc((size_t)d->size, sizeof(*all));
    struct trib_report_place *places = calloc((size_t)d->size, sizeof(*places));
    trib_status_t st = all && places ? TRIB_OK : TRIB_ERR_NO_MEMORY;

    for (int r = 0; all && r < d->size; r++)
        trib_report_init(&all[r]);
    if (st == TRIB_OK)
        st = trib_report_gather(&d->report, d->x, d->size, all);
    for (int r = 0; st == TRIB_OK && r < d->size; r++)
        places[r] =
            (struct trib_report_place){d->cards[r].host, trib_doctor_first(d, r)};
    if (st == TRIB_OK)
        trib_report_merge(all, places, d->size, merged);
    for (int r = 0; all && r < d->size; r++)
        trib_report_free(&all[r]);
    free(all);
    free(places);
    return st;
}

static void tell(const struct trib_report *report, trib_verdict_t least,
                 trib_finding_fn fn, void *arg)
{
    trib_finding_t f;

    for (size_t at = 0; trib_report_next(report, &at, &f);)
        if (f.verdict >= least)
            fn(arg, &f);
}

/* Report only this rank's findings, if the ranks could not rendezvous. */
static void meeting_failed(struct trib_doctor *d, trib_finding_fn fn, void *arg)
{
    char where[128], host[TRIB_HOST_BYTES];
    const char *why = trib_error_text(&d->comm.err);

    if (!trib_host_name(host))
        snprintf(host, sizeof(host), "unknown");
    snprintf(where, sizeof(where), "rank %d (%s)", d->rank, host);
    trib_report_add(&d->report, &(trib_finding_t){.verdict = FAIL,
                                                  .where = where,
                                                  .topic = "rendezvous",
                                                  .text = why,
                                                  .cure = ""});
    tell(&d->report, WARN, fn, arg);
}

static trib_verdict_t examine(struct trib_doctor *d, const trib_opts_t *opts,
                              trib_finding_fn fn, void *arg)
{
    struct trib_report merged;
    struct trib_boot *boot;
    trib_status_t st =
        trib_config_load(&d->comm.cfg, opts->config, &d->comm.log, &d->comm.err);

    trib_report_init(&merged);
    judge_settings(d, opts->config);
    if (st == TRIB_OK && d->comm.cfg.boot_timeout_ms &&
        d->comm.cfg.boot_timeout_ms < STEP_MS)
        d->comm.cfg.boot_timeout_ms = STEP_MS;
    if (st == TRIB_OK)
        st = trib_comm_join(&d->comm, opts, &boot, &d->rank, &d->size);
    if (st != TRIB_OK) {
        d->size = d->size > 0 ? d->size : 1;
        trib_doctor_host(d);
        meeting_failed(d, fn, arg);
        trib_report_free(&merged);
        return FAIL;
    }
    struct trib_exchange x = {trib_boot_exchange, boot};
    d->comm.met = boot->met;
    d->x = &x;
    d->cards = calloc((size_t)d->size, sizeof(*d->cards));
    st = d->cards ? examine_all(d)
                  : trib_fail(&d->comm.err, TRIB_ERR_NO_MEMORY,
                              "no memory for %d ranks", d->size);
    if (st == TRIB_OK)
        st = collect(d, &merged);
    if (st != TRIB_OK) {
        (boot->ops->fail)(boot, trib_error_text(&d->comm.err));
        meeting_failed(d, fn, arg);
    } else if (d->rank == 0) {
        tell(&merged, OK, fn, arg);
    }
    boot->ops->close(boot);
    trib_verdict_t worst = st == TRIB_OK ? trib_report_worst(&merged) : FAIL;
    trib_report_free(&merged);
    return worst;
}

trib_status_t trib_doctor(const trib_doctor_opts_t *opts, trib_finding_fn fn, void *arg,
                          trib_verdict_t *worst_out)
{
    static const struct trib_sized kind = {
        "trib_doctor_opts_t", "TRIB_DOCTOR_OPTS_INIT", sizeof(*opts),
        TRIB_SIZED_UP_TO(trib_doctor_opts_t, folder)};
    trib_doctor_opts_t ours = TRIB_DOCTOR_OPTS_INIT;
    struct trib_error err = {0};
    trib_opts_t join;

    if (!fn)
        return TRIB_ERR_INVALID;
    if ((opts && trib_sized_take(&kind, opts, &ours, &err) != TRIB_OK) ||
        trib_opts_take(ours.join, &join, &err) != TRIB_OK) {
        trib_say_error(trib_error_text(&err));
        return TRIB_ERR_INVALID;
    }
    struct stat place;
    if (ours.folder && ours.folder[0] &&
        (stat(ours.folder, &place) != 0 || !S_ISDIR(place.st_mode))) {
        trib_fail(&err, TRIB_ERR_INVALID,
                  "trib_doctor_opts_t.folder is \"%.200s\", which does not exist",
                  ours.folder);
        trib_say_error(trib_error_text(&err));
        return TRIB_ERR_INVALID;
    }
    struct trib_doctor *d = calloc(1, sizeof(*d));
    if (!d)
        return TRIB_ERR_NO_MEMORY;
    d->folder = ours.folder ? ours.folder : "";
    trib_report_init(&d->report);
    trib_log_init(&d->comm.log, TRIB_LOG_WARN, note_warning, d);
    trib_verdict_t worst = examine(d, &join, fn, arg);
    if (worst_out)
        *worst_out = worst;
    trib_report_free(&d->report);
    free(d->cards);
    free(d);
    return TRIB_OK;
}
