/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/config_report.h"
#include "tests/harness/tribtest.h"

#include <sys/auxv.h>
#include <sys/stat.h>

#include "base/config.h"
#include "base/error.h"
#include "base/log.h"

/* The last line of the log, and the number of lines. */
struct heard {
    int lines;
    char last[1024];
};

static void hear(void *arg, trib_log_level_t level, const char *line)
{
    struct heard *heard = arg;

    (void)level;
    heard->lines++;
    snprintf(heard->last, sizeof(heard->last), "%s", line);
}

static int clear_environment(void **state)
{
    extern char **environ;

    (void)state;
    for (char **entry = environ; *entry;) {
        char name[64];
        snprintf(name, sizeof(name), "%.*s", (int)strcspn(*entry, "="), *entry);
        if (!strncmp(name, "TRIB", 4) && !unsetenv(name))
            entry = environ; /* the list has moved */
        else
            entry++;
    }
    return 0;
}

static void assert_fails(const char *overrides, const char *words)
{
    struct trib_config cfg;
    struct trib_error err = {0};

    assert_status(trib_config_load(&cfg, overrides, NULL, &err), TRIB_ERR_CONFIG);
    if (!strstr(err.text, words))
        fail_msg("\"%s\" does not say \"%s\"", err.text, words);
}

TEST(test_defaults, clear_environment)
{
    struct trib_config cfg;

    assert_ok(trib_config_load(&cfg, NULL, NULL, NULL));
    assert_int_equal(cfg.chunk, 65536);
    assert_int_equal(cfg.rank, -1);
    assert_string_equal(cfg.codec, "none");
    assert_int_equal(cfg.log, TRIB_LOG_WARN);
    assert_int_equal(cfg.progress, TRIB_PROGRESS_THREAD);
    assert_true(cfg.zero_copy);
    for (int i = 0; i < TRIB_CONFIG_ROWS; i++)
        assert_int_equal(cfg.origin[i], TRIB_ORIGIN_DEFAULT);
}

static void write_file(char path[64], const char *text)
{
    snprintf(path, 64, "/tmp/tribtest-config-XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
    setenv("TRIB_CONFIG_FILE", path, 1);
}

TEST(test_later_sources_win, clear_environment)
{
    struct trib_config cfg;
    char path[64];

    write_file(path,
               "# all three\nchunk = 64K\nwindow = 3 ; two\n[any]\nspin_us = 7\n");
    setenv("TRIB_WINDOW", "4", 1);
    setenv("TRIB_SPIN_US", "8", 1);
    trib_status_t status = trib_config_load(&cfg, "spin_us=9", NULL, NULL);
    unlink(path);
    assert_ok(status);
    assert_int_equal(cfg.chunk, 65536);
    assert_int_equal(cfg.origin[TRIB_CONFIG_ROW_chunk], TRIB_ORIGIN_FILE);
    assert_int_equal(cfg.window, 4);
    assert_int_equal(cfg.origin[TRIB_CONFIG_ROW_window], TRIB_ORIGIN_ENVIRONMENT);
    assert_int_equal(cfg.spin_us, 9);
    assert_int_equal(cfg.origin[TRIB_CONFIG_ROW_spin_us], TRIB_ORIGIN_API);
}

/* # and ; start a comment at the start of a line and after white space, as in tribd's
 * configuration file. */
TEST(test_comments, clear_environment)
{
    static const struct {
        const char *line;
        const char *codec;
    } cases[] = {
        {"codec = topk:k=3 # x", "topk:k=3"},
        {"codec = topk:k=3 ; x", "topk:k=3"},
        {"codec = topk:k=3\t#x", "topk:k=3"},
        {"codec = topk:k=3 ;x", "topk:k=3"},
        {"codec = topk:k=3#x", "topk:k=3#x"},
        {"codec = topk:k=3;x", "topk:k=3;x"},
        {"codec =#x", "#x"},
        {"codec =;x", ";x"},
        {"codec = # x", ""},
        {"codec = ; x", ""},
        {" # codec = a\ncodec = b", "b"},
        {"; codec = a\ncodec = b", "b"},
        {"#codec = a\r\ncodec = b # x\r\n", "b"},
        {"codec = b # one ; two # three", "b"},
    };
    char path[64], text[1024] = "codec = f16 # ";
    struct trib_config cfg;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        write_file(path, cases[i].line);
        trib_status_t status = trib_config_load(&cfg, NULL, NULL, NULL);
        unlink(path);
        assert_ok(status);
        assert_string_equal(cfg.codec, cases[i].codec);
    }
    memset(text + strlen(text), 'x', 900); /* longer than any setting may be */
    write_file(path, text);
    assert_ok(trib_config_load(&cfg, NULL, NULL, NULL));
    unlink(path);
    assert_string_equal(cfg.codec, "f16");
    write_file(path, "chunk = 64K # x\nwindow = 3 ;x\n");
    assert_ok(trib_config_load(&cfg, NULL, NULL, NULL));
    unlink(path);
    assert_int_equal(cfg.window, 3);
}

