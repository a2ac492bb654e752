/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The command line of trib-sim.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "perf/common/setters.h"
#include "perf/sim/sim.h"

static bool read_number(const char *text, const char *unit, double *out)
{
    char *end;

    *out = strtod(text, &end);
    return end != text && strcmp(end, unit) == 0 && isfinite(*out) && *out > 0;
}

static bool refuse(const struct tool_given *given, const char *value)
{
    return tool_refuse(given, value, "is not %s: %s", given->option->value,
                       given->option->help);
}

static bool set_size(const struct tool_given *given, const char *value)
{
    return perf_size_parse(value, tool_target(given)) || refuse(given, value);
}

static bool set_time(const struct tool_given *given, const char *value)
{
    return perf_time_parse(value, tool_target(given)) || refuse(given, value);
}

static bool set_times(const struct tool_given *given, const char *value)
{
    return read_number(value, "", tool_target(given)) || refuse(given, value);
}

static bool set_part(const struct tool_given *given, const char *value)
{
    double *part = tool_target(given);

    *part = 0;
    return strcmp(value, "0") == 0 || set_times(given, value);
}

static bool set_gigabytes(const struct tool_given *given, const char *value)
{
    const bool good = set_times(given, value);

    *(double *)tool_target(given) *= 1e9;
    return good;
}

static bool set_bits(const struct tool_given *given, const char *value)
{
    double *rate = tool_target(given);
    const bool mega = read_number(value, "mbit", rate);

    if (!mega && !read_number(value, "gbit", rate))
        return refuse(given, value);
    *rate *= (mega ? 1e6 : 1e9) / 8;
    return true;
}

/* Parse "5:10", the number of a rank or host and a factor. Return the factor's text;
 * NULL if there is no number >= 0 and colon. */
static const char *behind_rank(const char *text, long *rank)
{
    char *end;

    *rank = strtol(text, &end, 10);
    return end == text || *end != ':' || *rank < 0 ? NULL : end + 1;
}

static bool set_late(const struct tool_given *given, const char *value)
{
    struct sim_args *args = given->args;
    const char *time = behind_rank(value, &args->late_rank);

    return (time && perf_time_parse(time, &args->late_s)) || refuse(given, value);
}

static bool set_slow(const struct tool_given *given, const char *value)
{
    struct sim_args *args = given->args;
    const char *times = behind_rank(value, &args->slow_rank);

    return (times && read_number(times, "", &args->slow_by)) || refuse(given, value);
}

static bool set_slow_link(const struct tool_given *given, const char *value)
{
    struct sim_args *args = given->args;
    const char *times = behind_rank(value, &args->slow_host);

    return (times && read_number(times, "", &args->slow_link_by)) ||
           refuse(given, value);
}

#define AT(field) offsetof(struct sim_args, field)

enum { REPLAY = 1 }; /* options that have no effect with --choose */

static const char *const modes[] = {"trib-sim", "trib-sim --choose", NULL};

static const struct tool_option options[] = {
    {"algorithm", "NAME", tool_set_text, AT(algorithm),
     .help = "one of trib-info --algorithms, or auto [ring]", .words = "@algorithms",
     .of = REPLAY},
    {"codec", "TEXT", tool_set_text, AT(codec),
     .help = "one of trib-info --codecs "
             "[none]",
     .words = "@codecs"},
    {"bytes", "SIZE", set_size, AT(bytes),
     .help = "bytes of the f32 vector "
             "[25000000]"},
    {"ranks", "LIST", perf_set_sizes, AT(ranks),
     .help = "2,8 or from:to:factor, up to 4096 [2:64:2]"},
    {"per-host", "N", set_size, AT(per_host), .help = "ranks per host [1]"},
    {"leaders", "N", set_size, AT(leaders),
     .help = "leaders per host with algorithm hierarchical; 0: as the library "
             "chooses [0]"},
    {"aggregators", "N", set_size, AT(aggregators),
     .help = "aggregators with algorithm service, each on its own host [4]",
     .of = REPLAY},
    {"rack", "N", set_size, AT(rack),
     .help = "ranks per leaf aggregator; 0: no leaf aggregators [0]", .of = REPLAY},
    {"chunk", "SIZE", set_size, AT(chunk),
     .help = "TRIB_CHUNK [0: as in plans between hosts]"},
    {"window", "N", set_size, AT(window), .help = "TRIB_WINDOW [8]", .of = REPLAY},
    {"topology", "TEXT", tool_set_text, AT(topology),
     .help =
         "star; fat-tree:HOSTS per leaf switch; dragonfly:CHASSIS,ROUTERS,HOSTS per "
         "group, chassis and router [star]",
     .of = REPLAY},
    {"rate", "RATE", set_bits, AT(rate),
     .help = "link rate in each direction: 100mbit, 10gbit [1gbit]"},
    {"latency", "TIME", set_time, AT(latency_s),
     .help = "latency of a link; hosts on the same switch are two links apart [5us]"},
    {"oversubscribed", "X", set_times, AT(oversubscribed),
     .help = "hosts of a leaf switch per uplink [1]", .of = REPLAY},
    {"mtu", "SIZE", set_size, AT(mtu),
     .help = "MTU of Ethernet; 0: no TCP headers [1500]"},
    {"crowding", "X", set_part, AT(crowding),
     .help = "slow down bytes by X (k - 1) / (k + 1) if k connections share the "
             "links at both ends [0.2]",
     .of = REPLAY},
    {"in-flight", "SIZE", set_size, AT(in_flight),
     .help = "TRIB_IN_FLIGHT; 0: no limit [4M]", .of = REPLAY},
    {"buffer", "SIZE", set_size, AT(buffer),
     .help = "bytes that a switch buffers for a port; 0: unlimited [0]", .of = REPLAY},
    {"resend", "TIME", set_time, AT(resend_s),
     .help = "with --buffer: send a message that found no room again after TIME "
             "[its sender is paused until there is room]",
     .of = REPLAY},
    {"message-time", "TIME", set_time, AT(rates.message_s),
     .help = "processor time per message at each end [10us]"},
    {"wake-time", "TIME", set_time, AT(rates.wake_s),
     .help = "time to wake an idle rank [0us]"},
    {"copy-rate", "RATE", set_gigabytes, AT(rates.copy_Bps),
     .help = "GB/s through the kernel at each end [2]"},
    {"sum-rate", "RATE", set_gigabytes, AT(rates.sum_Bps),
     .help = "GB/s of contributions [8]"},
    {"encode-rate", "RATE", set_gigabytes, AT(rates.encode_Bps),
     .help = "GB/s of elements [1.5]", .of = REPLAY},
    {"decode-rate", "RATE", set_gigabytes, AT(rates.decode_Bps),
     .help = "GB/s of elements [4]", .of = REPLAY},
    {"cores", "N", set_size, AT(cores),
     .help = "cores shared by all ranks, as network namespaces do; 0: one per rank [0]",
     .of = REPLAY},
    {"late", "RANK:TIME", set_late, .help = "start this rank late", .of = REPLAY},
    {"slow", "RANK:X", set_slow, .help = "slow down this rank's processor by X",
     .of = REPLAY},
    {"slow-link", "HOST:X", set_slow_link,
     .help = "divide the link rate of this host by X (star only)", .of = REPLAY},
    {"choose", NULL, tool_set_switch, AT(choose),
     .help = "print what auto would choose on this network, without a replay"},
    {"messages", "N", set_size, AT(messages),
     .help = "replay at most N messages; 0: all. Above it, chunks become larger, and "
             "if that is not enough, the rest is extrapolated at the pace so far "
             "[4000000]",
     .of = REPLAY},
    TOOL_WIDE_ROW,
    {"csv", "FILE", tool_set_text, AT(csv),
     .help = "one row per number of ranks; -: standard output"},
    {"json", "FILE", tool_set_text, AT(json),
     .help = "results as json; -: standard output"},
};

