/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Description of the machine, for json.
 */
#include "perf/common/machine_json.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <tributary.h>

/* Copy the first "model name" of /proc/cpuinfo, or "unknown". */
static void cpu_model(char *model, size_t bytes)
{
    char line[256];
    snprintf(model, bytes, "unknown");
    FILE *f = fopen("/proc/cpuinfo", "r");
    if (f == NULL)
        return;
    while (fgets(line, sizeof(line), f) != NULL) {
        char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || colon == NULL)
            continue;
        line[strcspn(line, "\n")] = '\0';
        snprintf(model, bytes, "%s", colon + 1 + strspn(colon + 1, " "));
        break;
    }
    fclose(f);
}

static int allowed_cores(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 0;
}

/* Cores of this process before ranks are bound; 0: not recorded. */
static int noted_cores;

void perf_machine_note(void)
{
    noted_cores = allowed_cores();
}

json_t *perf_machine_json(void)
{
    char model[128];
    struct utsname name;
    if (uname(&name) != 0)
        return json_object();
    cpu_model(model, sizeof(model));
    json_int_t memory = (json_int_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
    return json_pack("{s:s, s:s, s:i, s:i, s:I, s:s, s:s, s:s}", "host", name.nodename,
                     "cpu", model, "cores", (int)sysconf(_SC_NPROCESSORS_ONLN),
                     "cores_allowed", noted_cores > 0 ? noted_cores : allowed_cores(),
                     "memory_bytes", memory, "kernel", name.release, "architecture",
                     name.machine, "compiler", __VERSION__);
}

static void add_setting(void *arg, const trib_item_t *item)
{
    json_t *settings = arg;
    if (strcmp(item->origin, "default") == 0)
        return;
    json_object_set_new(settings, item->name,
                        json_pack("{s:s, s:s, s:s}", "value", item->value, "unit",
                                  item->unit, "origin", item->origin));
}

json_t *perf_settings_json(void)
{
    json_t *settings = json_object();
    if (settings != NULL)
        trib_list_each(TRIB_LIST_CONFIG, add_setting, settings);
    return settings;
}
