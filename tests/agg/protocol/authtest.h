/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared by tests of authentication: a folder with key files, a separate munged, and
 * two sides whose frames can be inspected and changed in transit.
 */
#ifndef TESTS_AGG_PROTOCOL_AUTHTEST_H
#define TESTS_AGG_PROTOCOL_AUTHTEST_H

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "agg/protocol/auth.h"
#include "base/error.h"
#include "base/time.h"
#include "tests/harness/tribtest.h"

#define AUTHTEST_FRAMES 8 /* more than a handshake has */

static char authtest_folder[64];

static inline char *authtest_path(const char *name, char path[128])
{
    snprintf(path, 128, "%s/%s", authtest_folder, name);
    return path;
}

/* Create a file of n bytes that depend on `seed`. */
static inline void authtest_file(const char *name, size_t n, mode_t mode, unsigned seed)
{
    char path[128];
    uint8_t bytes[8192];

    assert_true(n <= sizeof(bytes));
    for (size_t i = 0; i < n; i++)
        bytes[i] = (uint8_t)(i * 37 + seed * 101 + 5);
    unlink(authtest_path(name, path));
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, n), n);
    assert_int_equal(fchmod(fd, mode), 0);
    close(fd);
}

/* Allow one more user to read the file, and the group as `group` says, with an access
 * control list. Return false if the file system has none. */
static inline bool authtest_list(const char *name, unsigned user, unsigned group)
{
    char path[128];
    const unsigned entries[][3] = {{ACL_USER_OBJ, 4, ACL_UNDEFINED_ID},
                                   {ACL_USER, 4, user},
                                   {ACL_GROUP_OBJ, group, ACL_UNDEFINED_ID},
                                   {ACL_MASK, 4, ACL_UNDEFINED_ID},
                                   {ACL_OTHER, 0, ACL_UNDEFINED_ID}};
    struct {
        struct posix_acl_xattr_header head;
        struct posix_acl_xattr_entry entries[5];
    } acl = {.head.a_version = htole32(POSIX_ACL_XATTR_VERSION)};

    for (int i = 0; i < 5; i++)
        acl.entries[i] = (struct posix_acl_xattr_entry){
            htole16(entries[i][0]), htole16(entries[i][1]), htole32(entries[i][2])};
    if (!setxattr(authtest_path(name, path), "system.posix_acl_access", &acl,
                  sizeof(acl), 0))
        return true;
    assert_int_equal(errno, EOPNOTSUPP);
    return false;
}

static inline int authtest_begin(void **state)
{
    const char *top = getenv("TMPDIR");

    (void)state;
    snprintf(authtest_folder, sizeof(authtest_folder), "%s/tribauth-XXXXXX",
             top && strlen(top) < 40 ? top : "/tmp");
    if (!mkdtemp(authtest_folder) || chmod(authtest_folder, 0711))
        return -1;
    authtest_file("key", 32, 0600, 1);
    authtest_file("same", 32, 0400, 1);
    authtest_file("third", 32, 0400, 5);
    authtest_file("other", 32, 0600, 2);
    return 0;
}

static inline int authtest_end(void **state)
{
    char command[128];

    (void)state;
    snprintf(command, sizeof(command), "rm -rf '%s'", authtest_folder);
    return system(command);
}

/* munged
 * --------------------------------------------------------------------------------- */

struct munged {
    pid_t pid; /* 0: not installed */
    char socket[128];
};

static inline trib_status_t authtest_open(const char *method, const char *key,
                                          const struct munged *munged,
                                          struct trib_error *err,
                                          struct trib_auth **out)
{
    char path[128];
    struct trib_auth_opts opts = {.method = method,
                                  .key_file = key ? authtest_path(key, path) : NULL,
                                  .munge_socket = munged ? munged->socket
                                                         : "/nonexistent/munge.socket"};

    return trib_auth_open(&opts, err, out);
}

/* Open an aggregator that accepts two keys. */
static inline trib_status_t authtest_open_keys(const char *key, const char *previous,
                                               struct trib_error *err,
                                               struct trib_auth **out)
{
    char path[128], previous_path[128];
    const struct trib_auth_opts opts = {
        .method = "key",
        .key_file = authtest_path(key, path),
        .previous_key_file = authtest_path(previous, previous_path),
    };

    return trib_auth_open(&opts, err, out);
}

static inline bool munged_answers(const struct munged *munged)
{
    struct trib_auth *auth = NULL;
    bool answers = authtest_open("munge", NULL, munged, NULL, &auth) == TRIB_OK;

    trib_auth_free(auth);
    return answers;
}

