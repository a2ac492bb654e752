/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * serve - serve the sample at a free port of loopback, which it prints, until its input
 * ends. Byte counters keep rising, and train-7 stays stalled.
 */
#include <poll.h>
#include <stdio.h>

#include "agg/metrics/http.h"
#include "base/error.h"
#include "tests/agg/metrics/sample.h"
#include "base/time.h"

#define TICK_MS 50

struct show {
    struct sample sample;
    uint64_t start_ns;
};

/* The clock of the sample starts at SAMPLE_T0. */
static trib_status_t view(void *arg, struct trib_service_view *out)
{
    const struct show *show = arg;

    return trib_metrics_view_mt(
        show->sample.metrics,
        SAMPLE_T0 + 60 * SAMPLE_S + trib_now_ns() - show->start_ns, out);
}

static void count(struct trib_metrics_writer *w, uint64_t tick)
{
    uint64_t wave = 1 + (tick % 400 < 200 ? tick % 200 : 200 - tick % 200) / 20;

    trib_metrics_count(w, TRIB_JOB_COUNTS_RECEIVED, wave * 1000000);
    trib_metrics_count(w, TRIB_JOB_COUNTS_SENT, wave * 1000000);
    trib_metrics_count(w, TRIB_JOB_COUNTS_DENSE, wave * 7000000);
    trib_metrics_count(w, TRIB_JOB_COUNTS_OPERATIONS, 2);
    trib_metrics_lag(w, 0, 200000);
    trib_metrics_lag(w, 1, 40000 * wave);
}

int main(void)
{
    struct trib_error err = {0};
    struct show show = {.start_ns = trib_now_ns()};
    struct trib_http_opts opts = {.view = view, .arg = &show};
    struct trib_http *http;

    if (!sample_create(&show.sample))
        return 1;
    if (trib_http_start(&opts, &err, &http)) {
        fprintf(stderr, "%s\n", trib_error_text(&err));
        sample_destroy(&show.sample);
        return err.status == TRIB_ERR_UNSUPPORTED ? 77 : 1;
    }
    printf("%u\n", trib_http_port(http));
    fflush(stdout);
    struct pollfd input = {.fd = 0, .events = POLLIN};
    for (uint64_t tick = 0; poll(&input, 1, TICK_MS) == 0; tick++)
        count(show.sample.writers[1], tick);
    trib_http_stop(http);
    sample_destroy(&show.sample);
    return 0;
}
