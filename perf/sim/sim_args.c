/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The command line of trib-sim.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "perf/sim/sim.h"

enum kind {
    TEXT,
    SIZE,
    RANKS,
    BITS,
    BYTES,
    TIME,
    TIMES,
    LATE,
    SLOW,
    SLOW_LINK,
    PART,
    FLAG
};

struct option {
    const char *name;
    const char *value;
    enum kind kind;
    size_t at;
    const char *help;
};

#define AT(field) offsetof(struct sim_args, field)

static const struct option options[] = {
    {"--algorithm", "NAME", TEXT, AT(algorithm),
     "of trib-info --algorithms, or auto [ring]"},
    {"--codec", "TEXT", TEXT, AT(codec), "of trib-info --codecs [none]"},
    {"--bytes", "SIZE", SIZE, AT(bytes), "of the vector, of f32 [25000000]"},
    {"--ranks", "LIST", RANKS, AT(ranks), "2,8 or from:to:factor, up to 4096 [2:64:2]"},
    {"--per-host", "N", SIZE, AT(per_host), "ranks of a host [1]"},
    {"--leaders", "N", SIZE, AT(leaders),
     "of a host, in algorithm hierarchical; 0: as the library chooses [0]"},
    {"--aggregators", "N", SIZE, AT(aggregators),
     "that sum in algorithm service, each on a host of its own [4]"},
    {"--rack", "N", SIZE, AT(rack),
     "ranks that have an aggregator of their own below these; 0: none [0]"},
    {"--chunk", "SIZE", SIZE, AT(chunk), "TRIB_CHUNK [0: as plans between hosts]"},
    {"--window", "N", SIZE, AT(window), "TRIB_WINDOW [8]"},
    {"--topology", "TEXT", TEXT, AT(topology),
     "star; fat-tree:HOSTS, of a leaf switch; dragonfly:CHASSIS,ROUTERS,HOSTS of a "
     "group, a chassis, a router [star]"},
    {"--rate", "RATE", BITS, AT(rate),
     "of each link, each way: 100mbit, 10gbit [1gbit]"},
    {"--latency", "TIME", TIME, AT(latency_s),
     "of a link; two are between hosts of a switch [5us]"},
    {"--oversubscribed", "X", TIMES, AT(oversubscribed),
     "hosts of a leaf switch for each of its links upwards [1]"},
    {"--mtu", "SIZE", SIZE, AT(mtu), "of Ethernet; 0: no headers of TCP [1500]"},
    {"--crowding", "X", PART, AT(crowding),
     "bytes take longer by X (k - 1) / (k + 1) where k connections share the links at "
     "both ends [0.2]"},
    {"--message-time", "TIME", TIME, AT(rates.message_s),
     "of a processor for a message, at each end [10us]"},
    {"--wake-time", "TIME", TIME, AT(rates.wake_s),
     "until a rank that had nothing to do runs again [0us]"},
    {"--copy-rate", "RATE", BYTES, AT(rates.copy_Bps),
     "GB/s through the kernel, at each end [2]"},
    {"--sum-rate", "RATE", BYTES, AT(rates.sum_Bps), "GB/s of contributions [8]"},
    {"--encode-rate", "RATE", BYTES, AT(rates.encode_Bps), "GB/s of elements [1.5]"},
    {"--decode-rate", "RATE", BYTES, AT(rates.decode_Bps), "GB/s of elements [4]"},
    {"--cores", "N", SIZE, AT(cores),
     "that all ranks share, as name spaces of one machine; 0: each has one [0]"},
    {"--late", "RANK:TIME", LATE, 0, "this rank starts late"},
    {"--slow", "RANK:X", SLOW, 0, "this rank's processor takes X times as long"},
    {"--slow-link", "HOST:X", SLOW_LINK, 0,
     "this host's link of a star has its rate divided by X"},
    {"--choose", "", FLAG, AT(choose),
     "say what auto would choose on this network, and replay nothing"},
    {"--messages", "N", SIZE, AT(messages),
     "replay at most so many; 0: all. Beyond it rounds become fewer, of larger chunks; "
     "where that is not enough the rest goes on at the pace so far [4000000]"},
    {"--csv", "FILE", TEXT, AT(csv), "one row a number of ranks; - is standard output"},
    {"--json", "FILE", TEXT, AT(json), "likewise"},
};

enum { N_OPTIONS = sizeof(options) / sizeof(options[0]) };

static void print_help(void)
{
    puts(
        "usage: trib-sim [OPTION]…\n"
        "\n"
        "Replays the schedules of an all-reduce on a simulated network (SimGrid): how\n"
        "long it takes, and what each link, each rank's memory and its connections\n"
        "bear, for numbers of ranks that no machine at hand has. docs/scaling.md says\n"
        "what is modelled and what is not.\n");
    for (size_t i = 0; i < N_OPTIONS; i++)
        printf("  %-16s %-9s  %s\n", options[i].name, options[i].value,
               options[i].help);
    puts("  --help\n"
         "\n"
         "example: trib-sim --ranks 2:1024:2 --codec int8 --topology fat-tree:32 "
         "--oversubscribed 4\n"
         "exit code: 0 done; 1 a replay failed; 2 wrong arguments");
}

static bool read_number(const char *text, const char *unit, double *out)
{
    char *end;

    *out = strtod(text, &end);
    return end != text && strcmp(end, unit) == 0 && isfinite(*out) && *out > 0;
}

