/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands of tribctl: kick a job, forget snapshots, drain the service. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "agg/daemon/server_parts.h"
#include "base/time.h"

/* Return the client of a job number or of a unique job name; NULL: say has the
 * reason. */
static struct client *named(struct server *s, const char *what, char *say, size_t bytes)
{
    struct client *found = NULL;
    int n = 0;

    for (int i = 0; i < s->n_clients; i++) {
        struct client *c = s->clients[i];
        char number[24];
        snprintf(number, sizeof(number), "%" PRIu64, c->job);
        if (!c->job || (!c->session && !c->store) || c->left)
            continue;
        if (strcmp(number, what) == 0)
            return c;
        if (strcmp(c->join.job, what) == 0) {
            found = c;
            n++;
        }
    }
    if (n > 1)
        snprintf(say, bytes,
                 "%d jobs are named %.64s: use the job number shown by tribctl jobs", n,
                 what);
    else if (n == 0)
        snprintf(say, bytes, "no job %.64s", what);
    return n == 1 ? found : NULL;
}

/* "JOB", or "JOB REASON": job names have no blanks. */
static bool kick(struct server *s, const struct ctl_request *request, char *say,
                 size_t bytes)
{
    const char *what = request->what;
    char name[CTL_LINE], text[CTL_LINE + 80];
    const size_t n = strcspn(what, " ");
    const char *why = what + n + strspn(what + n, " ");

    snprintf(name, sizeof(name), "%.*s", (int)n, what);
    struct client *c = named(s, name, say, bytes);
    if (!c)
        return false;
    assert(c->job && !c->left);
    snprintf(say, bytes,
             c->store ? "ended store %s; its vectors are deleted"
                      : "ended job %s; its ranks continue without aggregators",
             c->join.job);
    snprintf(text, sizeof(text), "the operator ended the job there (tribctl kick)%s%s",
             why[0] ? ": " : "", why);
    trib_log(&s->log, TRIB_LOG_INFO, "tribd",
             "job %s was kicked%s%s (by uid %u, process %u)", c->join.job,
             why[0] ? ": " : "", why, request->uid, request->pid);
    if (c->session)
        (void)trib_session_end(c->session, TRIB_ERR_ABORTED, "%s", text);
    c->lost = TRIB_LOST_FOR_KICKED;
    server_hang_up_saying(s, c, text);
    return true;
}

/* "JOB", or "JOB VECTOR". It is done once the files are deleted: a tribd that is killed
 * before would list the snapshots again. */
static bool forget(struct server *s, const struct ctl_request *request, char *say,
                   size_t bytes, uint64_t *later_out)
{
    bool done = false;

    if (s->archive)
        done = archive_forget(s->archive, request->what, say, bytes, later_out);
    else
        snprintf(say, bytes, "snapshots are disabled: the setting snapshots is empty");
    if (done)
        trib_log(&s->log, TRIB_LOG_INFO, "tribd",
                 "snapshots of %s: %s (by uid %u, process %u)", request->what, say,
                 request->uid, request->pid);
    return done;
}

bool server_is_settled(void *arg, uint64_t later)
{
    const struct server *s = arg;

    return archive_is_deleted(s->archive, later);
}

bool server_control(void *arg, const struct ctl_request *request, char *say,
                    size_t bytes, uint64_t *later_out)
{
    struct server *s = arg;

    *later_out = 0;
    assert(request->verb && request->what);
    if (strcmp(request->verb, "kick") == 0)
        return kick(s, request, say, bytes);
    if (strcmp(request->verb, "forget") == 0)
        return forget(s, request, say, bytes, later_out);
    if (strcmp(request->verb, "drain") != 0) {
        snprintf(say, bytes, "unknown command %.64s: use drain, kick JOB or forget JOB",
                 request->verb);
        return false;
    }
    if (!s->draining)
        server_drain(s, request->uid, request->pid);
    snprintf(say, bytes,
             "tribd accepts no new jobs and will exit within %d ms; running jobs: %u",
             trib_deadline_left_ms(s->drain_until), trib_jobs_view(s->jobs).held.jobs);
    return true;
}
