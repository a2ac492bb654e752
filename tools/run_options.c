/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line of trib-run. */
#include "build-config.h"
#include "tools/run_parts.h"

#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "trib-run - start ranks of a program on this host\n"
    "\n"
    "    trib-run -n RANKS [options] [--] program [arguments]\n"
    "\n"
    "  -n, --ranks N        number of ranks\n"
    "      --prefix         begin each line with its rank, \"[2] \" (the default)\n"
    "      --tag none       lines as they are; whole lines stay whole\n"
    "  -o, --output DIR     write DIR/rank-N.out and DIR/rank-N.err instead\n"
    "      --bind core      give each rank a core of its own, in turn; default: none\n"
    "      --timeout S      end all ranks after S seconds; exit code 124\n"
    "      --grace S        once a rank has failed, the others have S seconds; default "
    "10\n"
    "      --root HOST:PORT meet over TCP there, not in shared memory\n"
    "      --trace FILE     write what ranks did when, for Perfetto: a lane a stage;\n"
    "                       TRIB_TRACE events of each rank, by default 262144\n"
    "  -h, --help           this text\n"
    "  -V, --version        the version\n"
    "\n"
    "Each rank finds TRIB_RANK, TRIB_SIZE, TRIB_ROOT and TRIB_KEY, a secret made for "
    "this job\n"
    "unless it is set, in its environment. Rank 0 reads\n"
    "standard input. Signals are passed on; a second SIGINT or SIGTERM kills. The "
    "exit\n"
    "code is that of the rank that failed first, 128 + N if signal N ended it; of\n"
    "trib-run itself 2: wrong arguments; 124: the time is up; 125: ranks could not be\n"
    "started, or their output not be written; 126: the program cannot be executed; "
    "127:\n"
    "there is no such program; 141: nobody reads the output any more.\n";

static char program_name[] = "trib-run";

static bool parse_int(const char *text, int min, int max, int *out)
{
    char *end;
    long value = strtol(text, &end, 10);

    *out = (int)value;
    return end != text && !*end && value >= min && value <= max;
}

static bool parse_seconds(const char *text, double *out)
{
    char *end;

    *out = strtod(text, &end);
    return end != text && !*end && isfinite(*out) && *out >= 0 && *out <= 1e9;
}

static bool parse_choice(const char *text, const char *yes, const char *no, bool *out)
{
    *out = strcmp(text, yes) == 0;
    return *out || strcmp(text, no) == 0;
}

enum option_key {
    KEY_PREFIX = 256,
    KEY_TAG,
    KEY_BIND,
    KEY_TIMEOUT,
    KEY_GRACE,
    KEY_ROOT,
    KEY_TRACE
};

static const struct option long_options[] = {
    {"ranks", required_argument, NULL, 'n'},
    {"prefix", no_argument, NULL, KEY_PREFIX},
    {"tag", required_argument, NULL, KEY_TAG},
    {"output", required_argument, NULL, 'o'},
    {"bind", required_argument, NULL, KEY_BIND},
    {"timeout", required_argument, NULL, KEY_TIMEOUT},
    {"grace", required_argument, NULL, KEY_GRACE},
    {"root", required_argument, NULL, KEY_ROOT},
    {"trace", required_argument, NULL, KEY_TRACE},
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, 'V'},
    {NULL, 0, NULL, 0},
};

/* NULL, or what is allowed. */
static const char *take_option(int key, const char *value, struct run_options *o)
{
    switch (key) {
    case 'n':
        return parse_int(value, 1, RUN_RANKS_MAX, &o->ranks)
                   ? NULL
                   : "-n, --ranks must be a number from 1 to 4096";
    case KEY_PREFIX:
        o->prefix = true;
        return NULL;
    case KEY_TAG:
        return parse_choice(value, "prefix", "none", &o->prefix)
                   ? NULL
                   : "--tag must be prefix or none";
    case 'o':
        o->output_dir = value;
        return NULL;
    case KEY_BIND:
        return parse_choice(value, "core", "none", &o->bind)
                   ? NULL
                   : "--bind must be core or none";
    case KEY_TIMEOUT:
        return parse_seconds(value, &o->timeout_s) && o->timeout_s > 0
                   ? NULL
                   : "--timeout must be a number of seconds above 0";
    case KEY_GRACE:
        return parse_seconds(value, &o->grace_s)
                   ? NULL
                   : "--grace must be a number of seconds";
    case KEY_TRACE:
        o->trace = value;
        return NULL;
    default:
        o->root = value;
        return NULL;
    }
}

int run_parse_options(int argc, char **argv, struct run_options *o)
{
    int key;

    if (argc > 0)
        argv[0] = program_name; /* for getopt's complaints: no path */
    while ((key = getopt_long(argc, argv, "+n:o:hV", long_options, NULL)) != -1) {
        if (key == 'h') {
            fputs(help, stdout);
            return 0;
        }
        if (key == 'V') {
            printf("trib-run %s\n", PACKAGE_VERSION);
            return 0;
        }
        /* getopt has said what is wrong with '?' */
        const char *wrong =
            key == '?' ? "see trib-run --help" : take_option(key, optarg, o);
        if (wrong) {
            run_say("%s", wrong);
            return RUN_EXIT_USAGE;
        }
    }
    if (!o->ranks) {
        run_say("say how many ranks to start: trib-run -n 4 -- program");
        return RUN_EXIT_USAGE;
    }
    if (optind >= argc) {
        run_say("say which program to run: trib-run -n %d -- program", o->ranks);
        return RUN_EXIT_USAGE;
    }
    o->program = argv + optind;
    return -1;
}
