/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The newcomer's side of joining a running job, and the port where a rank of the job
 * listens for newcomers.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "boot/launcher.h"
#include "boot/root_place.h"
#include "comm/core/communicator.h"
#include "comm/members/grow.h"
#include "comm/members/wireup.h"
#include "comm/members/wireup_check.h"

void trib_join_request_fill(const struct trib_config *cfg,
                            struct trib_join_request *out)
{
    memset(out, 0, sizeof(*out));
    out->magic = TRIB_JOIN_REQUEST_MAGIC;
    out->version = TRIB_GROW_VERSION;
    out->settings = trib_config_digest(cfg);
    trib_config_same_text(cfg, out->settings_text, sizeof(out->settings_text));
}

bool trib_join_request_fits(const void *ours, const void *theirs, char *why,
                            size_t bytes)
{
    struct trib_join_request a, b;
    char x[128], y[128];

    memcpy(&a, theirs, sizeof(a));
    memcpy(&b, ours, sizeof(b));
    a.settings_text[sizeof(a.settings_text) - 1] = '\0';
    if (a.magic != b.magic || a.version != b.version) {
        snprintf(why, bytes,
                 "the newcomer has another version or machine type than the job: "
                 "install the same version of Tributary");
        return false;
    }
    if (a.settings == b.settings)
        return true;
    trib_wireup_difference(a.settings_text, b.settings_text, x, y, sizeof(x));
    snprintf(why, bytes,
             "the newcomer has %s, the job has %s: give it the same TRIB_* settings", x,
             y);
    return false;
}

bool trib_admission_is_sound(const struct trib_admission *a)
{
    return a->magic == TRIB_ADMISSION_MAGIC && a->version == TRIB_GROW_VERSION &&
           a->members > 0 && a->members < a->size && a->size <= TRIB_LAUNCH_RANKS_MAX &&
           a->rank >= a->members && a->rank < a->size && a->window > 0 &&
           a->window <= 256 && a->window_asked > 0 && a->window_asked <= 256 &&
           a->chunk > 0 && a->chunk <= 16777216 && a->chunk_asked > 0 &&
           a->chunk_asked <= 16777216;
}

/* Return the settings before slots and chunks were fitted to the transport. */
static void settings_as_asked(const struct trib_comm *comm, struct trib_config *out)
{
    *out = comm->cfg;
    out->chunk = comm->chunk_asked;
    out->window = comm->window_asked;
}

/* Listener ------------------------------------------------------------------------- */

/* Create the listener's address. It carries the job's secret, or one of its own if the
 * job has none. */
static trib_status_t make_root(const struct trib_comm *comm, const char *bind,
                               struct trib_error *err, struct trib_root **out,
                               struct trib_secret *secret)
{
    const bool has = comm->secret.is_set;

    assert(!*out);
    char root[TRIB_ROOT_TEXT_MAX], why[160];
    const trib_status_t st = trib_root_make(bind, has ? &comm->secret : NULL, err, out);

    if (st != TRIB_OK)
        return st;
    (void)trib_secret_split(trib_root_text(*out), root, sizeof(root), secret);
    if (secret->is_set)
        (void)trib_secret_arm(secret, why, sizeof(why));
    return TRIB_OK;
}

/* The same warning as for a start without a secret. */
static void warn_unproved(const struct trib_comm *comm, const char *root,
                          const struct trib_secret *secret)
{
    if (!secret->is_set && !trib_boot_is_here(root))
        trib_log(&comm->log, TRIB_LOG_WARN, "boot",
                 "newcomers need no secret, so any process that reaches %s may become "
                 "a rank: set TRIB_KEY to the same 64 hexadecimal digits on all ranks "
                 "(openssl rand -hex 32), and install libsodium",
                 root);
}

static trib_status_t open_listener(struct trib_comm *comm, const char *bind,
                                   struct trib_error *err, struct trib_listener *l)
{
    struct trib_config cfg;
    struct trib_join_request request;
    struct trib_secret secret;
    char root[TRIB_ROOT_TEXT_MAX];
    trib_status_t st = make_root(comm, bind, err, &l->root, &secret);

    if (st != TRIB_OK)
        return st;
    settings_as_asked(comm, &cfg);
    trib_join_request_fill(&cfg, &request);
    snprintf(root, sizeof(root), "%.*s", (int)strcspn(trib_root_text(l->root), "#"),
             trib_root_text(l->root));
    warn_unproved(comm, root, &secret);
    const struct trib_listen_opts opts = {.root = root,
                                          .rank = comm->engine.rank,
                                          .size = comm->engine.size,
                                          .stop_timeout_ms = comm->cfg.stop_timeout_ms,
                                          .log = &comm->log,
                                          .secret = &secret,
                                          .request = &request,
                                          .request_bytes = sizeof(request),
                                          .fits = trib_join_request_fits,
                                          .idle = comm->idle};
    st = trib_listen_open(&opts, err, &l->listen);
    trib_secret_wipe(&secret);
    return st;
}

