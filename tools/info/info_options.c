/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line of trib-info. */
#include <stdio.h>
#include <string.h>

#include "tools/common/options.h"
#include "tools/info/info_commands.h"

#define AT(field) offsetof(struct info_request, field)
#define BIT(row) (UINT32_C(1) << (row))

static void mark(const struct tool_given *given);

static bool take_switch(const struct tool_given *given, const char *value)
{
    (void)value;
    mark(given);
    return true;
}

static bool take_text(const struct tool_given *given, const char *value)
{
    mark(given);
    return tool_set_text(given, value);
}

static bool take_ranks(const struct tool_given *given, const char *value)
{
    mark(given);
    return tool_set_int(given, value);
}

/* In the order of enum info_row. */
static const struct tool_option options[] = {
    {"topology", NULL, take_switch, .help = "packages, caches, NUMA nodes and cores"},
    {"cpu", NULL, take_switch, .help = "vector instruction sets, detected and used"},
    {"transports", NULL, take_switch,
     .help = "transports, and the devices they find on this host"},
    {"boots", NULL, take_switch, .help = "bootstrap methods"},
    {"algorithms", NULL, take_switch, .help = "algorithms and their collectives"},
    {"codecs", "[CODEC]", take_text, AT(codec),
     .help = "size and guarantees of each codec; with CODEC, all details of that codec",
     .words = "@codecs"},
    {"memory", NULL, take_switch, .help = "memory per peer under the current settings"},
    {"config", NULL, take_switch, .help = "all settings: value, unit, origin, meaning"},
    {"reach", NULL, take_switch,
     .help = "show the transport used between each pair of ranks, and why; run under "
             "trib-run, mpirun, mpiexec or srun"},
    {"topo", NULL, take_switch,
     .help = "tree of cores, caches, NUMA nodes and network devices"},
    {"xml", "FILE", take_text, AT(xml),
     .help = "with --topo or --schedule: use the machine in this lstopo XML file"},
    {"racks", "FILE", take_text, AT(racks),
     .help = "with --topo: add the switches, read from Slurm's topology.conf, "
             "ibnetdiscover output or lines such as \"rack1: host1 host2\""},
    {"format", "NAME", take_text, AT(format),
     .help = "format of the --racks file: slurm, ibnetdiscover or hosts",
     .words = "slurm ibnetdiscover hosts"},
    {"dot", NULL, take_switch, .help = "with --topo or --schedule: print Graphviz DOT"},
    {"schedule", "ALGORITHM", take_text, AT(algorithm),
     .help = "steps of an algorithm for each rank, and the bytes sent over each link",
     .words = "@algorithms"},
    {"per-host", "RANKS", take_ranks, AT(per_host),
     .help = "with --schedule: number of ranks per host", .most = 65536},
    {"leaders", "RANKS", take_ranks, AT(leaders),
     .help = "with --schedule: number of leaders per host, or per group",
     .most = 65536},
    {"groups", "KIND", take_text, AT(groups),
     .help = "with --schedule: group ranks by numa, nic or auto; hosts are assumed to "
             "match this machine or --xml",
     .words = "numa nic auto"},
    {"service", "SERVICES", take_text, AT(service),
     .help =
         "with --schedule: TRIB_SERVICE for algorithm service; hosts are named host0, "
         "host1, …"},
    {"merge-trace", "FILE", take_text, AT(merged),
     .help = "merge the trace files written by ranks under TRIB_TRACE into FILE, for "
             "Perfetto"},
    {"json", NULL, take_switch, .help = "print JSON"},
};

static void mark(const struct tool_given *given)
{
    struct info_request *request = given->args;

    request->given |= BIT(given->option - options);
}

/* Accept one codec after --codecs, or the operands of --schedule and --merge-trace. */
static bool take_word(const struct tool_given *given, const char *value)
{
    struct info_request *request = given->args;

    if (info_given(request, INFO_SCHEDULE) || info_given(request, INFO_MERGE_TRACE)) {
        request->words[request->n_words++] = value;
        return true;
    }
    if (!info_given(request, INFO_CODECS) || request->codec)
        return tool_refuse_word(given, value);
    request->codec = value;
    return true;
}

