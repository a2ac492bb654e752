/* SPDX-License-Identifier: BSD-3-Clause */
/* Command lines of all programs: common options are parsed alike, and errors name the
 * wrong argument. */
#include "tests/tools/parse.h"

#include "tools/common/options.h"

struct args {
    int ranks, choice;
    long iters;
    size_t bytes;
    double seconds;
    bool check, second;
    const char *file, *codec, *words[4];
    int n_words;
    char **rest;
};

static bool take_word(const struct tool_given *given, const char *word)
{
    struct args *args = given->args;

    if (args->n_words == 4)
        return tool_say(given, "'%s': four words at most", word);
    args->words[args->n_words++] = word;
    return true;
}

#define AT(field) offsetof(struct args, field)

static const struct tool_option options[] = {
    {.help = "A heading:"},
    {"ranks", "RANKS", tool_set_int, AT(ranks), .help = "so many", .letter = 'n',
     .least = 1, .most = 64},
    {"rate", "RATE", tool_set_number, AT(seconds), .help = "a number", .most = 10},
    {"iters", "N", tool_set_long, AT(iters), .help = "no limit", .least = 1},
    {"bytes", "N", tool_set_size, AT(bytes), .help = "of a vector"},
    {"bind", "HOW", tool_set_choice, AT(choice), .help = "a choice",
     .words = "none core auto"},
    {"tag", "HOW", tool_set_second, AT(second), .help = "one of two",
     .words = "none prefix"},
    {"check", NULL, tool_set_switch, AT(check), .help = "a switch", .letter = 'c'},
    {"file", "FILE", tool_set_text, AT(file), .help = "a text"},
    {"listen", "[HOST:]PORT", tool_set_text, AT(file), .help = "no choice"},
    {"codecs", "[CODEC]", tool_set_text, AT(codec), .help = "may be left out"},
};

static const struct tool_command command = {
    .name = "trib-perf put",
    .usage = "usage: trib-perf put",
    .ending = "example: none",
    .options = options,
    .n_options = sizeof(options) / sizeof(*options),
    .word = take_word,
};

static int parse_any(int argc, char **argv, FILE *err, void *args)
{
    memset(args, 0, sizeof(struct args));
    return tool_parse(&command, argc, argv, args, err);
}

static int parse_alone(int argc, char **argv, FILE *err, void *args)
{
    struct tool_command alone = command;

    alone.word = NULL;
    return tool_parse(&alone, argc, argv, args, err);
}

static int parse_stopping(int argc, char **argv, FILE *err, void *args)
{
    struct tool_command stopping = command;

    stopping.stops = true;
    stopping.rest = AT(rest);
    return tool_parse(&stopping, argc, argv, args, err);
}

static void assert_refused(const char *line, const char *words)
{
    struct args args;

    assert_refused_by(line, parse_any, &args, words);
}

TEST(test_same)
{
    static const char *const lines[] = {
        "-n2", "-n 2", "--ranks 2", "--ranks=2", "--ran=2 --rat 3", "-cn2", "-n 9 -n2",
    };
    struct args args;

    for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
        assert_taken(lines[i], parse_any, &args);
        assert_int_equal(args.ranks, 2);
    }
}

TEST(test_values)
{
    struct args args;

    assert_taken(
        "--iters 9000000000 --bytes=7 --rate 0.5 --bind auto --check --file=a=b "
        "--codecs",
        parse_any, &args);
    assert_int_equal(args.iters, 9000000000);
    assert_int_equal(args.bytes, 7);
    assert_true(args.seconds == 0.5 && args.check);
    assert_int_equal(args.choice, 2);
    assert_string_equal(args.file, "a=b");
    assert_null(args.codec);
    assert_taken("--codecs=topk", parse_any, &args);
    assert_string_equal(args.codec, "topk");
    assert_taken("--tag prefix", parse_any, &args);
    assert_true(args.second);
    assert_taken("--tag prefix --tag none", parse_any, &args);
    assert_false(args.second);
    assert_taken("--listen 7100", parse_any, &args);
    assert_string_equal(args.file, "7100");
    assert_taken("--file=--check", parse_any, &args);
    assert_string_equal(args.file, "--check");
    assert_false(args.check);
}

TEST(test_words)
{
    struct args args;

    assert_taken("one -n2 two -- --check -c", parse_any, &args);
    assert_int_equal(args.n_words, 4);
    assert_string_equal(args.words[1], "two");
    assert_string_equal(args.words[2], "--check");
    assert_false(args.check);
    assert_refused("1 2 3 4 5", "trib-perf: '5': four words");
    assert_refused("1 2 3 4 -- 5", "four words");
    assert_refused_by("-n2 word", parse_alone, &args,
                      "trib-perf put accepts only options, not 'word'");
    assert_taken("-n2 program --check", parse_stopping, &args);
    assert_string_equal(args.rest[0], "program");
    assert_string_equal(args.rest[1], "--check");
    assert_null(args.rest[2]);
    assert_taken("-n2 --", parse_stopping, &args);
    assert_null(args.rest[0]);
}

TEST(test_unknown)
{
    assert_refused("--rnaks 2", "unknown option '--rnaks'; did you mean --ranks?");
    assert_refused("--chek", "did you mean --check? See trib-perf put --help.");
    assert_refused("--zzzzzzzz=4", "'--zzzzzzzz=4'; see trib-perf put --help.");
    assert_refused("-x", "unknown option '-x'; see trib-perf put --help");
    assert_refused("-cx", "unknown option '-x'");
    assert_refused("--ran 2 --ra", "'--ra' is ambiguous: --ranks or --rate; see");
    assert_refused("--c", "'--c' is ambiguous: --check or --codecs");
    assert_refused("--ranks", "--ranks needs a value: RANKS");
    assert_refused("-n", "--ranks needs a value: RANKS");
    assert_refused("--check=yes", "--check takes no value");
    assert_refused("--file --check", "--file needs a value (FILE), but is followed by");
}

TEST(test_wrong_values)
{
    assert_refused("-n 0", "-n, --ranks '0' is not a whole number from 1 to 64");
    assert_refused("-n65", "from 1 to 64");
    assert_refused("-n 2x", "'2x' is not");
    assert_refused("-n=2", "'=2' is not");
    assert_refused("--ranks=", "'' is not");
    assert_refused("-n 99999999999999999999", "from 1 to 64");
    assert_refused("--iters 0", "--iters '0' is not a whole number of at least 1");
    assert_refused("--iters 1.5", "whole number");
    assert_refused("--bytes -1", "at least 0");
    assert_refused("--rate 11", "is not a number from 0 to 10");
    assert_refused("--rate nan", "is not a number from 0 to 10");
    assert_refused("--rate inf", "from 0 to 10");
    assert_refused("--bind cores",
                   "--bind 'cores' must be none, core or auto (did you mean core?)");
    assert_refused("--tag x", "--tag 'x' must be none or prefix.");
    assert_refused("--bind x", "must be none, core or auto.");
}

TEST(test_nearest)
{
    const char *const names[] = {"ring", "direct", "halving-doubling"};

    assert_string_equal(tool_nearest("rnig", names, 3), "ring");
    assert_string_equal(tool_nearest("halvingdoubling", names, 3), "halving-doubling");
    assert_null(tool_nearest("xxxx", names, 3));
    assert_null(tool_nearest("rxyz", names, 3)); /* 3 edits of 4 letters */
    assert_null(tool_nearest("", names, 3));
    /* Longer than any name of ours. */
    assert_null(tool_nearest("0123456789012345678901234567890123456789"
                             "0123456789012345678901234567890123456789",
                             names, 3));
}