trib_status_t trib_listener_open(trib_comm_t *comm, const char *bind,
                                 trib_listener_t **listener_out)
{
    struct trib_error err = {0};

    if (!comm)
        return TRIB_ERR_INVALID;
    trib_status_t st = trib_comm_ours(comm, "trib_listener_open");
    if (st != TRIB_OK)
        return st;
    if (!listener_out)
        return trib_comm_fail(comm, TRIB_ERR_INVALID,
                              "trib_listener_open: listener_out is NULL");
    *listener_out = NULL;
    struct trib_listener *l = calloc(1, sizeof(*l));
    if (!l)
        return trib_comm_fail(comm, TRIB_ERR_NO_MEMORY, "no memory for a listener");
    st = open_listener(comm, bind, &err, l);
    if (st != TRIB_OK) {
        trib_root_destroy(l->root);
        free(l);
        return trib_comm_fail(comm, st, "%s", trib_error_text(&err));
    }
    *listener_out = l;
    return TRIB_OK;
}

const char *trib_listener_text(const trib_listener_t *listener)
{
    return listener ? trib_root_text(listener->root) : "";
}

int trib_listener_waiting(trib_listener_t *listener)
{
    return listener ? trib_listen_waiting(listener->listen) : 0;
}

void trib_listener_close(trib_listener_t *listener)
{
    if (!listener)
        return;
    trib_listen_close(listener->listen);
    trib_root_destroy(listener->root);
    free(listener);
}

int trib_comm_members(const trib_comm_t *comm)
{
    return comm->members ? comm->members : comm->engine.ranks;
}

/* Newcomer ------------------------------------------------------------------------- */

struct newcomer {
    struct trib_comm *comm;
    struct trib_boot *boot;
    size_t size; /* of the grown job */
};

/* The allgather of a struct trib_exchange. */
static trib_status_t exchange(void *arg, const char *phase, const void *in,
                              size_t bytes, void *out)
{
    struct newcomer *n = arg;

    return trib_boot_request(n->boot, phase, in, bytes, out, n->size * bytes);
}

static trib_status_t open_boot(struct newcomer *n, const trib_opts_t *opts)
{
    struct trib_comm *comm = n->comm;
    struct trib_boot_opts bopts = {.is_newcomer = true,
                                   .root = opts->root ? opts->root : comm->cfg.root,
                                   .cfg = &comm->cfg,
                                   .idle = comm->idle,
                                   .log = &comm->log,
                                   .err = &comm->err};
    struct trib_secret secret;
    trib_status_t st = trib_secret_given(&secret, &comm->err);

    bopts.secret = &secret;
    if (st == TRIB_OK)
        st = trib_boot_open(&bopts, &n->boot);
    trib_secret_wipe(&secret);
    return st;
}

/* Block until the members admit this newcomer. */
static trib_status_t send_request(struct newcomer *n, struct trib_admission *a)
{
    struct trib_comm *comm = n->comm;
    struct trib_join_request mine;

    trib_join_request_fill(&comm->cfg, &mine);
    const trib_status_t st =
        trib_boot_request(n->boot, "join request", &mine, sizeof(mine), a, sizeof(*a));
    if (st != TRIB_OK)
        return st;
    if (!trib_admission_is_sound(a))
        return trib_fail(&comm->err, TRIB_ERR_PROTOCOL,
                         "the job's admission of this newcomer contains invalid "
                         "numbers: install the same version of Tributary");
    assert(a->rank < a->size && !comm->engine.transport);
    n->size = a->size;
    if (a->has_secret)
        comm->secret = n->boot->secret;
    comm->met = n->boot->met;
    comm->cfg.window = (int)a->window;
    comm->cfg.chunk = a->chunk;
    comm->window_asked = (int)a->window_asked;
    comm->chunk_asked = a->chunk_asked;
    comm->identity = a->identity;
    comm->members = (int)a->members;
    trib_log_set_rank(&comm->log, (int)a->rank);
    snprintf(comm->label, sizeof(comm->label), "%u", a->rank);
    return TRIB_OK;
}

/* Report ready; the reply arrives after all members have committed. */
static trib_status_t be_ready(struct newcomer *n)
{
    int32_t ready = TRIB_OK, verdict;
    const trib_status_t st = trib_boot_request(n->boot, "ready", &ready, sizeof(ready),
                                               &verdict, sizeof(verdict));

    return st == TRIB_OK ? trib_status_of_peer(verdict) : st;
}

trib_status_t trib_comm_join_running(struct trib_comm *comm, const trib_opts_t *opts)
{
    struct newcomer n = {.comm = comm};
    struct trib_admission a;
    trib_status_t st = open_boot(&n, opts);

    if (st != TRIB_OK)
        return st;
    st = send_request(&n, &a);
    if (st == TRIB_OK) {
        struct trib_exchange x = {exchange, &n};
        st = trib_comm_wireup(comm, (int)a.rank, (int)a.size, &x);
    }
    if (st == TRIB_OK)
        st = be_ready(&n);
    if (st != TRIB_OK)
        (n.boot->ops->fail)(n.boot, trib_last_error(comm));
    n.boot->ops->close(n.boot);
    return st;
}
