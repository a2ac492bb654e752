/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The command line of trib-perf put.
 */
#include <stdio.h>
#include <string.h>

#include "perf/common/setters.h"
#include "perf/put/put.h"

static bool take_word(const struct tool_given *given, const char *value)
{
    struct put_args *args = given->args;
    struct trib_tcp_root where;

    if (args->remote != NULL)
        return tool_say(given, "'%s': only one server at a time, which is %s", value,
                        args->remote);
    args->remote = value;
    if (trib_tcp_root_parse(value, &where))
        return true;
    return tool_refuse(
        given, value,
        "is not the address of a server: HOST:PORT, such as host1:7100 or "
        "[fe80::1]:7100");
}

#define DEPTH 64
#define AT(field) offsetof(struct put_args, field)

static const struct tool_option options[] = {
    {"listen", "[HOST:]PORT", tool_set_text, AT(listen),
     .help = "run as the server for one client, whose options apply"},
    {"transport", "TEXT", tool_set_text, AT(transport),
     .help = "such as tcp; trib-info --transports lists them [TRIB_TRANSPORT]",
     .words = "@transports"},
    {"sizes", "LIST", perf_set_sizes, AT(sizes),
     .help = "bytes: 8,64K,16M or from:to:factor [8:4M:8]"},
    {"iters", "N", tool_set_long, AT(iters),
     .help =
         "samples of latency, and writes of bandwidth, per size [as many as fit 0.5 s]",
     .least = 1},
    {"depth", "N", tool_set_int, AT(depth),
     .help = "outstanding writes while measuring bandwidth [64]", .least = 1,
     .most = 4096},
    {"bidirectional", NULL, tool_set_switch, AT(bidirectional),
     .help = "measure bandwidth with both sides writing: GB/s is the sum"},
    {"latency", NULL, tool_set_switch, AT(latency), .help = "measure only latency"},
    {"bandwidth", NULL, tool_set_switch, AT(bandwidth),
     .help = "measure only "
             "bandwidth"},
    {"bind", "HOW", tool_set_choice, AT(bind),
     .help = "auto: give each side on this host half of the cores; core: client on the "
             "first core, server on the second; none: no binding [auto]",
     .words = TOOL_BIND_WORDS},
    {"check", NULL, tool_set_switch, AT(check),
     .help = "check the bytes received, before and after; exit code 1 if any are "
             "wrong"},
    TOOL_WIDE_ROW,
    PERF_CSV_ROW(AT(csv), "one row per size"),
    PERF_JSON_ROW(AT(json)),
};

const struct tool_command put_command = {
    .name = "trib-perf put",
    .usage = "usage: trib-perf put [OPTION]…             both sides on this host\n"
             "       trib-perf put --listen [HOST:]PORT  on one host, and on another:\n"
             "       trib-perf put HOST:PORT [OPTION]…\n"
             "\n"
             "Measures one-sided writes over a transport. Latency is half of a round "
             "trip, in\n"
             "µs: a write, and a write back once it has arrived. Bandwidth is in GB/s "
             "(1e9\n"
             "bytes), until the last write has arrived; messages are millions per "
             "second;\n"
             "CPU s/GB is the processor time of both sides. The sides wait as the "
             "library\n"
             "does: they spin for TRIB_SPIN_US, then yield, then sleep.\n",
    .ending =
        "example: trib-perf put --transport tcp --sizes 8,64K --depth 16 --check\n"
        "exit code: 0 done; 1 wrong bytes or failed; 2 wrong arguments",
    .options = options,
    .n_options = sizeof(options) / sizeof(options[0]),
    .word = take_word,
};

/* The client decides everything: refuse options that have no effect on the server. */
static bool check_server(const struct put_args *args, FILE *err)
{
    struct trib_tcp_root where;

    if (args->remote != NULL) {
        fprintf(err,
                "trib-perf: --listen and %s exclude each other: a side is "
                "server or client.\n",
                args->remote);
        return false;
    }
    if (args->transport != NULL || args->sizes.n != 0 || args->iters != 0 ||
        args->depth != DEPTH || args->bidirectional || args->latency ||
        args->bandwidth || args->bind != TOOL_BIND_AUTO || args->check ||
        args->csv != NULL || args->json != NULL) {
        fputs("trib-perf: --listen takes no other options: give them to the client.\n",
              err);
        return false;
    }
    if (put_listen_text(args->listen, &where))
        return true;
    fprintf(err,
            "trib-perf: --listen '%s' is not [HOST:]PORT, such as 7100 or "
            "192.0.2.1:7100.\n",
            args->listen);
    return false;
}

/* Check rules that involve several options. */
static bool check_together(struct put_args *args, FILE *err)
{
    char why[256];

    if (args->listen != NULL)
        return check_server(args, err);
    if (args->bidirectional && args->latency) {
        fputs("trib-perf: --bidirectional applies to bandwidth: leave out --latency.\n",
              err);
        return false;
    }
    if (args->latency && args->bandwidth) {
        fputs("trib-perf: --latency and --bandwidth exclude each other: leave out "
              "both to measure both.\n",
              err);
        return false;
    }
    if (args->latency && args->depth != DEPTH) {
        fputs("trib-perf: --depth applies to bandwidth: leave out --latency.\n", err);
        return false;
    }
    if (!args->latency && !args->bandwidth)
        args->latency = args->bandwidth = true;
    if (args->transport != NULL &&
        strlen(args->transport) >= sizeof(((struct put_setup *)0)->transport)) {
        fputs("trib-perf: --transport: more than 255 characters.\n", err);
        return false;
    }
    if (!perf_outputs_differ(args->csv, args->json, err))
        return false;
    if (args->sizes.n == 0 &&
        !perf_sizes_parse("8:4M:8", &args->sizes, why, sizeof(why))) {
        fprintf(err, "trib-perf: --sizes %s.\n", why);
        return false;
    }
    for (size_t i = 0; i < args->sizes.n; i++) {
        if (args->sizes.bytes[i] <= PUT_SIZE_MAX)
            continue;
        fprintf(err, "trib-perf: --sizes: %zu bytes are more than 64 GiB.\n",
                args->sizes.bytes[i]);
        return false;
    }
    return true;
}

int put_args_parse(int argc, char **argv, FILE *err, struct put_args *args)
{
    *args = (struct put_args){
        .argc = argc, .argv = argv, .depth = DEPTH, .bind = TOOL_BIND_AUTO};
    int code = tool_parse(&put_command, argc - 1, argv + 1, args, err);

    if (code < 0 && !check_together(args, err))
        code = 2;
    if (code >= 0)
        put_args_free(args);
    return code;
}

void put_args_free(struct put_args *args)
{
    perf_sizes_free(&args->sizes);
}
