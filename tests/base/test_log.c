/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/harness/tribtest.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "base/error.h"
#include "base/log.h"
#include "base/log_pace.h"

static void keep(void *arg, trib_log_level_t level, const char *line)
{
    (void)level;
    snprintf(arg, 2048, "%s", line);
}

TEST(test_form_of_a_line)
{
    char line[2048] = "";
    struct trib_log log;

    trib_log_init(&log, TRIB_LOG_INFO, keep, line);
    trib_log(&log, TRIB_LOG_INFO, "boot", "joined");
    assert_string_equal(line, "tributary: info: boot: joined");
    trib_log_set_rank(&log, 2);
    trib_log(&log, TRIB_LOG_WARN, "shm", "%d of %d", 3, 4);
    assert_string_equal(line, "tributary: rank 2: warning: shm: 3 of 4");
    trib_log(&log, TRIB_LOG_ERROR, "shm", "text");
    assert_string_equal(line, "tributary: rank 2: error: shm: text");
}

TEST(test_levels)
{
    char line[2048] = "";
    struct trib_log log;

    trib_log_init(&log, TRIB_LOG_WARN, keep, line);
    trib_log(&log, TRIB_LOG_INFO, "x", "dropped");
    assert_string_equal(line, "");
    trib_log(&log, TRIB_LOG_ERROR, "x", "shown");
    assert_non_null(strstr(line, "shown"));
}

static void *log_often(void *arg)
{
    for (int i = 0; i < 1000; i++)
        trib_log(arg, TRIB_LOG_INFO, "x", "%d", i);
    return NULL;
}

/* tribd reloads its settings while other threads log: a data race. */
TEST(test_level_changes)
{
    char line[2048] = "";
    struct trib_log log;
    pthread_t thread;

    trib_log_init(&log, TRIB_LOG_WARN, keep, line);
    assert_int_equal(pthread_create(&thread, NULL, log_often, &log), 0);
    for (int i = 0; i < 1000; i++)
        trib_log_set_level(&log, i % 2 ? TRIB_LOG_ERROR : TRIB_LOG_INFO);
    pthread_join(thread, NULL);
    trib_log_set_level(&log, TRIB_LOG_ERROR);
    line[0] = 0;
    trib_log(&log, TRIB_LOG_WARN, "x", "dropped");
    assert_string_equal(line, "");
    trib_log_set_level(&log, TRIB_LOG_INFO);
    trib_log(&log, TRIB_LOG_INFO, "x", "kept");
    assert_string_equal(line, "tributary: info: x: kept");
}

TEST(test_errno_is_kept_and_long_lines_cut)
{
    char line[2048] = "";
    char text[2000];
    struct trib_log log;

    trib_log_init(&log, TRIB_LOG_WARN, keep, line);
    errno = EACCES;
    trib_log(&log, TRIB_LOG_WARN, "x", "%m");
    assert_int_equal(errno, EACCES);
    assert_string_equal(line, "tributary: warning: x: Permission denied");
    memset(text, 'y', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    trib_log(&log, TRIB_LOG_WARN, "x", "%s", text);
    assert_int_equal(strlen(line), 1023);
}

/* A peer's host name, or other untrusted text, cannot inject a line of its own. */
TEST(test_text_of_strangers)
{
    static const struct {
        const char *said, *shown;
    } cases[] = {
        {"n1\n<0>kernel: Out of memory", "n1\\x0a<0>kernel: Out of memory"},
        {"\x1b[31mroot\x1b[0m\r\t\x7f", "\\x1b[31mroot\\x1b[0m\\x0d\\x09\\x7f"},
        {"caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80",
         "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"},
        {"\xc2\x9b"
         "31m",
         "\\xc2\\x9b31m"}, /* a control character of 8 bits */
        {"a\xe2\x80\xae"
         "b",
         "a\\xe2\\x80\\xae"
         "b"}, /* turns the direction of writing */
        {"\xff\xc3(\xc3", "\\xff\\xc3(\\xc3"}, /* no UTF-8 */
        {"\xc0\x8a\xed\xa0\x80",
         "\\xc0\\x8a\\xed\\xa0\\x80"}, /* a line feed in 2, a surrogate */
        {"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"}, /* above all characters */
    };
    struct trib_error err = {0};
    char line[2048], wanted[2048];
    struct trib_log log;

    trib_log_init(&log, TRIB_LOG_WARN, keep, line);
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        trib_log(&log, TRIB_LOG_WARN, "x", "host %s", cases[i].said);
        snprintf(wanted, sizeof(wanted), "tributary: warning: x: host %s",
                 cases[i].shown);
        assert_string_equal(line, wanted);
    }
    (void)trib_fail(&err, TRIB_ERR_BOOT, "host %s",
                    cases[0].said); /* so do sentences */
    assert_string_equal(trib_error_text(&err), "host n1\\x0a<0>kernel: Out of memory");
    char many[1200];
    memset(many, '\n', sizeof(many) - 1);
    many[sizeof(many) - 1] = 0;
    trib_log(&log, TRIB_LOG_WARN, "x", "%s", many);
    assert_true(strlen(line) < 1024 &&
                strcmp(line + strlen(line) - 7, "\\x0a...") == 0);
}