static bool read_bits(const char *text, double *out)
{
    static const struct {
        const char *unit;
        double bits;
    } units[] = {{"mbit", 1e6}, {"gbit", 1e9}};

    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
        if (read_number(text, units[i].unit, out)) {
            *out *= units[i].bits / 8;
            return true;
        }
    return false;
}

/* "5:20ms", "5:10". */
static bool read_rank(const char *text, enum kind kind, long *rank, double *out)
{
    char *end;

    *rank = strtol(text, &end, 10);
    if (end == text || *end != ':' || *rank < 0)
        return false;
    return kind == LATE ? perf_time_parse(end + 1, out) : read_number(end + 1, "", out);
}

static bool set(struct sim_args *args, const struct option *o, const char *text)
{
    void *at = (char *)args + o->at;
    char why[SIM_WHY];

    switch (o->kind) {
    case TEXT:
        *(const char **)at = text;
        return true;
    case SIZE:
        return perf_size_parse(text, at);
    case RANKS:
        perf_sizes_free(&args->ranks);
        return perf_sizes_parse(text, &args->ranks, why, sizeof(why));
    case BITS:
        return read_bits(text, at);
    case TIME:
        return perf_time_parse(text, at);
    case TIMES:
        return read_number(text, "", at);
    case BYTES:
        if (!read_number(text, "", at))
            return false;
        *(double *)at *= 1e9;
        return true;
    case LATE:
        return read_rank(text, LATE, &args->late_rank, &args->late_s);
    case SLOW:
        return read_rank(text, SLOW, &args->slow_rank, &args->slow_by);
    case SLOW_LINK:
        return read_rank(text, SLOW, &args->slow_host, &args->slow_link_by);
    case PART:
        return strcmp(text, "0") == 0 ? (*(double *)at = 0, true)
                                      : read_number(text, "", at);
    case FLAG:
        break;
    }
    return false;
}

static const char *wrong(const struct sim_args *args)
{
    for (size_t i = 0; i < args->ranks.n; i++)
        if (args->ranks.bytes[i] < 1 || args->ranks.bytes[i] > SIM_RANKS_MOST)
            return "--ranks: 1 to 4096";
    if (args->bytes < sizeof(float) || args->bytes % sizeof(float))
        return "--bytes: a whole number of f32, at least one";
    if (args->per_host < 1 || args->per_host > SIM_RANKS_MOST)
        return "--per-host: 1 to 4096";
    if (args->aggregators < 1 || args->aggregators > 256)
        return "--aggregators: 1 to 256";
    if (args->rack > SIM_RANKS_MOST || args->leaders > SIM_RANKS_MOST)
        return "--rack, --leaders: at most 4096";
    if (args->window < 1 || args->window > 256)
        return "--window: 1 to 256";
    if (args->chunk && (args->chunk < 64 || args->chunk > 16 << 20))
        return "--chunk: 64 bytes to 16M";
    if (args->mtu && (args->mtu < 576 || args->mtu > 65536))
        return "--mtu: 0, or 576 to 65536";
    if (args->slow_host >= 0 && strcmp(args->topology, "star") != 0)
        return "--slow-link: the hosts of a star alone have links of their own";
    if (args->oversubscribed > 1 && strncmp(args->topology, "fat-tree", 8) != 0)
        return "--oversubscribed: a fat-tree has uplinks, no other topology";
    return NULL;
}

static void defaults(struct sim_args *args)
{
    static const struct sim_rates rates = {.message_s = 10e-6,
                                           .copy_Bps = 2e9,
                                           .sum_Bps = 8e9,
                                           .encode_Bps = 1.5e9,
                                           .decode_Bps = 4e9,
                                           .near_Bps = 4e9,
                                           .near_s = 1e-6};

    *args = (struct sim_args){.algorithm = "ring",
                              .codec = "none",
                              .bytes = 25000000,
                              .per_host = 1,
                              .aggregators = 4,
                              .window = 8,
                              .topology = "star",
                              .rate = 125e6,
                              .latency_s = 5e-6,
                              .oversubscribed = 1,
                              .mtu = 1500,
                              .crowding = 0.2,
                              .rates = rates,
                              .late_rank = -1,
                              .slow_rank = -1,
                              .slow_host = -1,
                              .slow_link_by = 1,
                              .messages = 4000000};
}

int sim_args_parse(int argc, char **argv, FILE *err, struct sim_args *out)
{
    char why[SIM_WHY];

    defaults(out);
    (void)perf_sizes_parse("2:64:2", &out->ranks, why, sizeof(why));
    for (int i = 1; i < argc; i++) {
        size_t o = 0;

        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            print_help();
            return -1;
        }
        while (o < N_OPTIONS && strcmp(options[o].name, argv[i]) != 0)
            o++;
        if (o == N_OPTIONS) {
            fprintf(err, "trib-sim: there is no option '%s'; --help lists them.\n",
                    argv[i]);
            return 2;
        }
        if (options[o].kind == FLAG) {
            *(bool *)((char *)out + options[o].at) = true;
            continue;
        }
        if (++i == argc || !set(out, &options[o], argv[i])) {
            fprintf(err, "trib-sim: %s wants %s, not '%s': %s.\n", options[o].name,
                    options[o].value, i < argc ? argv[i] : "", options[o].help);
            return 2;
        }
    }
    const char *text = wrong(out);
    if (!text)
        return 0;
    fprintf(err, "trib-sim: %s.\n", text);
    return 2;
}
