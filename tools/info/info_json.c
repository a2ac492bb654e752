/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>

#include <tributary.h>

#include "tools/info/info_commands.h"

bool info_print_json(const char *name, json_t *list)
{
    return info_print_document(
        json_pack("{s:s,s:o}", "tributary", trib_version(), name, list));
}

bool info_print_document(json_t *document)
{
    char *text = json_dumps(document, JSON_INDENT(2));

    if (text != NULL)
        puts(text);
    const bool printed = text != NULL;
    free(text);
    json_decref(document);
    return printed;
}
