/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trib-info - show the capabilities of this build of Tributary and this machine.
 */
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tributary.h>

#include "tools/common/tool.h"
#include "tools/common/tool_table.h"
#include "tools/info/info_commands.h"

struct section {
    trib_list_t list;
    const char *title;
    enum { FULL, BRIEF, NONE } summary; /* shown in the summary, without options */
};

/* By enum info_row. */
static const struct section sections[INFO_SECTIONS] = {
    [INFO_TOPOLOGY] = {TRIB_LIST_TOPOLOGY, "machine", FULL},
    [INFO_CPU] = {TRIB_LIST_CPU, "processor", FULL},
    [INFO_TRANSPORTS] = {TRIB_LIST_TRANSPORTS, "transports", FULL},
    [INFO_BOOTS] = {TRIB_LIST_BOOTS, "bootstrap methods", FULL},
    [INFO_ALGORITHMS] = {TRIB_LIST_ALGORITHMS, "algorithms", BRIEF},
    [INFO_CODECS] = {TRIB_LIST_CODECS, "codecs", BRIEF},
    [INFO_MEMORY] = {TRIB_LIST_MEMORY, "memory", FULL},
    [INFO_CONFIG] = {TRIB_LIST_CONFIG, "settings", NONE},
};

#define VALUE_BYTES 1056 /* for a value, such as a list of devices, with its unit */

/* --- text --- */

/* Column widths: the longest text of each, found in a separate pass. */
struct columns {
    int name;
    int value; /* 0: values are omitted */
};

static void widen(int *column, const char *text)
{
    int width = (int)strlen(text) + 2;
    if (width > *column)
        *column = width;
}

/* "32 KiB" */
static const char *value_text(const trib_item_t *item, char text[VALUE_BYTES])
{
    snprintf(text, VALUE_BYTES, "%s%s%s", item->value, item->unit[0] != '\0' ? " " : "",
             item->unit);
    return text;
}

static void measure_item(void *arg, const trib_item_t *item)
{
    struct columns *columns = arg;
    char value[VALUE_BYTES];
    widen(&columns->name, item->name);
    if (item->value[0] != '\0')
        widen(&columns->value, value_text(item, value));
}

/* If value and detail do not fit on one line, print the detail on the next. */
#define WIDEST_VALUE 32

static void print_item(void *arg, const trib_item_t *item)
{
    const struct columns *columns = arg;
    char text[VALUE_BYTES];
    const char *detail = item->fault[0] != '\0' ? item->fault : item->detail;
    const char *value = columns->value > 0 ? value_text(item, text) : "";
    if (item->value[0] == '\0' && detail[0] == '\0')
        printf("  %s\n", item->name);
    else if (detail[0] == '\0')
        printf("  %-*s%s\n", columns->name, item->name, value);
    else if (value[0] == '\0' && columns->value > WIDEST_VALUE)
        printf("  %-*s%s\n", columns->name, item->name, detail);
    else if (columns->value <= WIDEST_VALUE)
        printf("  %-*s%-*s%s\n", columns->name, item->name, columns->value, value,
               detail);
    else
        printf("  %-*s%s\n  %*s%s\n", columns->name, item->name, value, columns->name,
               "", detail);
}

/* Mark an invalid setting, and print the reason on the next line. */
static void print_setting(void *arg, const trib_item_t *item)
{
    char value[VALUE_BYTES];
    bool wrong = item->fault[0] != '\0';
    (void)arg;
    printf("%c %-22s%-18s %-12s %s\n", wrong ? '!' : ' ', item->name,
           item->value[0] != '\0' ? value_text(item, value) : "-", item->origin,
           item->detail);
    if (wrong)
        printf("!   %s\n", item->fault);
}

static void print_changed(void *arg, const trib_item_t *item)
{
    int *changed = arg;
    if (strcmp(item->origin, "default") == 0)
        return;
    if ((*changed)++ == 0)
        puts("settings that are not the default");
    print_setting(NULL, item);
}

static trib_status_t print_section(const struct section *section, bool brief,
                                   const char *codec)
{
    struct columns columns = {0, 0};
    if (section->list == TRIB_LIST_CODECS && !brief)
        return info_codecs(section->title, codec);
    puts(section->title);
    if (section->list == TRIB_LIST_CONFIG) {
        printf("  %-22s%-18s %-12s %s\n", "name", "value", "origin", "meaning");
        return trib_list_each(section->list, print_setting, NULL);
    }
    trib_status_t status = trib_list_each(section->list, measure_item, &columns);
    if (brief)
        columns.value = 0;
    return status == TRIB_OK ? trib_list_each(section->list, print_item, &columns)
                             : status;
}

