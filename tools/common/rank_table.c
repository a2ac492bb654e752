/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/common/rank_table.h"

#include <pwd.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <tributary/info.h>

enum {
    INDENT =
        44, /* columns before a rank's activity, for host names up to HOST letters */
    HOST = 12,
    NARROWEST = 20, /* minimum columns for the activity */
};

int tool_terminal_width(int fd)
{
    struct winsize size = {0};

    if (!isatty(fd))
        return 0;
    return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : 80;
}

const char *tool_bytes_text(double bytes, char text[24])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    int unit = 0;

    for (; bytes >= 1024 && unit < 6; unit++)
        bytes /= 1024;
    snprintf(text, 24, "%.*f %s", bytes < 10 && unit ? 1 : 0, bytes, units[unit]);
    return text;
}

/* Return the length of the words that fit on a line; at least one word. */
static size_t line_of(const char *text, size_t room)
{
    size_t end = strlen(text), at = 0;

    if (end <= room)
        return end;
    for (size_t i = 1; i <= room; i++)
        if (text[i] == ' ')
            at = i;
    return at ? at : end;
}

static void print_text(const struct tool_rank_table *table, const char *text)
{
    const int left = table->width - INDENT;
    const size_t room = table->width == 0  ? SIZE_MAX
                        : left < NARROWEST ? NARROWEST
                                           : (size_t)left;

    for (;;) {
        const size_t n = line_of(text, room);
        fprintf(table->out, "%.*s\n", (int)n, text);
        text += n;
        text += strspn(text, " ");
        if (!*text)
            return;
        fprintf(table->out, "%*s", INDENT, "");
    }
}

static void print_head(struct tool_rank_table *table)
{
    if (table->rows++ == 0)
        fprintf(table->out, "%6s %8s  %-*s %11s  %s\n", "rank", "process", HOST, "host",
                "bytes", "does");
}

/* Name the user if not the caller: root sees the ranks of all users. */
static const char *of_user(const trib_rank_state_t *s, char text[64])
{
    const struct passwd *found = s->user == geteuid() ? NULL : getpwuid((uid_t)s->user);

    if (s->user == geteuid())
        text[0] = '\0';
    else if (found)
        snprintf(text, 64, ", user %s", found->pw_name);
    else
        snprintf(text, 64, ", user %u", (unsigned)s->user);
    return text;
}

/* Print a heading when the communicator changes; its ranks are listed together. */
static void print_job(struct tool_rank_table *table, const trib_rank_state_t *s)
{
    char job[sizeof(table->job)], user[64];

    snprintf(job, sizeof(job), "%s%s%d ranks, rank 0 is process %d on %s%s",
             s->part[0] ? s->part : "job", s->part[0] ? " of a job, " : ", ", s->ranks,
             s->root_pid, s->root_host, of_user(s, user));
    if (strcmp(job, table->job) == 0)
        return;
    snprintf(table->job, sizeof(table->job), "%s", job);
    fprintf(table->out, "%s\n", job);
}

static void print_rank(void *arg, const trib_rank_state_t *s)
{
    struct tool_rank_table *table = arg;
    char moved[24];

    if (!s->part[0] && table->seen && s->rank < table->ranks)
        table->seen[s->rank] = true;
    /* Idle sub-communicators add no information. */
    if (s->part[0] && !s->busy && !s->failed && !s->awaits[0])
        return;
    print_head(table);
    print_job(table, s);
    fprintf(table->out, "%6d %8d  %-*.*s %11s  ", s->rank, s->pid, HOST, HOST, s->host,
            tool_bytes_text((double)s->sent + (double)s->received, moved));
    print_text(table, s->text);
}

bool tool_rank_table_print(struct tool_rank_table *table, int pid)
{
    return trib_ranks_each(pid, print_rank, table) == TRIB_OK;
}

void tool_rank_table_row(struct tool_rank_table *table, int rank, int pid,
                         const char *what)
{
    print_head(table);
    fprintf(table->out, "%6d %8d  %-*s %11s  ", rank, pid, HOST, "", "");
    print_text(table, what);
}
