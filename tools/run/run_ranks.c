/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/common/tool.h"
#include "tools/run/run_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define REAP_MS 200

/* Descriptors of a started rank; -1: inherited from trib-run, or /dev/null for
 * input. */
struct plumbing {
    int in;
    int out[2];
    int report; /* carries errno if exec fails */
};

/* Binding -------------------------------------------------------------------------- */

static void bind_rank(const struct run_options *options, int rank)
{
    const int error = tool_bind_rank(options->bind, rank, options->ranks);

    if (error)
        run_say("cannot bind rank %d to its cores: %s", rank, strerror(error));
}

/* Report a failed call that needed a descriptor; errno holds the cause. */
static void say_no_descriptor(const char *what)
{
    const char *cure = errno == EMFILE
                           ? ": raise ulimit -n, also the hard limit (ulimit -Hn)"
                       : errno == ENFILE ? ": raise sysctl fs.file-max"
                                         : "";

    run_say("%s: %s%s", what, strerror(errno), cure);
}

static void note_quota(void *arg, const trib_item_t *item)
{
    if (strcmp(item->name, "cpu quota") == 0)
        *(double *)arg = strtod(item->value, NULL);
}

/* Warn if ranks exceed the cores or the CPU quota: both make ranks stall each other. */
static void warn_shared_cores(int ranks)
{
    const char *ranks_end = ranks == 1 ? "" : "s";
    double quota = 0;
    const int cores = tool_cores();

    (void)trib_list_each(TRIB_LIST_TOPOLOGY, note_quota, &quota);
    if (quota > 0 && quota < cores && ranks > quota)
        run_say(
            "%d rank%s under a cgroup quota of %g CPU%s: ranks will stall each other",
            ranks, ranks_end, quota, quota == 1 ? "" : "s");
    else if (ranks > cores)
        run_say("%d rank%s on %d core%s: ranks share cores", ranks, ranks_end, cores,
                cores == 1 ? "" : "s");
}

/* Starting ------------------------------------------------------------------------- */

static int open_output(const struct run_options *options, int rank, int which)
{
    char path[4096], what[sizeof(path) + 16];

    snprintf(path, sizeof(path), "%s/rank-%d.%s", options->output_dir, rank,
             which ? "err" : "out");
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0) {
        snprintf(what, sizeof(what), "cannot write %s", path);
        say_no_descriptor(what);
    }
    return fd;
}

/* Create all output files before the first rank starts, so nothing needs to be
 * undone. */
static bool outputs_open(const struct run_options *options)
{
    for (int i = 0; i < 2 * options->ranks; i++) {
        int fd = open_output(options, i / 2, i % 2);
        if (fd < 0)
            return false;
        close(fd);
    }
    return true;
}

static bool open_streams(struct run_job *job, int rank, struct plumbing *plumbing)
{
    for (int i = 0; i < 2; i++) {
        struct run_stream *stream = &job->ranks[rank].streams[i];
        int ends[2];
        if (job->options->output_dir) {
            plumbing->out[i] = open_output(job->options, rank, i);
            if (plumbing->out[i] < 0)
                return false;
            continue;
        }
        if (pipe2(ends, O_CLOEXEC)) {
            say_no_descriptor("cannot create a pipe");
            return false;
        }
        fcntl(ends[0], F_SETFL, O_NONBLOCK);
        stream->fd = ends[0];
        plumbing->out[i] = ends[1];
        stream->sink = &job->sinks[i];
        if (job->options->prefix)
            snprintf(stream->prefix, sizeof(stream->prefix), "[%d] ", rank);
    }
    return true;
}

/*
 * Connect standard input to rank 0. Terminal input is forwarded through a pipe, because
 * ranks run in their own process groups, which may not read from the terminal.
 */
static bool open_input(struct run_job *job, int rank, struct plumbing *plumbing)
{
    int ends[2];

    if (rank == 0 && !isatty(STDIN_FILENO))
        return true;
    if (rank > 0) {
        plumbing->in = open("/dev/null", O_RDONLY | O_CLOEXEC);
        if (plumbing->in < 0)
            say_no_descriptor("cannot open /dev/null");
        return plumbing->in >= 0;
    }
    if (pipe2(ends, O_CLOEXEC)) {
        say_no_descriptor("cannot create a pipe");
        return false;
    }
    plumbing->in = ends[0];
    job->stdin_fd = ends[1];
    fcntl(job->stdin_fd, F_SETFL, O_NONBLOCK);
    return true;
}