static trib_status_t print_summary(void)
{
    int changed = 0;
    printf("tributary %s\n", trib_version());
    for (size_t i = 0; i < INFO_SECTIONS; i++) {
        if (sections[i].summary == NONE)
            continue;
        trib_status_t status =
            print_section(&sections[i], sections[i].summary == BRIEF, NULL);
        if (status != TRIB_OK)
            return status;
    }
    trib_status_t status = trib_list_each(TRIB_LIST_CONFIG, print_changed, &changed);
    if (status == TRIB_OK && changed == 0)
        puts("settings: all default; trib-info --config lists them");
    return status;
}

/* --- json --- */

static void add_item(void *arg, const trib_item_t *item)
{
    json_t *list = arg;
    json_t *o = json_object();
    const struct {
        const char *key;
        const char *text;
    } fields[] = {
        {"name", item->name},     {"value", item->value}, {"detail", item->detail},
        {"origin", item->origin}, {"unit", item->unit},   {"fault", item->fault},
    };
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        if (i < 2 || fields[i].text[0] != '\0')
            json_object_set_new(o, fields[i].key, json_string(fields[i].text));
    }
    json_array_append_new(list, o);
}

static trib_status_t add_section(json_t *all, enum info_row row, const char *codec)
{
    json_t *list = json_array();
    trib_status_t status = row == INFO_CODECS
                               ? info_codecs_json(list, codec)
                               : trib_list_each(sections[row].list, add_item, list);
    json_object_set_new(all, info_row_name(row), list);
    return status;
}

/* --- the whole --- */

/* Return true if a section is requested, not only the summary. */
static bool asks_parts(const struct info_request *request)
{
    bool asked = false;

    for (int i = 0; i < INFO_SECTIONS; i++)
        asked = asked || info_given(request, (enum info_row)i);
    return asked;
}

static trib_status_t show_text(const struct info_request *request)
{
    trib_status_t status = TRIB_OK;
    tool_fold_stdout();
    if (!asks_parts(request))
        return print_summary();
    for (int i = 0; i < INFO_SECTIONS; i++) {
        trib_status_t one = info_given(request, (enum info_row)i)
                                ? print_section(&sections[i], false, request->codec)
                                : TRIB_OK;
        status = status == TRIB_OK ? one : status;
    }
    return status;
}

static trib_status_t show_json(const struct info_request *request)
{
    trib_status_t status = TRIB_OK;
    json_t *all = json_pack("{s:s}", "tributary", trib_version());
    const bool parts = asks_parts(request);
    for (int i = 0; i < INFO_SECTIONS; i++) {
        const enum info_row row = (enum info_row)i;
        trib_status_t one = !parts || info_given(request, row)
                                ? add_section(all, row, request->codec)
                                : TRIB_OK;
        status = status == TRIB_OK ? one : status;
    }
    /* Print all sections, even if one failed. */
    return info_print_document(all) || status != TRIB_OK ? status : TRIB_ERR_NO_MEMORY;
}

static int show(const struct info_request *request)
{
    if (info_given(request, INFO_MERGE_TRACE))
        return info_merge_trace(request);
    if (info_given(request, INFO_SCHEDULE))
        return info_schedule(request);
    if (info_given(request, INFO_TOPO))
        return info_topo(request);
    if (info_given(request, INFO_REACH))
        return info_reach(info_given(request, INFO_JSON));
    trib_status_t status =
        info_given(request, INFO_JSON) ? show_json(request) : show_text(request);
    if (status == TRIB_OK)
        return 0;
    const char *why = trib_last_error(NULL);
    fflush(stdout); /* else its last lines follow the message if both go to one file */
    fprintf(stderr, "trib-info: %s\n", why[0] != '\0' ? why : trib_status_str(status));
    return request->codec != NULL && status == TRIB_ERR_CODEC ? 2 : 1;
}

static int info_main(int argc, char **argv)
{
    static const struct tool_command *const commands[] = {
        &info_command, &info_doctor_command, &info_stacks_command, &info_top_command,
        NULL};
    struct info_request request = {.words = calloc((size_t)argc + 1, sizeof(char *))};
    int code = tool_completion(argc, argv, commands);

    tool_signals(); /* limits are not raised: the doctor shows what ranks will get */
    if (request.words == NULL) {
        fputs("trib-info: out of memory\n", stderr);
        return 1;
    }
    if (code < 0 && argc > 1 && strcmp(argv[1], "doctor") == 0)
        code = info_doctor(argc - 1, argv + 1);
    if (code < 0 && argc > 1 && strcmp(argv[1], "stacks") == 0)
        code = info_stacks(argc - 1, argv + 1);
    if (code < 0 && argc > 1 && strcmp(argv[1], "top") == 0)
        code = info_top(argc - 1, argv + 1);
    if (code < 0)
        code = info_parse_options(argc, argv, &request);
    if (code < 0)
        code = show(&request);
    free(request.words);
    return code;
}

int main(int argc, char **argv)
{
    tool_begin();
    return tool_end("trib-info", info_main(argc, argv));
}