TEST(test_folder_as_file, clear_environment)
{
    setenv("TRIB_CONFIG_FILE", "/tmp", 1);
    assert_fails(NULL, "TRIB_CONFIG_FILE: /tmp cannot be read: Is a directory");
}

TEST(test_bad_files, clear_environment)
{
    static const struct {
        const char *text;
        const char *words;
    } cases[] = {
        {"chunk = 1\n", "must be a number in 4K..16M bytes"},
        {"chnk = 64K\n", "did you mean \"chunk\"?"},
        {"window = 2\nwindow = 3\n", "given twice"},
        {"window = 2\n just words\n", "given twice"}, /* inih: a line continued */
        {"window = 2\njust words\n", "line 2 is not"},
    };
    char path[64], text[400] = "window = 2\ncodec = ";

    memset(text + strlen(text), 'x', 300);
    write_file(path, text);
    assert_fails(NULL, "line 2 is longer than 197 characters");
    unlink(path);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        write_file(path, cases[i].text);
        assert_fails(NULL, cases[i].words);
        unlink(path);
    }
    assert_fails(NULL, "No such file");
}

TEST(test_unknown_variable_warns_once_with_nearest, clear_environment)
{
    struct heard heard = {0};
    struct trib_log log;
    struct trib_config cfg;

    trib_log_init(&log, TRIB_LOG_WARN, hear, &heard);
    setenv("TRIB_TIMEOUT", "4", 1);
    setenv("TRIBUNAL", "not ours", 1);
    assert_ok(trib_config_load(&cfg, NULL, &log, NULL));
    assert_int_equal(heard.lines, 1);
    assert_string_equal(heard.last, "tributary: warning: config: environment variable "
                                    "TRIB_TIMEOUT has no meaning; did you mean "
                                    "TRIB_TIMEOUT_MS?");
}

TEST(test_impossible_values, clear_environment)
{
    assert_fails("window=0", "setting window=0: must be a number in 1..256 chunks");
    assert_fails("window=257", "1..256");
    assert_fails("window=", "1..256");
    assert_fails("window=8x", "1..256");
    assert_fails("window=99999999999999999999", "1..256");
    assert_fails("chunk=-4K", "4K..16M bytes");
    assert_fails("chunk=64Q", "4K..16M bytes");
    assert_fails("chunk=99999999999G", "4K..16M bytes");
    assert_fails("progress=threads", "one of thread|caller");
    assert_fails("progress=thr", "one of thread|caller");
    assert_fails("zero_copy=maybe", "one of 0|1");
    assert_fails("winow=4", "did you mean \"window\"?");
    assert_fails("qqqqqqqq=4", "no setting is called \"qqqqqqqq\"");
    assert_fails("window", "is not name=value");
    assert_fails("window=3,window=4", "given twice");
    setenv("TRIB_CHUNK", "1", 1);
    assert_fails(NULL,
                 "TRIB_CHUNK=1 in the environment: must be a number in 4K..16M bytes");
}

TEST(test_text_too_long, clear_environment)
{
    char text[400] = "codec=";
    struct trib_config cfg;

    memset(text + 6, 'x', sizeof(text) - 7);
    assert_fails(text, "longer than 255 bytes");
    text[6 + 255] = '\0';
    assert_ok(trib_config_load(&cfg, text, NULL, NULL));
    assert_int_equal(strlen(cfg.codec), 255);
}