static void set_environment(const struct run_job *job, int rank)
{
    char number[16];

    snprintf(number, sizeof(number), "%d", rank);
    setenv("TRIB_RANK", number, 1);
    snprintf(number, sizeof(number), "%d", job->options->ranks);
    setenv("TRIB_SIZE", number, 1);
    setenv("TRIB_ROOT",
           job->options->root ? job->options->root : trib_local_root(job->local), 1);
    setenv("TRIB_KEY", job->key, 0); /* keep a key set by the user */
}

/* Generate the job key. It is passed only through the environment, as arguments are
 * visible to all users. */
static bool make_key(struct run_job *job)
{
    unsigned char bytes[(RUN_KEY_TEXT - 1) / 2];

    if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
        return false;
    for (size_t i = 0; i < sizeof(bytes); i++)
        snprintf(job->key + 2 * i, 3, "%02x", bytes[i]);
    return true;
}

/* Set up the child and exec the program. */
static void __attribute__((noreturn))
become_rank(const struct run_job *job, int rank, const struct plumbing *plumbing,
            pid_t parent)
{
    /* A separate process group lets signals reach the program's children as well. */
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(RUN_EXIT_SELF);
    bind_rank(job->options, rank);
    set_environment(job, rank);
    trib_local_inherit(job->local);
    if (plumbing->in >= 0)
        dup2(plumbing->in, STDIN_FILENO);
    dup2(plumbing->out[0], STDOUT_FILENO);
    dup2(plumbing->out[1], STDERR_FILENO);
    signal(SIGPIPE, SIG_DFL);
    tool_signals();
    (void)setrlimit(RLIMIT_NOFILE, &job->files);
    signal(SIGXFSZ, SIG_DFL);
    execvp(job->options->program[0], job->options->program);
    int error = errno;
    if (write(plumbing->report, &error, sizeof(error)) < 0)
        _exit(RUN_EXIT_SELF);
    _exit(RUN_EXIT_NOT_FOUND);
}

static void close_plumbing(struct plumbing *plumbing)
{
    int *fds[] = {&plumbing->in, &plumbing->out[0], &plumbing->out[1],
                  &plumbing->report};

    for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++) {
        if (*fds[i] >= 0)
            close(*fds[i]);
        *fds[i] = -1;
    }
}

/* Return 0 once exec has succeeded, which closes the pipe; else the exit code. */
static int await_exec(const struct run_options *options, int fd)
{
    int error = 0;
    ssize_t n;

    do
        n = read(fd, &error, sizeof(error));
    while (n < 0 && errno == EINTR);
    if (n != (ssize_t)sizeof(error))
        return 0;
    run_say("cannot run %s: %s", options->program[0], strerror(error));
    return error == ENOENT || error == ENOTDIR ? RUN_EXIT_NOT_FOUND
                                               : RUN_EXIT_CANNOT_EXECUTE;
}

static int start_rank(struct run_job *job, int rank)
{
    struct run_rank *r = &job->ranks[rank];
    struct plumbing plumbing = {-1, {-1, -1}, -1};
    int report[2];
    int code = RUN_EXIT_SELF;
    pid_t self = getpid();

    if (pipe2(report, O_CLOEXEC)) {
        say_no_descriptor("cannot create a pipe");
        return code;
    }
    plumbing.report = report[1];
    if (!open_input(job, rank, &plumbing) || !open_streams(job, rank, &plumbing))
        goto out;
    r->pid = fork();
    if (r->pid == 0)
        become_rank(job, rank, &plumbing, self);
    if (r->pid < 0) {
        run_say("cannot start rank %d: %s", rank, strerror(errno));
        goto out;
    }
    /* Also in the parent, so that it is done before either continues. */
    setpgid(r->pid, r->pid);
    if (job->local)
        trib_local_set_pid(job->local, rank, r->pid);
    job->started++;
    close_plumbing(&plumbing);
    code = await_exec(job->options, report[0]);
out:
    close_plumbing(&plumbing);
    close(report[0]);
    return code;
}

/* Close pipe ends inherited by a forked child of trib-run. Open copies would hide from
 * ranks that their output has no reader, and from rank 0 the end of its input. */
