/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trib-info - what this build of Tributary and this machine can do.
 */
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tributary.h>

#include "tools/info_commands.h"
#include "tools/tool.h"

struct section {
    trib_list_t list;
    const char *option; /* "--codecs" */
    const char *title;
    enum { FULL, BRIEF, NONE } summary; /* in the output without options */
    const char *help;
};

static const struct section sections[] = {
    {TRIB_LIST_TOPOLOGY, "--topology", "machine", FULL,
     "packages, caches, NUMA nodes and cores"},
    {TRIB_LIST_CPU, "--cpu", "processor", FULL, "vector instructions, found and used"},
    {TRIB_LIST_TRANSPORTS, "--transports", "transports", FULL,
     "and what they find here now"},
    {TRIB_LIST_BOOTS, "--boots", "how ranks meet", FULL, "bootstrap methods"},
    {TRIB_LIST_ALGORITHMS, "--algorithms", "algorithms", BRIEF,
     "and their collectives"},
    {TRIB_LIST_CODECS, "--codecs", "codecs", BRIEF,
     "what each costs and promises; with a codec behind it, all about this one"},
    {TRIB_LIST_MEMORY, "--memory", "memory", FULL,
     "what each peer costs, by the settings"},
    {TRIB_LIST_CONFIG, "--config", "settings", NONE,
     "every setting: value, unit, origin, meaning"},
};

#define VALUE_BYTES 320 /* of a value with its unit */

#define N_SECTIONS (sizeof(sections) / sizeof(sections[0]))

static void print_help(void)
{
    puts("usage: trib-info [OPTION]…\n"
         "       trib-info --topo [--xml FILE] [--racks FILE [--format NAME]] [--dot]\n"
         "       trib-info --schedule ALGORITHM RANKS BYTES [--per-host RANKS] "
         "[--leaders RANKS]\n"
         "                 [--groups KIND] [--xml FILE] [--service SERVICES] [--dot]\n"
         "       trib-info doctor [--folder FOLDER]\n"
         "       trib-info --merge-trace FILE PART…\n"
         "\n"
         "Shows what this build of Tributary and this machine can do: a summary, or\n"
         "the parts asked for. The doctor tests what a cluster needs.\n");
    for (size_t i = 0; i < N_SECTIONS; i++)
        printf("  %-13s %s: %s\n", sections[i].option, sections[i].title,
               sections[i].help);
    puts(
        "  --reach       by what each rank of a job reaches each, and why: start it "
        "under\n"
        "                trib-run, mpirun, mpiexec or srun\n"
        "  --topo        where cores, caches, NUMA nodes and network devices are, as a "
        "tree;\n"
        "                with --xml FILE those of a machine that lstopo has written, "
        "with\n"
        "                --racks FILE the switches, too (Slurm's topology.conf, "
        "ibnetdiscover, or\n"
        "                \"rack1: host1 host2\"; --format names it), with --dot for "
        "Graphviz\n"
        "  --schedule    what each of so many ranks does in an algorithm, step by "
        "step, and the bytes\n"
        "                of each link; --per-host RANKS makes hosts, --leaders RANKS "
        "of each sum\n"
        "                for it, or of each group: --groups numa, nic or auto, the "
        "hosts being like\n"
        "                this machine or that of --xml FILE; --service SERVICES, as "
        "TRIB_SERVICE, for algorithm service, the\n"
        "                hosts being host0, host1, …; with --dot for Graphviz\n"
        "  --merge-trace one trace of all ranks, for Perfetto, of the files that "
        "ranks write with\n"
        "                TRIB_TRACE\n"
        "  --json        the same as json\n"
        "  --help, --version\n"
        "\n"
        "example: TRIB_CHUNK=64K trib-info --config\n"
        "exit code: 0 done; 1 failed; 2 wrong arguments");
}

/* --- text --- */