/* Start a munged with a separate realm; it ends with this process. */
static inline void munged_start(const char *name, unsigned seed, struct munged *out)
{
    char options[5][160];
    static const char *const what[5] = {"key-file", "socket", "pid-file", "log-file",
                                        "seed-file"};
    char path[128];
    char file[64];

    out->pid = 0;
    if (access("/usr/sbin/munged", X_OK))
        return;
    snprintf(file, sizeof(file), "%s.key-file", name);
    authtest_file(file, 1024, 0400, seed);
    for (int i = 0; i < 5; i++) {
        snprintf(file, sizeof(file), "%s.%s", name, what[i]);
        snprintf(options[i], sizeof(options[i]), "--%s=%s", what[i],
                 authtest_path(file, path));
        if (i == 1)
            memcpy(out->socket, path, sizeof(path));
    }
    fflush(NULL);
    out->pid = fork();
    assert_true(out->pid >= 0);
    if (out->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        int null = open("/dev/null", O_RDWR);
        dup2(null, 1);
        dup2(null, 2);
        execl("/usr/sbin/munged", "munged", "--foreground", "--force", options[0],
              options[1], options[2], options[3], options[4], (char *)NULL);
        _exit(127);
    }
    uint64_t deadline = trib_deadline_ms(tribtest_patience_ms());
    while (!munged_answers(out)) {
        assert_false(trib_deadline_passed(deadline));
        assert_int_equal(waitpid(out->pid, NULL, WNOHANG), 0);
        nanosleep(&(struct timespec){0, 20000000}, NULL);
    }
}

static inline void munged_stop(struct munged *munged)
{
    if (munged->pid <= 0)
        return;
    kill(munged->pid, SIGKILL);
    waitpid(munged->pid, NULL, 0);
    munged->pid = 0;
}

/* Two sides
 * ------------------------------------------------------------------------------ */

struct frame {
    enum trib_control_role from;
    size_t n;
    uint8_t bytes[TRIB_CONTROL_EARLY_BYTES];
};

struct side {
    enum trib_control_role role;
    const struct trib_auth *auth;
    uid_t uid; /* user it runs as; 0: the user of the test */
    struct trib_handshake *hs;
    struct trib_error err;
    trib_status_t status; /* of the last frame; TRIB_OK: it trusts the other side */
};

struct meeting {
    struct side job;
    struct side aggregator;
    struct frame sent[AUTHTEST_FRAMES]; /* as sent */
    int n_sent;
    /* May change a frame in transit; false: the frame is lost. */
    bool (*meddle)(struct meeting *m, struct frame *frame, int number);
    void *arg;
    int number;
    size_t at;
};

static inline void meeting_begin(struct meeting *m)
{
    struct trib_handshake_opts job = {m->job.auth, TRIB_CONTROL_JOB, "train-7"};
    struct trib_handshake_opts aggregator = {m->aggregator.auth,
                                             TRIB_CONTROL_AGGREGATOR, NULL};

    m->n_sent = 0;
    m->job.role = TRIB_CONTROL_JOB;
    m->aggregator.role = TRIB_CONTROL_AGGREGATOR;
    m->job.status = m->aggregator.status = TRIB_INPROGRESS;
    trib_error_clear(&m->job.err);
    trib_error_clear(&m->aggregator.err);
    assert_ok(trib_handshake_new(&job, &m->job.err, &m->job.hs));
    assert_ok(trib_handshake_new(&aggregator, NULL, &m->aggregator.hs));
}

static inline void meeting_end(struct meeting *m)
{
    trib_handshake_free(m->job.hs);
    trib_handshake_free(m->aggregator.hs);
}

/* Pass a received frame to a side. Return its answer, or a frame of 0 bytes. */
static inline struct frame side_take(struct side *side, const struct frame *in)
{
    struct frame out = {.from = side->role};
    struct trib_control_frame frame;

    if (side->status != TRIB_INPROGRESS)
        return out;
    trib_status_t status = trib_control_parse(in->bytes, in->n, 0, in->from, &frame);
    if (status == TRIB_INPROGRESS)
        return out; /* it waits for more, until its deadline */
    side->status = status;
    if (status != TRIB_OK)
        return out;
    if (side->uid && seteuid(side->uid))
        abort();
    side->status = trib_handshake_take(side->hs, &frame, &side->err, out.bytes, &out.n);
    if (side->uid && seteuid(0))
        abort();
    return out;
}

/* Run from HELLO until neither side sends. */
static inline void meeting_run(struct meeting *m)
{
    struct frame next = {.from = TRIB_CONTROL_JOB};

    meeting_begin(m);
    assert_ok(trib_handshake_begin(m->job.hs, &m->job.err, next.bytes, &next.n));
    while (next.n) {
        assert_in_range(m->n_sent, 0, AUTHTEST_FRAMES - 1);
        m->sent[m->n_sent] = next;
        if (m->meddle && !m->meddle(m, &next, m->n_sent))
            break;
        m->n_sent++;
        next =
            side_take(next.from == TRIB_CONTROL_JOB ? &m->aggregator : &m->job, &next);
    }
}

static inline bool meeting_well(const struct meeting *m)
{
    return m->job.status == TRIB_OK && m->aggregator.status == TRIB_OK;
}

#endif