static void close_pipes(const struct run_job *job)
{
    for (int i = 0; i < job->options->ranks * 2; i++)
        if (job->ranks[i / 2].streams[i % 2].fd >= 0)
            close(job->ranks[i / 2].streams[i % 2].fd);
    if (job->stdin_fd >= 0)
        close(job->stdin_fd);
}

/*
 * Start the keeper, which kills the ranks' process groups if trib-run dies by SIGKILL.
 * PR_SET_PDEATHSIG kills only the ranks themselves, not a program started by a shell.
 */
static int start_keeper(struct run_job *job)
{
    int ends[2];
    char byte;

    if (pipe2(ends, O_CLOEXEC)) {
        say_no_descriptor("cannot create a pipe");
        return RUN_EXIT_SELF;
    }
    job->keeper = fork();
    if (job->keeper == 0) {
        setsid();
        close(ends[1]);
        close_pipes(job);
        while (read(ends[0], &byte, 1) < 0 && errno == EINTR)
            continue;
        run_kill(job, SIGKILL);
        _exit(0);
    }
    close(ends[0]); /* ends[1] closes when trib-run exits */
    if (job->keeper < 0) {
        run_say("cannot fork: %s", strerror(errno));
        return RUN_EXIT_SELF;
    }
    return 0;
}

static int prepare(struct run_job *job)
{
    const struct run_options *options = job->options;

    job->stdin_fd = -1;
    job->sinks[0].fd = STDOUT_FILENO;
    job->sinks[1].fd = STDERR_FILENO;
    job->ranks = calloc((size_t)options->ranks, sizeof(*job->ranks));
    if (!job->ranks) {
        run_say("out of memory");
        return RUN_EXIT_SELF;
    }
    if (!make_key(job)) {
        run_say("cannot generate the job key (getrandom): %s", strerror(errno));
        return RUN_EXIT_SELF;
    }
    for (int i = 0; i < options->ranks; i++)
        job->ranks[i].streams[0].fd = job->ranks[i].streams[1].fd = -1;
    if (!options->root) {
        if (trib_local_create(options->ranks, &job->local) != TRIB_OK) {
            run_say("cannot set up the local rendezvous: %s", trib_last_error(NULL));
            return RUN_EXIT_SELF;
        }
    }
    if (options->output_dir && mkdir(options->output_dir, 0777) && errno != EEXIST) {
        run_say("cannot create directory %s: %s", options->output_dir, strerror(errno));
        return RUN_EXIT_SELF;
    }
    return !options->output_dir || outputs_open(options) ? 0 : RUN_EXIT_SELF;
}

int run_start(struct run_job *job)
{
    int code = prepare(job);

    if (code == 0 && job->options->bind == TOOL_BIND_CORE)
        warn_shared_cores(job->options->ranks);
    if (code == 0)
        tool_bind_say("trib-run", job->options->bind, job->options->ranks);
    for (int rank = 0; rank < job->options->ranks && code == 0; rank++)
        code = start_rank(job, rank);
    return code ? code : start_keeper(job);
}

void run_kill(const struct run_job *job, int signal)
{
    for (int rank = 0; rank < job->started; rank++)
        if (!job->ranks[rank].ended)
            kill(-job->ranks[rank].pid, signal);
}

/*
 * Reap processes started by the ranks: they were killed with the ranks and reparented
 * to this process. Only a daemon in its own session survives.
 */
static void reap_orphans(void)
{
    for (int ms = 0; ms < REAP_MS; ms++) {
        pid_t pid;
        do
            pid = waitpid(-1, NULL, WNOHANG);
        while (pid > 0);
        if (pid < 0)
            return; /* no children left */
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
}

void run_close_streams(struct run_job *job, const struct run_sink *sink)
{
    for (int i = 0; i < job->started * 2; i++)
        if (job->ranks[i / 2].streams[i % 2].sink == sink)
            run_stream_close(&job->ranks[i / 2].streams[i % 2]);
}

void run_finish(struct run_job *job)
{
    if (job->keeper > 0)
        kill(job->keeper, SIGKILL);
    reap_orphans();
    for (int rank = 0; job->ranks && rank < job->options->ranks; rank++)
        for (int i = 0; i < 2; i++)
            run_stream_close(&job->ranks[rank].streams[i]);
    free(job->ranks);
    free(job->sinks[0].text);
    free(job->sinks[1].text);
    trib_local_destroy(job->local);
}
