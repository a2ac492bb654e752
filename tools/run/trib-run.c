/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trib-run: start ranks on this host; forward their output and signals, and collect
 * their exit codes.
 */
#include "tools/common/tool.h"
#include "tools/common/trace_merge.h"
#include "tools/run/run_parts.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define KILL_AFTER_MS 5000 /* between SIGTERM and SIGKILL */
#define DRAIN_AFTER_MS 1000 /* to drain output of processes that outlive their rank */
#define NEVER INT64_MAX

enum stage {
    STAGE_RUN, /* no failure */
    STAGE_WAIT, /* a rank or the output failed; others may exit until next_at */
    STAGE_TERM, /* SIGTERM sent; SIGKILL follows at next_at */
    STAGE_KILL, /* SIGKILL sent */
};

struct supervisor {
    struct run_job job;
    enum stage stage;
    int64_t next_at; /* end of the stage, ms */
    int64_t timeout_at; /* ms */
    int64_t drain_at; /* when to close open pipes of exited ranks, ms */
    int live;
    int code; /* exit code of the first failure */
    int signals; /* number of SIGINT and SIGTERM received */
    bool reported[2]; /* a broken sink has been reported */
    bool deaf; /* output is lost: do not report ranks killed by SIGPIPE */
    int signal_fd;
    char input[4096]; /* terminal input on its way to rank 0 */
    size_t input_len;
    struct pollfd *polls;
    struct run_stream **streams; /* streams of s->polls, from POLL_STREAMS on */
};

static int64_t now_ms(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* Ends ----------------------------------------------------------------------------- */

static void enter(struct supervisor *s, enum stage stage)
{
    s->stage = stage;
    switch (stage) {
    case STAGE_RUN:
        break;
    case STAGE_WAIT:
        s->next_at = now_ms() + (int64_t)(s->job.options->grace_s * 1000);
        break;
    case STAGE_TERM:
        s->next_at = now_ms() + KILL_AFTER_MS;
        run_kill(&s->job, SIGTERM);
        run_kill(&s->job, SIGCONT); /* a stopped process does not receive SIGTERM */
        break;
    case STAGE_KILL:
        s->next_at = NEVER;
        run_kill(&s->job, SIGKILL);
        break;
    }
}

static void say_end(const struct supervisor *s, int rank)
{
    const struct run_rank *r = &s->job.ranks[rank];
    char others[64] = "";

    if (s->stage == STAGE_RUN && s->live > 0)
        snprintf(others, sizeof(others), "; the other ranks have %g s to exit",
                 s->job.options->grace_s);
    if (WIFSIGNALED(r->status))
        run_say("rank %d (process %d) was killed by signal %d (%s)%s", rank,
                (int)r->pid, WTERMSIG(r->status), strsignal(WTERMSIG(r->status)),
                others);
    else
        run_say("rank %d (process %d) exited with %d%s", rank, (int)r->pid,
                WEXITSTATUS(r->status), others);
}

/* Return true if SIGPIPE killed the rank, or the last program of a shell that is the
 * rank. */
static bool by_sigpipe(int status)
{
    return WIFSIGNALED(status) ? WTERMSIG(status) == SIGPIPE
                               : WEXITSTATUS(status) == RUN_EXIT_PIPE;
}

static void rank_ended(struct supervisor *s, int rank)
{
    int status = s->job.ranks[rank].status;

    s->live--;
    if (s->live == 0)
        s->drain_at = now_ms() + DRAIN_AFTER_MS;
    if (status == 0 || s->job.started < s->job.options->ranks)
        return; /* success, or the job did not start, which was reported */
    if (!s->deaf || !by_sigpipe(status))
        say_end(s, rank);
    if (!s->code)
        s->code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    if (s->stage == STAGE_RUN)
        enter(s, STAGE_WAIT);
}

/* Kill all ranks after a system call failed that trib-run depends on; errno holds the
 * cause. */
static void give_up(struct supervisor *s, const char *what)
{
    run_say("%s: %s: killing all ranks", what, strerror(errno));
    s->code = RUN_EXIT_SELF;
    enter(s, STAGE_KILL);
    s->live = 0;
    s->drain_at = now_ms();
}

static int find_rank(const struct supervisor *s, pid_t pid)
{
    for (int i = 0; i < s->job.started; i++)
        if (!s->job.ranks[i].ended && s->job.ranks[i].pid == pid)
            return i;
    return -1;
}

static void reap(struct supervisor *s)
{
    for (;;) {
        siginfo_t info = {0};
        if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT)) {
            if (errno != EINTR && s->live > 0)
                give_up(s, "cannot wait for the ranks");
            return;
        }
        if (info.si_pid == 0)
            return;
        int rank = find_rank(s, info.si_pid);
        int status = 0;
        /* Kill the rank's remaining processes before reaping the rank: until then its
         * PID cannot be reused. */
        if (rank >= 0)
            kill(-info.si_pid, SIGKILL);
        waitpid(info.si_pid, &status, 0);
        if (info.si_pid == s->job.keeper)
            s->job.keeper = 0;
        if (rank < 0)
            continue; /* an orphan reparented to this process */
        s->job.ranks[rank].ended = true;
        s->job.ranks[rank].status = status;
        rank_ended(s, rank);
    }
}