/* Columns are as wide as their longest text, found in a pass of their own. */
struct columns {
    int name;
    int value; /* 0: values are left out */
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

/* If both do not fit into a line, the detail goes below. */
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

/* A setting that cannot be used has a mark, and the reason below. */
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
    for (size_t i = 0; i < N_SECTIONS; i++) {
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

/* "--how-ranks" would be no key: the option without its dashes is. */
static trib_status_t add_section(json_t *all, const struct section *section,
                                 const char *codec)
{
    json_t *list = json_array();
    trib_status_t status = section->list == TRIB_LIST_CODECS
                               ? info_codecs_json(list, codec)
                               : trib_list_each(section->list, add_item, list);
    json_object_set_new(all, section->option + 2, list);
    return status;
}

/* --- the whole --- */

struct request {
    bool json;
    bool reach; /* and nothing else */
    bool any;
    bool wanted[N_SECTIONS];
    const char *codec; /* NULL: all of them */
};

static trib_status_t show_text(const struct request *request)
{
    trib_status_t status = TRIB_OK;
    if (!request->any)
        return print_summary();
    for (size_t i = 0; i < N_SECTIONS; i++) {
        trib_status_t one = request->wanted[i]
                                ? print_section(&sections[i], false, request->codec)
                                : TRIB_OK;
        status = status == TRIB_OK ? one : status;
    }
    return status;
}

static trib_status_t show_json(const struct request *request)
{
    trib_status_t status = TRIB_OK;
    json_t *all = json_pack("{s:s}", "tributary", trib_version());
    for (size_t i = 0; i < N_SECTIONS; i++) {
        bool wanted = request->wanted[i] || !request->any;
        trib_status_t one =
            wanted ? add_section(all, &sections[i], request->codec) : TRIB_OK;
        status = status == TRIB_OK ? one : status;
    }
    char *text = json_dumps(all, JSON_INDENT(2)); /* whole, with what is wrong in it */
    if (text != NULL)
        puts(text);
    else if (status == TRIB_OK)
        status = TRIB_ERR_NO_MEMORY;
    free(text);
    json_decref(all);
    return status;
}

static size_t find_section(const char *option)
{
    size_t i = 0;
    while (i < N_SECTIONS && strcmp(sections[i].option, option) != 0)
        i++;
    return i;
}

/* The section that begins the same for more than half of the word: enough for seven. */
static const char *nearest_option(const char *text)
{
    const char *nearest = NULL;
    size_t most = 2 + strlen(text) / 2; /* the dashes do not count */
    for (size_t i = 0; i < N_SECTIONS; i++) {
        size_t same = 0;
        while (text[same] != '\0' && text[same] == sections[i].option[same])
            same++;
        if (same >= most) {
            most = same + 1;
            nearest = sections[i].option;
        }
    }
    return nearest;
}

static int refuse(const char *text)
{
    const char *nearest = nearest_option(text);
    fprintf(stderr, "trib-info: there is no option '%s'", text);
    if (nearest != NULL)
        fprintf(stderr, "; did you mean %s?", nearest);
    fputs(nearest != NULL ? "\n" : "; trib-info --help lists them.\n", stderr);
    return 2;
}

static int info_main(int argc, char **argv)
{
    struct request request = {0};
    tool_signals(); /* limits stay as they are: the doctor shows what ranks will have */
    if (argc > 1 && strcmp(argv[1], "doctor") == 0)
        return info_doctor(argc - 1, argv + 1);
    if (argc > 1 && strcmp(argv[1], "--merge-trace") == 0)
        return info_merge_trace(argc - 2, argv + 2);
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--schedule") == 0)
            return info_schedule(argc, argv);
    for (int i = 1; i < argc; i++)
        if (info_is_topo(argv[i]))
            return info_topo(argc, argv);
    for (int i = 1; i < argc; i++) {
        size_t section = find_section(argv[i]);
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            print_help();
            return 0;
        } else if (strcmp(argv[i], "--version") == 0) {
            printf("trib-info %s\n", trib_version());
            return 0;
        } else if (strcmp(argv[i], "--json") == 0) {
            request.json = true;
        } else if (strcmp(argv[i], "--reach") == 0) {
            request.reach = true;
        } else if (section < N_SECTIONS) {
            request.any = request.wanted[section] = true;
            if (sections[section].list == TRIB_LIST_CODECS && i + 1 < argc &&
                argv[i + 1][0] != '-')
                request.codec = argv[++i];
        } else {
            return refuse(argv[i]);
        }
    }
    if (request.reach)
        return info_reach(request.json);
    trib_status_t status = request.json ? show_json(&request) : show_text(&request);
    if (status != TRIB_OK) {
        const char *why = trib_last_error(NULL);
        fflush(stdout); /* or its last lines come behind, where both go to one file */
        fprintf(stderr, "trib-info: %s\n",
                why[0] != '\0' ? why : trib_status_str(status));
        return request.codec != NULL && status == TRIB_ERR_CODEC ? 2 : 1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    tool_begin();
    return tool_end("trib-info", info_main(argc, argv));
}
