/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trib-info doctor - test what a cluster needs; one line per check.
 */
#include <stdbool.h>
#include <stdio.h>

#include <tributary.h>

#include "tools/common/ticker.h"
#include "tools/common/tool_table.h"
#include "tools/info/info_commands.h"

static const struct tool_option options[] = {
    {"folder", "FOLDER", tool_set_text, offsetof(trib_doctor_opts_t, folder),
     .help = "check a copy of a host's /sys, /proc and /dev in FOLDER"},
};

const struct tool_command info_doctor_command = {
    .name = "trib-info doctor",
    .usage =
        "usage: trib-info doctor [--folder FOLDER]\n"
        "\n"
        "Tests what a cluster needs. A single process checks this host's devices, "
        "links,\n"
        "libraries and limits. Under trib-run, mpirun or srun, checks all hosts, the\n"
        "settings that must agree between ranks, and writes between each pair of "
        "ranks.\n"
        "\n"
        "  ok            works\n"
        "  warn          works, but slowly or not everywhere\n"
        "  FAIL          does not work; the message states cause and cure\n",
    .ending = "example: mpirun -N 1 trib-info doctor\n"
              "exit code: 0 no check failed; 1 a check failed; 2 wrong arguments",
    .options = options,
    .n_options = sizeof(options) / sizeof(*options),
};

struct counts {
    int of[3]; /* by verdict */
};

static void print_finding(void *arg, const trib_finding_t *f)
{
    static const char *const verdicts[] = {"ok", "warn", "FAIL"};
    struct counts *counts = arg;

    counts->of[f->verdict]++;
    tool_ticker_hide();
    printf("%-5s %s%s%s: %s%s%s\n", verdicts[f->verdict], f->where,
           f->where[0] != '\0' ? ": " : "", f->topic, f->text,
           f->cure[0] != '\0' ? "; " : "", f->cure);
}

int info_doctor(int argc, char **argv)
{
    trib_doctor_opts_t opts = TRIB_DOCTOR_OPTS_INIT;
    trib_verdict_t worst = TRIB_VERDICT_OK;
    struct counts counts = {{0}};
    int code = tool_parse(&info_doctor_command, argc, argv, &opts, stderr);

    if (code >= 0)
        return code;
    tool_fold_stdout();
    tool_ticker_begin(
        "trib-info doctor: checking this host and waiting for other ranks");
    trib_status_t status = trib_doctor(&opts, print_finding, &counts, &worst);
    tool_ticker_end();
    if (status != TRIB_OK) {
        const char *why = trib_last_error(NULL);
        fprintf(stderr, "trib-info doctor: %s\n", *why ? why : trib_status_str(status));
        return 1;
    }
    if (counts.of[TRIB_VERDICT_OK] > 0) /* else another rank prints the findings */
        printf("%d ok, %d warn, %d FAIL\n", counts.of[TRIB_VERDICT_OK],
               counts.of[TRIB_VERDICT_WARN], counts.of[TRIB_VERDICT_FAIL]);
    return worst == TRIB_VERDICT_FAIL;
}
