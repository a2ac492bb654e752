/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Slurm without PMI: rank and size come from the environment; each rank computes the
 * root itself.
 *
 * Rank 0 runs on the first host of the step's node list. SLURM_LAUNCH_NODE_IPADDR is
 * unusable: it is the host of srun, not of rank 0.
 */
#include "boot/slurm.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/config.h"
#include "base/error.h"
#include "boot/launcher.h"

#define PORT_FIRST 20000 /* below the ephemeral ports */
#define PORT_COUNT 10000
#define STEP_STRIDE 101 /* spreads steps of one job and of neighbouring jobs */

/* Copy the first number of "[05-08,11]"; return the end of the group or NULL. */
static const char *first_number(const char *group, char *host, size_t bytes,
                                size_t *len)
{
    const char *end = strchr(group, ']');
    size_t digits = strspn(group + 1, "0123456789");

    if (!end || digits == 0 || !strchr("-,]", group[1 + digits]) ||
        digits >= bytes - *len)
        return NULL;
    memcpy(host + *len, group + 1, digits);
    *len += digits;
    return end + 1;
}

bool trib_slurm_first_host(const char *list, char *host, size_t bytes)
{
    size_t len = 0;

    while (*list && *list != ',') {
        if (*list == '[') {
            list = first_number(list, host, bytes, &len);
            if (!list)
                return false;
            continue;
        }
        if ((!isalnum((unsigned char)*list) && !strchr("-._", *list)) ||
            len + 1 >= bytes)
            return false;
        host[len++] = *list++;
    }
    host[len] = '\0';
    return len > 0;
}

int trib_slurm_port(unsigned job, unsigned step)
{
    return PORT_FIRST +
           (int)((job % PORT_COUNT + step % PORT_COUNT * STEP_STRIDE) % PORT_COUNT);
}

/* Return the variable with the step's number of tasks; the job may have more. */
static const char *size_variable(void)
{
    return trib_config_variable("SLURM_STEP_NUM_TASKS") ? "SLURM_STEP_NUM_TASKS"
                                                        : "SLURM_NTASKS";
}

/*
 * Return true in a batch script: it has the job's variables but no step, as srun did
 * not start it, and is not a rank.
 */
static bool batch_script(void)
{
    const char *kind = trib_config_variable("ENVIRONMENT");

    return kind && strcmp(kind, "BATCH") == 0 &&
           !trib_config_variable("SLURM_STEP_ID") &&
           !trib_config_variable("SLURM_STEPID");
}

static bool slurm_here(void)
{
    const char *size = trib_config_variable(size_variable());

    return trib_config_variable("SLURM_PROCID") && size && strcmp(size, "1") != 0 &&
           !batch_script();
}

static trib_status_t slurm_detect(struct trib_launch *out, struct trib_error *err)
{
    trib_status_t status =
        trib_launch_number("SLURM_PROCID", TRIB_LAUNCH_RANKS_MAX - 1, &out->rank, err);

    if (status == TRIB_OK)
        status =
            trib_launch_number(size_variable(), TRIB_LAUNCH_RANKS_MAX, &out->size, err);
    return status;
}

static trib_status_t slurm_meet(const struct trib_boot_opts *opts,
                                struct trib_launch *launch)
{
    const char *variable = trib_config_variable("SLURM_STEP_NODELIST")
                               ? "SLURM_STEP_NODELIST"
                               : "SLURM_JOB_NODELIST";
    const char *list = trib_config_variable(variable);
    const char *step_variable = "SLURM_STEP_ID";
    char host[256];
    int job = 0;
    int step = 0;

    if (!list || !trib_slurm_first_host(list, host, sizeof(host)))
        return trib_fail(
            opts->err, TRIB_ERR_CONFIG,
            "%s=%.80s in the environment contains no first host for the rendezvous: "
            "start them with srun, or set TRIB_ROOT=host:port",
            variable, list ? list : "");
    trib_status_t status = trib_launch_number("SLURM_JOB_ID", INT_MAX, &job, opts->err);
    if (status == TRIB_OK && trib_config_variable(step_variable))
        status = trib_launch_number(step_variable, INT_MAX, &step, opts->err);
    if (status == TRIB_OK)
        snprintf(launch->root, sizeof(launch->root), "%s:%d", host,
                 trib_slurm_port((unsigned)job, (unsigned)step));
    return status;
}

const struct trib_launcher trib_launcher_slurm = {
    .name = "Slurm",
    .detail = "srun: rank 0 listens on the first host of the node list",
    .here = slurm_here,
    .detect = slurm_detect,
    .meet = slurm_meet,
};