static const struct tool_command command = {
    .name = "trib-sim",
    .usage =
        "usage: trib-sim [OPTION]…\n"
        "\n"
        "Replays the schedules of an all-reduce on a simulated network (SimGrid): "
        "time,\n"
        "load of each link, and memory and connections of each rank, for more ranks "
        "than\n"
        "any machine at hand has. docs/scaling.md says what is modelled and what is "
        "not.\n",
    .ending =
        "example: trib-sim --ranks 2:1024:2 --codec int8 --topology fat-tree:32 \\\n"
        "             --oversubscribed 4\n"
        "exit code: 0 done; 1 a replay failed; 2 wrong arguments",
    .options = options,
    .n_options = sizeof(options) / sizeof(options[0]),
    .modes = modes,
    .given = AT(given),
};

static const char *wrong(const struct sim_args *args)
{
    long most = 0;

    for (size_t i = 0; i < args->ranks.n; i++)
        most = (long)args->ranks.bytes[i] > most ? (long)args->ranks.bytes[i] : most;
    for (size_t i = 0; i < args->ranks.n; i++)
        if (args->ranks.bytes[i] < 1 || args->ranks.bytes[i] > SIM_RANKS_MOST)
            return "--ranks: 1 to 4096";
    if (args->bytes < sizeof(float) || args->bytes % sizeof(float))
        return "--bytes: a whole number of f32, at least one";
    if (args->per_host < 1 || args->per_host > SIM_RANKS_MOST)
        return "--per-host: 1 to 4096";
    if (args->aggregators > 256)
        return "--aggregators: 1 to 256";
    if (args->rack > SIM_RANKS_MOST || args->leaders > SIM_RANKS_MOST)
        return "--rack, --leaders: at most 4096";
    if (args->window < 1 || args->window > 256)
        return "--window: 1 to 256";
    if (args->chunk && (args->chunk < 64 || args->chunk > 16 << 20))
        return "--chunk: 64 bytes to 16M";
    if (args->mtu && (args->mtu < 576 || args->mtu > 65536))
        return "--mtu: 0, or 576 to 65536";
    if (args->resend_s > 0 && !args->buffer)
        return "--resend: needs --buffer";
    if (args->late_rank >= most || args->slow_rank >= most)
        return "--late, --slow: this rank is not in --ranks";
    if (args->slow_host >= 0 && strcmp(args->topology, "star") != 0)
        return "--slow-link: only the hosts of a star have their own links";
    if (args->oversubscribed > 1 && strncmp(args->topology, "fat-tree", 8) != 0)
        return "--oversubscribed: only a fat-tree has uplinks";
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
                              .window = 8,
                              .topology = "star",
                              .rate = 125e6,
                              .latency_s = 5e-6,
                              .oversubscribed = 1,
                              .mtu = 1500,
                              .crowding = 0.2,
                              .in_flight = 4 << 20,
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
    const int code = tool_parse_program(&command, argc, argv, out, err);
    if (code < 0 && !tool_check_mode(&command, out, out->choose, err))
        return 2;
    const char *text = code < 0 ? wrong(out) : NULL;
    if (!text)
        return code;
    fprintf(err, "trib-sim: %s.\n", text);
    return 2;
}