TEST(test_semicolons_protect_commas, clear_environment)
{
    struct trib_config cfg;

    assert_ok(
        trib_config_load(&cfg, "codec=qsgd:bits=4,bucket=512; window=4;", NULL, NULL));
    assert_string_equal(cfg.codec, "qsgd:bits=4,bucket=512");
    assert_int_equal(cfg.window, 4);
    assert_fails("codec=qsgd:bits=4,bucket=512", "separate settings by \";\"");
}

TEST(test_booleans, clear_environment)
{
    struct trib_config cfg;

    assert_ok(trib_config_load(&cfg, "zero_copy=off", NULL, NULL));
    assert_false(cfg.zero_copy);
    assert_ok(trib_config_load(&cfg, "zero_copy=yes", NULL, NULL));
    assert_true(cfg.zero_copy);
}

static uint64_t digest_of(const char *overrides)
{
    struct trib_config cfg;

    assert_ok(trib_config_load(&cfg, overrides, NULL, NULL));
    return trib_config_digest(&cfg);
}

TEST(test_digest_covers_same_rows_only, clear_environment)
{
    assert_int_equal(digest_of(NULL), digest_of("rank=3,root=a:1,timeout_ms=99"));
    assert_int_equal(digest_of("chunk=65536"), digest_of("chunk=64K"));
    assert_int_not_equal(digest_of(NULL), digest_of("chunk=32K"));
    assert_int_not_equal(digest_of(NULL), digest_of("zero_copy=0"));
    assert_int_not_equal(digest_of(NULL), digest_of("seal=1"));
}

TEST(test_same_text, clear_environment)
{
    struct trib_config cfg;
    char text[512];
    char small[8];

    assert_ok(trib_config_load(&cfg, "chunk=64K", NULL, NULL));
    size_t need = trib_config_same_text(&cfg, text, sizeof(text));
    assert_string_equal(
        text,
        "algorithm=auto leaders=0 groups=host codec=none feedback=codec quorum=all "
        "seed=0 deterministic=0 chunk=64K window=8 service= zero_copy=1 check=none "
        "seal=0");
    assert_int_equal(need, strlen(text) + 1);
    assert_int_equal(trib_config_same_text(&cfg, small, sizeof(small)), need);
    assert_string_equal(small, "algorit");
}

static void check_item(void *arg, const struct trib_config_item *item)
{
    int *rows = arg;

    ++*rows;
    assert_true(item->doc[0] && item->name[0]);
    if (!strcmp(item->name, "chunk")) {
        assert_string_equal(item->variable, "TRIB_CHUNK");
        assert_string_equal(item->value, "64K");
        assert_string_equal(item->def, "64K");
        assert_string_equal(item->range, "4K..16M");
        assert_string_equal(item->unit, "bytes");
        assert_string_equal(item->origin, "API");
        assert_true(item->same);
    } else {
        assert_string_equal(item->value, item->def);
        assert_string_equal(item->origin, "default");
    }
    if (!strcmp(item->name, "progress"))
        assert_string_equal(item->range, "thread|caller");
}

TEST(test_each_prints_what_was_parsed, clear_environment)
{
    struct trib_config cfg;
    int rows = 0;

    assert_ok(trib_config_load(&cfg, "chunk=64K", NULL, NULL));
    trib_config_each(&cfg, check_item, &rows);
    assert_int_equal(rows, TRIB_CONFIG_ROWS);
}

/* 0 is no limit, and nothing else is below the least one. */
TEST(test_no_limit, clear_environment)
{
    static const char *const rows[] = {"timeout_ms", "stop_timeout_ms",
                                       "boot_timeout_ms"};
    struct trib_error err = {0};
    struct trib_config cfg;
    char text[64];

    for (int i = 0; i < 3; i++) {
        snprintf(text, sizeof(text), "%s=0", rows[i]);
        assert_ok(trib_config_load(&cfg, text, NULL, &err));
        snprintf(text, sizeof(text), "%s=9", rows[i]);
        assert_status(trib_config_load(&cfg, text, NULL, &err), TRIB_ERR_CONFIG);
        assert_non_null(strstr(err.text, "0, for no limit, or a number in"));
    }
    assert_ok(trib_config_load(&cfg, "stop_timeout_ms=0", NULL, NULL));
    assert_int_equal(cfg.stop_timeout_ms, 0);
}