const struct tool_command info_command = {
    .name = "trib-info",
    .usage =
        "usage: trib-info [OPTION]…\n"
        "       trib-info --topo [--xml FILE] [--racks FILE [--format NAME]] [--dot]\n"
        "       trib-info --schedule ALGORITHM RANKS BYTES [--per-host RANKS]\n"
        "                 [--leaders RANKS] [--groups KIND] [--xml FILE]\n"
        "                 [--service SERVICES] [--dot]\n"
        "       trib-info doctor [--folder FOLDER]\n"
        "       trib-info stacks [PID] [--json]\n"
        "       trib-info top [PID|http://HOST:PORT] [--once] [--json]\n"
        "       trib-info --merge-trace FILE PART…\n"
        "\n"
        "Shows the capabilities of this build of Tributary and this machine: a "
        "summary,\n"
        "or the requested sections. doctor tests what a cluster needs; stacks shows "
        "the\n"
        "current state of each rank of a job; top shows it every second.\n",
    .ending = "example: TRIB_CHUNK=64K trib-info --config\n"
              "exit code: 0 success; 1 failure; 2 wrong arguments",
    .options = options,
    .n_options = sizeof(options) / sizeof(*options),
    .word = take_word,
};

/* Rows that select a mode, and the options valid with them. */
static const struct {
    uint32_t asked;
    uint32_t others;
} modes[] = {
    {BIT(INFO_MERGE_TRACE), 0},
    {BIT(INFO_SCHEDULE), BIT(INFO_XML) | BIT(INFO_DOT) | BIT(INFO_PER_HOST) |
                             BIT(INFO_LEADERS) | BIT(INFO_GROUPS) | BIT(INFO_SERVICE)},
    {BIT(INFO_TOPO),
     BIT(INFO_XML) | BIT(INFO_RACKS) | BIT(INFO_FORMAT) | BIT(INFO_DOT)},
    {BIT(INFO_REACH), BIT(INFO_JSON)},
    {BIT(INFO_SECTIONS) - 1, BIT(INFO_JSON)},
};

enum { MODES = sizeof(modes) / sizeof(*modes) };

static int first_of(uint32_t rows)
{
    return __builtin_ctz(rows);
}

/* Print the options of these rows: " --xml, --dot". */
static void print_rows(uint32_t rows)
{
    const char *comma = "";

    for (; rows; rows &= rows - 1) {
        fprintf(stderr, "%s --%s", comma, options[first_of(rows)].name);
        comma = ",";
    }
}

/* Report an option that needs one of the modes that accept it. */
static bool refuse_alone(int row)
{
    uint32_t of = 0;

    for (int i = 0; i < MODES; i++)
        if (modes[i].others & BIT(row))
            of |= modes[i].asked;
    fprintf(stderr, "trib-info: --%s is valid only with", options[row].name);
    print_rows(of);
    fputs("\n", stderr);
    return false;
}

static bool check(const struct info_request *request)
{
    int mode = 0;

    while (mode < MODES && !(request->given & modes[mode].asked))
        mode++;
    if (mode == MODES)
        return !(request->given & ~BIT(INFO_JSON)) ||
               refuse_alone(first_of(request->given & ~BIT(INFO_JSON)));
    const uint32_t allowed = modes[mode].asked | modes[mode].others;
    if (request->given & ~allowed) {
        fprintf(stderr, "trib-info: --%s cannot be combined with --%s",
                options[first_of(request->given & ~allowed)].name,
                options[first_of(request->given & modes[mode].asked)].name);
        if (modes[mode].others) {
            fputs("; the latter accepts", stderr);
            print_rows(modes[mode].others);
        }
        fputc('\n', stderr);
        return false;
    }
    if (!request->format || request->racks)
        return true;
    fputs("trib-info: --format requires --racks FILE\n", stderr);
    return false;
}

bool info_given(const struct info_request *request, enum info_row row)
{
    return request->given & BIT(row);
}

const char *info_row_name(enum info_row row)
{
    return options[row].name;
}

int info_parse_options(int argc, char **argv, struct info_request *request)
{
    const int code = tool_parse(&info_command, argc, argv, request, stderr);

    return code < 0 && !check(request) ? 2 : code;
}
