/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line of trib-info. */
#include <stdio.h>
#include <string.h>

#include "tools/info_commands.h"
#include "tools/options.h"

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
    {"cpu", NULL, take_switch, .help = "vector instructions, found and used"},
    {"transports", NULL, take_switch,
     .help = "transports, and what they find here now"},
    {"boots", NULL, take_switch, .help = "how ranks meet: bootstrap methods"},
    {"algorithms", NULL, take_switch, .help = "algorithms and their collectives"},
    {"codecs", "[CODEC]", take_text, AT(codec),
     .help =
         "what each codec costs and promises; with a codec behind it, all about this "
         "one",
     .words = "@codecs"},
    {"memory", NULL, take_switch, .help = "what each peer costs, by the settings"},
    {"config", NULL, take_switch,
     .help = "every setting: value, unit, origin, meaning"},
    {"reach", NULL, take_switch,
     .help =
         "by what each rank of a job reaches each, and why: start it under trib-run, "
         "mpirun, mpiexec or srun"},
    {"topo", NULL, take_switch,
     .help = "where cores, caches, NUMA nodes and network devices are, as a tree"},
    {"xml", "FILE", take_text, AT(xml),
     .help = "of --topo and --schedule: a machine that lstopo has written"},
    {"racks", "FILE", take_text, AT(racks),
     .help = "of --topo: the switches, too, by Slurm's topology.conf, ibnetdiscover or "
             "\"rack1: host1 host2\""},
    {"format", "NAME", take_text, AT(format),
     .help = "of --racks: slurm, ibnetdiscover or hosts",
     .words = "slurm ibnetdiscover hosts"},
    {"dot", NULL, take_switch, .help = "of --topo and --schedule: for Graphviz"},
    {"schedule", "ALGORITHM", take_text, AT(algorithm),
     .help = "what each of RANKS does in an algorithm, step by step, and the bytes of "
             "each link",
     .words = "@algorithms"},
    {"per-host", "RANKS", take_ranks, AT(per_host),
     .help = "of --schedule: so many ranks make a host", .most = 65536},
    {"leaders", "RANKS", take_ranks, AT(leaders),
     .help = "so many of each host, or of each group, sum for it", .most = 65536},
    {"groups", "KIND", take_text, AT(groups),
     .help = "numa, nic or auto, the hosts being like this machine or that of --xml",
     .words = "numa nic auto"},
    {"service", "SERVICES", take_text, AT(service),
     .help = "as TRIB_SERVICE, for algorithm service, the hosts being host0, host1, "
             "…"},
    {"merge-trace", "FILE", take_text, AT(merged),
     .help = "one trace of all ranks, for Perfetto, of the files that ranks write with "
             "TRIB_TRACE"},
    {"json", NULL, take_switch, .help = "the same as json"},
};

static void mark(const struct tool_given *given)
{
    struct info_request *request = given->args;

    request->given |= BIT(given->option - options);
}

/* A codec may stand behind --codecs as a word; --schedule and --merge-trace have
 * more. */
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
        "Shows what this build of Tributary and this machine can do: a summary, or\n"
        "the parts asked for. The doctor tests what a cluster needs; stacks says\n"
        "what each rank of a job does now, and top does so each second.\n",
    .ending = "example: TRIB_CHUNK=64K trib-info --config\n"
              "exit code: 0 done; 1 failed; 2 wrong arguments",
    .options = options,
    .n_options = sizeof(options) / sizeof(*options),
    .word = take_word,
};

/* The rows that ask for something, and the options that go with them. */
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

/* " --xml, --dot", of these rows. */
static void print_rows(uint32_t rows)
{
    const char *comma = "";

    for (; rows; rows &= rows - 1) {
        fprintf(stderr, "%s --%s", comma, options[first_of(rows)].name);
        comma = ",";
    }
}

/* The rows that have the option among their others. */
static bool refuse_alone(int row)
{
    uint32_t of = 0;

    for (int i = 0; i < MODES; i++)
        if (modes[i].others & BIT(row))
            of |= modes[i].asked;
    fprintf(stderr, "trib-info: --%s is for", options[row].name);
    print_rows(of);
    fputs("; add it\n", stderr);
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
        fprintf(stderr, "trib-info: --%s does not go with --%s",
                options[first_of(request->given & ~allowed)].name,
                options[first_of(request->given & modes[mode].asked)].name);
        if (modes[mode].others) {
            fputs(", which has", stderr);
            print_rows(modes[mode].others);
        }
        fputc('\n', stderr);
        return false;
    }
    if (!request->format || request->racks)
        return true;
    fputs("trib-info: --format is that of --racks; add --racks FILE\n", stderr);
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
