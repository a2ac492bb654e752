/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/common/setting_values.h"

#include <stdio.h>
#include <string.h>

#include <tributary.h>

struct setting {
    const char *name;
    char *value;
    size_t bytes;
    bool changed; /* set by file, environment or API */
};

static void read_setting(void *arg, const trib_item_t *item)
{
    struct setting *s = arg;
    if (strcmp(item->name, s->name) != 0)
        return;
    snprintf(s->value, s->bytes, "%s", item->value);
    s->changed = strcmp(item->origin, "default") != 0 && item->value[0] != '\0';
}

bool tool_setting(const char *name, char *value, size_t bytes)
{
    struct setting s = {.name = name, .value = value, .bytes = bytes};
    /* trib_init reports other settings that are wrong. */
    (void)trib_list_each(TRIB_LIST_CONFIG, read_setting, &s);
    return s.changed;
}