/* Signals -------------------------------------------------------------------------- */

static void handle_signal(struct supervisor *s, int signal)
{
    switch (signal) {
    case SIGCHLD:
        reap(s);
        return;
    case SIGUSR1:
        run_show_state(&s->job);
        run_pass_caught(&s->job, signal);
        return;
    case SIGTSTP:
        run_kill(&s->job, SIGSTOP);
        raise(SIGSTOP);
        run_kill(&s->job, SIGCONT);
        return;
    case SIGINT:
    case SIGTERM:
        if (++s->signals > 1) {
            enter(s, STAGE_KILL);
            return;
        }
        break;
    default:
        break;
    }
    run_kill(&s->job, signal);
}

static void read_signals(struct supervisor *s)
{
    struct signalfd_siginfo info;

    while (read(s->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
        handle_signal(s, (int)info.ssi_signo);
}

/* Signals ignored at start (nohup) stay ignored, also in the ranks. */
static int open_signals(void)
{
    static const int wanted[] = {SIGCHLD, SIGINT,  SIGTERM, SIGHUP,
                                 SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP};
    sigset_t set;

    sigemptyset(&set);
    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        struct sigaction old;
        if (sigaction(wanted[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            sigaddset(&set, wanted[i]);
    }
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Output --------------------------------------------------------------------------- */

/*
 * Output is lost from now on. Ranks that write get SIGPIPE, as without trib-run; the
 * others are terminated after the grace period. Print nothing if the reader closed the
 * pipe (head, a pager), as shells do.
 */
static void sink_broke(struct supervisor *s, int which)
{
    const int error = s->job.sinks[which].broken;

    s->reported[which] = true;
    s->deaf = true;
    run_close_streams(&s->job, &s->job.sinks[which]);
    if (error != EPIPE)
        run_say("cannot write to standard %s: %s; terminating the ranks",
                which ? "error" : "output", strerror(error));
    if (!s->code)
        s->code = error == EPIPE ? RUN_EXIT_PIPE : RUN_EXIT_SELF;
    if (s->stage == STAGE_RUN)
        enter(s, STAGE_WAIT);
}

static void write_sinks(struct supervisor *s)
{
    for (int i = 0; i < 2; i++) {
        run_sink_write(&s->job.sinks[i]);
        if (s->job.sinks[i].broken && !s->reported[i])
            sink_broke(s, i);
    }
}

/* The loop ------------------------------------------------------------------------- */

static void check_clock(struct supervisor *s)
{
    int64_t now = now_ms();

    if (now >= s->timeout_at && s->live > 0) {
        run_say("timeout of %g s expired: terminating the ranks",
                s->job.options->timeout_s);
        s->timeout_at = NEVER;
        if (!s->code)
            s->code = RUN_EXIT_TIMEOUT;
        if (s->stage < STAGE_TERM)
            enter(s, STAGE_TERM);
    }
    if (now < s->next_at || s->live == 0)
        return;
    if (s->stage == STAGE_WAIT && s->code == RUN_EXIT_PIPE)
        run_say("standard output has no reader left: terminating the remaining ranks");
    if (s->stage == STAGE_WAIT)
        enter(s, STAGE_TERM);
    else if (s->stage == STAGE_TERM)
        enter(s, STAGE_KILL);
}

static int poll_timeout(const struct supervisor *s)
{
    int64_t at = s->next_at < s->timeout_at ? s->next_at : s->timeout_at;

    if (s->live == 0)
        at = s->drain_at;
    if (at == NEVER)
        return s->job.stdin_fd >= 0
                   ? 1000
                   : -1; /* poll for a change of the foreground process group */
    int64_t left = at - now_ms();
    return left < 0 ? 0 : left > 60000 ? 60000 : (int)left;
}

static bool may_read_terminal(const struct supervisor *s)
{
    return s->job.stdin_fd >= 0 && s->input_len == 0 &&
           tcgetpgrp(STDIN_FILENO) == getpgrp();
}

static void end_input(struct supervisor *s)
{
    close(s->job.stdin_fd);
    s->job.stdin_fd = -1;
}

static void pass_input(struct supervisor *s)
{
    if (s->input_len == 0) {
        ssize_t n = read(STDIN_FILENO, s->input, sizeof(s->input));
        if (n <= 0) {
            end_input(s);
            return;
        }
        s->input_len = (size_t)n;
    }
    ssize_t n = write(s->job.stdin_fd, s->input, s->input_len);
    if (n < 0 && errno != EAGAIN && errno != EINTR) {
        end_input(s);
    } else if (n > 0) {
        s->input_len -= (size_t)n;
        memmove(s->input, s->input + n, s->input_len);
    }
}

/* Fixed indices in s->polls. The open streams follow, at most two per rank: the kernel
 * rejects more entries than RLIMIT_NOFILE. */
enum { POLL_SIGNALS, POLL_SINK0, POLL_SINK1, POLL_INPUT, POLL_STREAMS };

static int fill_polls(struct supervisor *s)
{
    struct run_job *job = &s->job;
    int n = POLL_STREAMS;

    s->polls[POLL_SIGNALS] = (struct pollfd){s->signal_fd, POLLIN, 0};
    for (int i = 0; i < 2; i++)
        s->polls[POLL_SINK0 + i] =
            (struct pollfd){job->sinks[i].len ? job->sinks[i].fd : -1, POLLOUT, 0};
    s->polls[POLL_INPUT] = (struct pollfd){-1, 0, 0};
    if (may_read_terminal(s))
        s->polls[POLL_INPUT] = (struct pollfd){STDIN_FILENO, POLLIN, 0};
    else if (job->stdin_fd >= 0 && s->input_len)
        s->polls[POLL_INPUT] = (struct pollfd){job->stdin_fd, POLLOUT, 0};
    for (int i = 0; i < job->started * 2; i++) {
        struct run_stream *stream = &job->ranks[i / 2].streams[i % 2];
        if (!run_stream_wants(stream))
            continue;
        s->streams[n - POLL_STREAMS] = stream;
        s->polls[n++] = (struct pollfd){stream->fd, POLLIN, 0};
    }
    return n;
}

static bool streams_open(const struct run_job *job)
{
    for (int i = 0; i < job->started * 2; i++)
        if (job->ranks[i / 2].streams[i % 2].fd >= 0)
            return true;
    return false;
}

/* Unwritten output keeps trib-run alive; pipes held open by other processes do not. */
static bool finished(const struct supervisor *s)
{
    const struct run_job *job = &s->job;

    if (s->live > 0 || job->sinks[0].len || job->sinks[1].len)
        return false;
    return !streams_open(job) || now_ms() >= s->drain_at;
}

static void supervise(struct supervisor *s)
{
    while (!finished(s) && (s->live > 0 || s->signals < 2)) {
        int n = fill_polls(s);
        if (poll(s->polls, (nfds_t)n, poll_timeout(s)) < 0 && errno != EINTR) {
            give_up(s, "cannot monitor the ranks (poll)");
            return;
        }
        if (s->polls[POLL_INPUT].revents)
            pass_input(s);
        for (int i = POLL_STREAMS; i < n; i++) {
            if (s->polls[i].revents && !run_stream_read(s->streams[i - POLL_STREAMS])) {
                run_say("out of memory");
                enter(s, STAGE_KILL);
            }
        }
        write_sinks(s);
        if (s->polls[POLL_SIGNALS].revents)
            read_signals(s);
        check_clock(s);
    }
}

/* Finish the trace; a failure here fails an otherwise successful job. */
static void end_trace(struct tool_trace *trace, int *code)
{
    char why[8448];

    if (tool_trace_end(trace, why, sizeof(why)))
        return;
    run_say("%s", why);
    if (!*code)
        *code = RUN_EXIT_SELF;
}

static int run_main(int argc, char **argv)
{
    struct run_options options = {
        .prefix = true, .grace_s = 10, .bind = TOOL_BIND_AUTO};
    struct supervisor s = {.job = {.options = &options, .stdin_fd = -1},
                           .next_at = NEVER,
                           .timeout_at = NEVER,
                           .drain_at = NEVER};

    tool_signals();
    tool_open_files(&s.job.files);
    int code = run_parse_options(argc, argv, &options);
    char why[8448];

    if (code >= 0)
        return code;
    struct tool_trace trace = {.file = options.trace};
    if (!tool_trace_begin(&trace, why, sizeof(why))) {
        run_say("%s", why);
        return RUN_EXIT_SELF;
    }
    s.polls = calloc(POLL_STREAMS + 2 * (size_t)options.ranks, sizeof(*s.polls));
    s.streams = calloc(2 * (size_t)options.ranks, sizeof(*s.streams));
    s.signal_fd = open_signals();
    if (!s.polls || !s.streams || s.signal_fd < 0) {
        run_say("cannot start: %s", strerror(errno));
        return RUN_EXIT_SELF;
    }
    prctl(PR_SET_CHILD_SUBREAPER,
          1); /* orphans of ranks are reparented to this process */
    if (options.timeout_s > 0)
        s.timeout_at = now_ms() + (int64_t)(options.timeout_s * 1000);
    s.code = run_start(&s.job);
    s.live = s.job.started;
    if (s.live == 0)
        s.drain_at = now_ms();
    if (s.code)
        enter(&s, STAGE_KILL);
    supervise(&s);
    run_finish(&s.job);
    end_trace(&trace, &s.code);
    free(s.polls);
    free(s.streams);
    close(s.signal_fd);
    return s.code;
}

int main(int argc, char **argv)
{
    tool_begin();
    return tool_end("trib-run", run_main(argc, argv));
}