TEST(test_time_and_json)
{
    char line[2048] = "";
    struct trib_log log;

    trib_log_init(&log, TRIB_LOG_WARN, keep, line);
    log.stamps = true;
    trib_log(&log, TRIB_LOG_WARN, "x", "text");
    assert_true(line[4] == '-' && line[10] == 'T' && line[19] == '.' &&
                line[23] == 'Z');
    assert_string_equal(line + 24, " tributary: warning: x: text");
    log.json = true;
    trib_log_set_rank(&log, 3);
    trib_log(&log, TRIB_LOG_ERROR, "x", "a \"b\"\\ \n c");
    assert_memory_equal(line, "{\"time\":\"2", 10);
    assert_string_equal(strstr(line, "\"level\""),
                        "\"level\":\"error\",\"rank\":3,\"component\":\"x\","
                        "\"text\":\"a \\\"b\\\"\\\\ \\\\x0a c\"}");
    /* Cut, and still an object; no character is cut in two. */
    char many[1000] = "";
    for (int i = 0; i < 320; i++)
        strcat(many, i % 7 ? "\xe2\x82\xac" : "\"");
    trib_log(&log, TRIB_LOG_ERROR, "x", "%s", many);
    const size_t n = strlen(line);
    assert_true(n < 1024 && strcmp(line + n - 2, "\"}") == 0 &&
                (n < 3 || line[n - 3] != '\\' || line[n - 4] == '\\'));
}

static int lines_shown;
static char last_more[2048];

static void count_lines(void *arg, trib_log_level_t level, const char *line)
{
    (void)arg;
    (void)level;
    lines_shown++;
    if (strstr(line, "more like this"))
        snprintf(last_more, sizeof(last_more), "%s", line);
}

/* Endless warnings of one cause are shown a few times, then as a number. */
TEST(test_pace)
{
    static struct trib_log_pace pace;
    struct trib_log log;

    trib_log_init(&log, TRIB_LOG_INFO, count_lines, NULL);
    trib_log_pace_init(&pace);
    log.pace = &pace;
    for (int i = 0; i < 10000; i++)
        trib_log(&log, TRIB_LOG_WARN, "tcp", "stranger %d connected", i);
    printf("# %d lines of 10000\n", lines_shown);
    assert_true(lines_shown >= TRIB_LOG_WARNINGS_AT_ONCE && lines_shown < 1000);
    trib_log(&log, TRIB_LOG_WARN, "tcp", "another kind"); /* is shown all the same */
    const int before = lines_shown;
    trib_log(&log, TRIB_LOG_ERROR, "tcp", "an error");
    for (int i = 0; i < 100; i++) /* errors are rarer, and all are shown */
        trib_log(&log, TRIB_LOG_ERROR, "tcp", "error %d", i);
    assert_int_equal(lines_shown, before + 101);
    trib_log_tell(&log, true);
    assert_int_equal(lines_shown, before + 102);
    unsigned long more = 0;
    assert_int_equal(sscanf(last_more,
                            "tributary: warning: tcp: %lu more like this in the last",
                            &more),
                     1);
    assert_true(more >= 9000 && more < 10000);
    assert_non_null(strstr(last_more, " s: stranger "));
    trib_log_tell(&log, true); /* once */
    assert_int_equal(lines_shown, before + 102);
}