TEST(test_examine_goes_to_the_end, clear_environment)
{
    struct trib_config cfg;
    struct trib_config_faults *faults = malloc(sizeof(*faults));
    char path[64];

    assert_non_null(faults);
    write_file(path, "chnk = 64K\nwindow = many\nspin_us = 7\n");
    setenv("TRIB_CHUNK", "", 1);
    setenv("TRIB_LOG", "info", 1);
    trib_config_examine(&cfg, "timeout_ms=1,rank=3", faults);
    unlink(path);
    assert_non_null(strstr(faults->other, "did you mean \"chunk\"?"));
    assert_non_null(strstr(faults->row[TRIB_CONFIG_ROW_window], "window = many in "));
    assert_non_null(strstr(faults->row[TRIB_CONFIG_ROW_chunk], "TRIB_CHUNK= in the"));
    assert_non_null(strstr(faults->row[TRIB_CONFIG_ROW_timeout_ms], "timeout_ms=1:"));
    assert_true(faults->unread[TRIB_CONFIG_ROW_chunk]);
    assert_int_equal(cfg.origin[TRIB_CONFIG_ROW_chunk], TRIB_ORIGIN_ENVIRONMENT);
    assert_string_equal(faults->row[TRIB_CONFIG_ROW_spin_us], "");
    assert_int_equal(cfg.spin_us, 7);
    assert_int_equal(cfg.log, TRIB_LOG_INFO);
    assert_int_equal(cfg.rank, 3);
    free(faults);
}

/* In a set-user-ID program: 0 if it ignores the environment and warns. */
static int run_secure(void)
{
    struct trib_config cfg;
    struct trib_error err = {0};
    struct heard heard = {0};
    struct trib_log log;
    char name[64];

    if (!getauxval(AT_SECURE))
        return 77;
    trib_log_init(&log, TRIB_LOG_WARN, hear, &heard);
    if (trib_config_load(&cfg, NULL, &log, &err) != TRIB_OK || cfg.chunk != 65536 ||
        cfg.origin[TRIB_CONFIG_ROW_chunk] != TRIB_ORIGIN_DEFAULT)
        return 1;
    if (trib_config_environment("TRIB_CHUNK") || trib_config_variable("TRIB_CHUNK") ||
        trib_config_environment_name(0, "", name, sizeof(name)))
        return 2;
    return heard.lines == 1 && strstr(heard.last, "are ignored") ? 0 : 3;
}

/* A copy of this program that belongs to root and is set-user-ID. */
static bool copy_secure(char path[64])
{
    char command[256];

    snprintf(path, 64, "/tmp/trib-secure-XXXXXX");
    if (!mkdtemp(path) || chmod(path, 0755) != 0)
        return false;
    snprintf(command, sizeof(command), "cp /proc/%d/exe %s/x && chmod 4755 %s/x",
             (int)getpid(), path, path);
    return system(command) == 0;
}

TEST(test_secure_program, clear_environment)
{
    char folder[64], program[72];
    int status;

    if (geteuid() != 0) {
        tribtest_skip("only root can make a set-user-ID program of another user");
        return;
    }
    assert_true(copy_secure(folder));
    snprintf(program, sizeof(program), "%s/x", folder);
    const pid_t child = fork();
    if (child == 0) {
        setenv("TRIB_CHUNK", "1M", 1);
        setenv("TRIB_CONFIG_FILE", "/etc/shadow", 1);
        if (setgid(65534) != 0 || setuid(65534) != 0)
            _exit(4);
        execl(program, program, "--secure", (char *)NULL);
        _exit(77); /* the folder may be on a file system without executables */
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    unlink(program);
    rmdir(folder);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        tribtest_skip("/tmp has no set-user-ID programs");
    else
        assert_int_equal(status, 0);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--secure") == 0)
        return run_secure();

    return tribtest_run();
}