/* Log a line while the number of dropped lines is written, as another thread may. */
static void log_meanwhile(void *arg, trib_log_level_t level, const char *line)
{
    static int n;

    (void)level;
    if (!strstr(line, "3 lines were dropped"))
        return;
    assert_int_equal(n++, 0);
    trib_log(arg, TRIB_LOG_ERROR, "x", "meanwhile");
}

/* One thread alone reports dropped lines. */
TEST(test_dropped_lines_are_reported_once)
{
    struct trib_log_pace pace;
    struct trib_log log;

    trib_log_init(&log, TRIB_LOG_INFO, log_meanwhile, &log);
    trib_log_pace_init(&pace);
    log.pace = &pace;
    for (int i = 0; i < 3; i++)
        trib_log_pace_drop_mt(&pace);
    trib_log(&log, TRIB_LOG_ERROR, "x", "shown");
    trib_log(&log, TRIB_LOG_ERROR, "x", "shown");
    assert_int_equal(atomic_load(&pace.reported), 3);
}

TEST(test_standard_error_is_the_default)
{
    char line[128] = "";
    int ends[2];
    int saved = dup(STDERR_FILENO);

    assert_int_equal(pipe(ends), 0);
    dup2(ends[1], STDERR_FILENO);
    trib_log(NULL, TRIB_LOG_INFO, "x", "dropped");
    trib_log(NULL, TRIB_LOG_WARN, "x", "said");
    dup2(saved, STDERR_FILENO);
    close(saved);
    close(ends[1]);
    assert_true(read(ends[0], line, sizeof(line) - 1) > 0);
    close(ends[0]);
    assert_string_equal(line, "tributary: warning: x: said\n");
}

/* Standard error is `fd` until restored. */
static int redirect(int fd)
{
    const int saved = dup(STDERR_FILENO);

    assert_int_equal(dup2(fd, STDERR_FILENO), STDERR_FILENO);
    return saved;
}

static void restore(int saved)
{
    assert_int_equal(dup2(saved, STDERR_FILENO), STDERR_FILENO);
    close(saved);
}

/* Fill a pipe or socket; its other users keep a blocking descriptor. */
static void fill(int fd)
{
    static const char dots[256] = "................";
    const int flags = fcntl(fd, F_GETFL);

    assert_int_equal(fcntl(fd, F_SETFL, flags | O_NONBLOCK), 0);
    while (write(fd, dots, sizeof(dots)) > 0)
        ;
    while (write(fd, dots, 1) > 0)
        ;
    assert_int_equal(fcntl(fd, F_SETFL, flags), 0);
}

/* Read all bytes that have arrived. */
static void drain(int fd, char text[1 << 20])
{
    ssize_t n = 0, got;
    const int flags = fcntl(fd, F_GETFL);

    assert_int_equal(fcntl(fd, F_SETFL, flags | O_NONBLOCK), 0);
    while ((got = read(fd, text + n, (1 << 20) - 1 - (size_t)n)) > 0)
        n += got;
    assert_int_equal(fcntl(fd, F_SETFL, flags), 0);
    text[n] = 0;
}

/* Fails by the deadline of this program where a line waits for its reader. */
static void drop_and_report(int ends[2])
{
    static char text[1 << 20];
    struct trib_log log;
    struct trib_log_pace pace;

    trib_log_init(&log, TRIB_LOG_INFO, NULL, NULL);
    trib_log_pace_init(&pace);
    log.pace = &pace;
    fill(ends[1]);
    const int saved = redirect(ends[1]);
    for (int i = 0; i < 5; i++)
        trib_log(&log, TRIB_LOG_ERROR, "x", "unread %d", i);
    trib_log_tell(&log, true);
    drain(ends[0], text);
    const bool dropped = !strstr(text, "unread");
    trib_log(&log, TRIB_LOG_ERROR, "x", "read");
    trib_log(&log, TRIB_LOG_ERROR, "x", "again");
    restore(saved);
    assert_true(dropped);
    drain(ends[0], text);
    assert_string_equal(text,
                        "tributary: warning: log: 5 lines were dropped: standard error "
                        "did not accept them\ntributary: error: x: read\n"
                        "tributary: error: x: again\n");
    assert_int_equal(pace.dropped, 5);
}

TEST(test_full_pipe)
{
    int ends[2];

    assert_int_equal(pipe(ends), 0);
    drop_and_report(ends);
    assert_false(fcntl(ends[1], F_GETFL) & O_NONBLOCK);
    close(ends[0]);
    close(ends[1]);
}

TEST(test_full_socket)
{
    int ends[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    drop_and_report(ends);
    close(ends[0]);
    close(ends[1]);
}

/* The pipe cannot be opened again without a free descriptor. */
TEST(test_full_pipe_without_descriptors)
{
    int ends[2];
    struct rlimit files, none;

    assert_int_equal(pipe(ends), 0);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
    fill(ends[1]);
    const int saved = redirect(ends[1]);
    none = (struct rlimit){.rlim_cur = 3, .rlim_max = files.rlim_max};
    (void)setrlimit(RLIMIT_NOFILE, &none);
    trib_log(NULL, TRIB_LOG_ERROR, "x", "unread");
    (void)setrlimit(RLIMIT_NOFILE, &files);
    restore(saved);
    close(ends[0]);
    close(ends[1]);
}

/* Another user's terminal cannot be opened again either. */
TEST(test_full_terminal)
{
    char text[256];
    struct rlimit files, none;
    const int master = posix_openpt(O_RDWR | O_NOCTTY);

    if (master < 0 || grantpt(master) != 0 || unlockpt(master) != 0)
        tribtest_skip("there are no pseudo-terminals");
    const int terminal = open(ptsname(master), O_RDWR | O_NOCTTY);
    assert_true(terminal >= 0);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
    none = (struct rlimit){.rlim_cur = 3, .rlim_max = files.rlim_max};
    const int saved = redirect(terminal);
    for (int i = 0; i < 400; i++) { /* until it is full, by lines of other lengths */
        snprintf(text, sizeof(text), "%0*d", 50 + i % 180, i);
        trib_log(NULL, TRIB_LOG_ERROR, "x", "%s", text);
    }
    for (int i = 0; i < 20; i++)
        assert_true(read(master, text, sizeof(text)) > 0);
    (void)setrlimit(RLIMIT_NOFILE, &none);
    for (int i = 0; i < 400; i++)
        trib_log(NULL, TRIB_LOG_ERROR, "x", "unread %d", i);
    (void)setrlimit(RLIMIT_NOFILE, &files);
    restore(saved);
    close(terminal);
    close(master);
}

/* The log does not raise SIGPIPE; a program without standard error continues. */
TEST(test_no_reader)
{
    int ends[2];

    assert_int_equal(pipe(ends), 0);
    close(ends[0]);
    int saved = redirect(ends[1]);
    trib_log(NULL, TRIB_LOG_ERROR, "x", "unread");
    close(ends[1]);
    close(STDERR_FILENO);
    trib_log(NULL, TRIB_LOG_ERROR, "x", "unread");
    restore(saved);
}
