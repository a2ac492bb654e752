/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ucx: context, worker and endpoints. Call with `lock` held once there are two threads.
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/config.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/quiet.h"
#include "base/time.h"
#include "transport/ucx/ucx.h"

enum { TURNS = 16 }; /* progress calls per poll */

#define LINE_MAX_BYTES 256

void trib_ucx_signal_owner(struct ucx *u)
{
    uint64_t one = 1;

    if (write(u->wakeup_fd, &one, sizeof(one)) < 0)
        return; /* already signalled */
}

/* Return true if UCX's configuration contains `line`, such as "UCX_TLS=all". */
static bool is_set_to(const struct trib_ucx_api *api, const ucp_config_t *config,
                      const char *line)
{
    char *text = NULL, *rest = NULL;
    size_t bytes = 0;
    bool found = false;
    FILE *file = open_memstream(&text, &bytes);

    if (!file)
        return false;
    api->ucp_config_print(config, file, NULL, UCS_CONFIG_PRINT_CONFIG);
    fclose(file);
    for (char *l = text ? strtok_r(text, "\n", &rest) : NULL; l && !found;
         l = strtok_r(NULL, "\n", &rest))
        found = strcmp(l, line) == 0;
    free(text);
    return found;
}

/* Let UCX connect its TCP sockets without blocking, unless UCX_TCP_CONN_NB is set. A
 * blocking connect also sends the first message, before UCX has marked the endpoint as
 * one that sends. If the peer dies in between, an assertion of UCX (tcp_ep.c,
 * uct_tcp_ep_destroy_progress) aborts the process; UCX 1.22 still has it. A blocking
 * connect would also hold `lock` while a host does not answer. UCX before 1.12 has no
 * such key, and the failure is ignored. */
static void connect_without_blocking(struct ucx *u, ucp_config_t *config)
{
    enum { KEYS_WITH_PREFIX = 1 << 16 | 17 };
    const char *key = u->release < KEYS_WITH_PREFIX ? "CONN_NB" : "TCP_CONN_NB";

    if (!trib_config_environment("UCX_TCP_CONN_NB"))
        (void)u->api.ucp_config_modify(config, key, "y");
}

/* Exclude UCX's shared memory by default: ranks of one host use our shm transport. An
 * explicit UCX_TLS takes precedence. */
static ucs_status_t configure(struct ucx *u, ucp_config_t *config)
{
    char interval[32];
    ucs_status_t status = UCS_OK;

    connect_without_blocking(u, config);
    if (is_set_to(&u->api, config, "UCX_TLS=all"))
        status = u->api.ucp_config_modify(config, "TLS", "^sm");
    snprintf(interval, sizeof(interval), "%dms", u->cfg->stop_timeout_ms / 2);
    if (status == UCS_OK && u->cfg->stop_timeout_ms)
        status = u->api.ucp_config_modify(config, "KEEPALIVE_INTERVAL", interval);
    return status;
}

static ucs_status_t make_context(struct ucx *u)
{
    ucp_config_t *config;
    const ucp_params_t params = {
        .field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_ESTIMATED_NUM_EPS,
        .features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP,
        .estimated_num_eps = (size_t)u->size,
    };
    ucs_status_t status = u->api.ucp_config_read(NULL, NULL, &config);

    if (status != UCS_OK)
        return status;
    status = configure(u, config);
    if (status == UCS_OK)
        status = u->api.ucp_init_version(UCP_API_MAJOR, UCP_API_MINOR, &params, config,
                                         &u->context);
    u->api.ucp_config_release(config);
    return status;
}

static ucs_status_t make_worker(struct ucx *u)
{
    const ucp_worker_params_t params = {
        .field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
        .thread_mode = UCS_THREAD_MODE_SERIALIZED,
    };
    const ucp_am_handler_param_t handler = {
        .field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                      UCP_AM_HANDLER_PARAM_FIELD_ARG | UCP_AM_HANDLER_PARAM_FIELD_FLAGS,
        .id = UCX_AM_ID,
        .flags = UCP_AM_FLAG_WHOLE_MSG,
        .cb = trib_ucx_recv_cb,
        .arg = u,
    };
    ucp_worker_attr_t attr = {.field_mask = UCP_WORKER_ATTR_FIELD_ADDRESS};
    ucs_status_t status = u->api.ucp_worker_create(u->context, &params, &u->worker);

    if (status == UCS_OK)
        status = u->api.ucp_worker_set_am_recv_handler(u->worker, &handler);
    if (status == UCS_OK)
        status = u->api.ucp_worker_get_efd(u->worker, &u->efd);
    if (status == UCS_OK)
        status = u->api.ucp_worker_query(u->worker, &attr);
    if (status != UCS_OK)
        return status;
    u->name = attr.address;
    u->name_len = attr.address_length;
    return UCS_OK;
}

trib_status_t trib_ucx_worker_make(struct ucx *u)
{
    struct epoll_event e = {.events = EPOLLIN, .data.fd = -1};
    unsigned major, minor, patch;
    struct trib_quiet quiet;
    sigset_t all, before;
    char why[200];

    assert(!u->worker);
    if (!trib_ucx_load(&u->api, why, sizeof(why)))
        return trib_fail(u->err, TRIB_ERR_UNSUPPORTED,
                         "ucx: %s; install UCX's libraries (Debian: libucx0)", why);
    u->api.ucp_get_version(&major, &minor, &patch);
    u->release = major << 16 | minor;
    trib_fd_guard(); /* UCX opens sockets now and whenever a peer connects */
    /* UCX's threads must not take signals meant for the program's own. */
    trib_quiet_begin(&quiet, SIGXFSZ); /* UCX's shared memory may exceed ulimit -f */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    ucs_status_t status = make_context(u);
    if (status == UCS_OK)
        status = make_worker(u);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    trib_quiet_end(&quiet);
    if (status != UCS_OK)
        return trib_fail(u->err, TRIB_ERR_UNSUPPORTED,
                         "ucx: UCX %s failed to start: %s; check ucx_info -d, and that "
                         "UCX_TLS and UCX_NET_DEVICES name existing devices",
                         u->api.ucp_get_version_string(),
                         trib_ucx_status_text(&u->api, status));
    if (u->name_len > UCX_NAME_MAX)
        return trib_fail(u->err, TRIB_ERR_UNSUPPORTED,
                         "ucx: the address of this rank has %zu bytes, but the limit "
                         "is %d: list fewer devices in UCX_NET_DEVICES",
                         u->name_len, UCX_NAME_MAX);
    if (epoll_ctl(u->epoll, EPOLL_CTL_ADD, u->efd, &e) != 0)
        return trib_fail(u->err, TRIB_ERR_SYSTEM, "ucx: epoll: %m");
    return TRIB_OK;
}

void trib_ucx_worker_free(struct ucx *u)
{
    if (u->name)
        u->api.ucp_worker_release_address(u->worker, u->name);
    if (u->worker)
        u->api.ucp_worker_destroy(u->worker);
    if (u->context)
        u->api.ucp_cleanup(u->context);
}

/* Error handler of endpoints. UCX calls it from progress, so `lock` is held. */
static void handle_fault(void *arg, ucp_ep_h ep, ucs_status_t status)
{
    struct ucx_send_req *self = arg;
    struct ucx_peer *p = &self->ucx->peers[self->peer];

    if (p->ep != ep && p->ep)
        return; /* a closed endpoint */
    if (p->fault == UCS_OK)
        p->fault = status == UCS_OK ? UCS_ERR_IO_ERROR : status;
    atomic_store_explicit(&self->ucx->async_events, true, memory_order_release);
    trib_ucx_signal_owner(self->ucx);
}

/* UCX takes an address without its length and parses it by the lengths inside. In a
 * truncated address UCX reads the zeros after its end and refuses it. */
void *trib_ucx_name_room(size_t bytes)
{
    assert(bytes <= UCX_NAME_MAX);
    return calloc(1, bytes + UCX_NAME_MAX);
}

/* Each rank creates its own endpoint; UCX matches the two. Call with `lock` held. */
ucs_status_t trib_ucx_endpoint(struct ucx *u, int peer, const void *name)
{
    struct ucx_peer *p = &u->peers[peer];

    assert(ucx_lock_held(u));
    if (p->ep)
        return UCS_OK;
    if (!p->send_reqs) {
        p->send_reqs = calloc(u->depth, sizeof(*p->send_reqs));
        if (!p->send_reqs)
            return UCS_ERR_NO_MEMORY;
        for (uint32_t i = 0; i < u->depth; i++) {
            p->send_reqs[i].ucx = u;
            p->send_reqs[i].peer = peer;
        }
    }
    const ucp_ep_params_t params = {
        .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS |
                      UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                      UCP_EP_PARAM_FIELD_ERR_HANDLER,
        .address = name,
        .err_mode = UCP_ERR_HANDLING_MODE_PEER,
        .err_handler = {.cb = handle_fault, .arg = &p->send_reqs[0]},
    };
    p->fault = UCS_OK;
    return u->api.ucp_ep_create(u->worker, &params, &p->ep);
}

/* Make at least one progress call: ready messages may wait for an earlier one. Call
 * with `lock` held. */
unsigned trib_ucx_progress(struct ucx *u)
{
    unsigned n = 0, more;
    int turns = 0;

    do {
        more = u->api.ucp_worker_progress(u->worker);
        n += more;
    } while (more && !u->ready && ++turns < TURNS);
    return n;
}

/* Sleep up to 1 ms, or until UCX has an event. */
void trib_ucx_sleep(struct ucx *u)
{
    struct pollfd fd = {.fd = u->efd, .events = POLLIN};

    (void)trib_idle_poll(u->idle, &fd, 1, 1);
}

/* Return true if the kernel or device has taken everything sent to a peer. Call without
 * `lock`. */
bool trib_ucx_flush(struct ucx *u, int peer, uint64_t until)
{
    const ucp_request_param_t none = {0};
    struct ucx_peer *p = &u->peers[peer];
    bool over = false;

    assert(peer >= 0 && peer < u->size);
    pthread_mutex_lock(&u->lock);
    ucs_status_ptr_t request =
        p->ep && p->fault == UCS_OK ? u->api.ucp_ep_flush_nbx(p->ep, &none) : NULL;
    bool real = UCS_PTR_IS_PTR(request);
    bool fine = p->ep && p->fault == UCS_OK && !UCS_PTR_IS_ERR(request);
    if (UCS_PTR_IS_ERR(request) && p->fault == UCS_OK)
        p->fault = UCS_PTR_STATUS(request);
    while (real && !over) {
        unsigned n = u->api.ucp_worker_progress(u->worker);
        ucs_status_t status = u->api.ucp_request_check_status(request);
        fine = status == UCS_OK;
        over = status != UCS_INPROGRESS;
        if (over || trib_deadline_passed(until) || trib_idle_answer(u->idle))
            break;
        if (n)
            continue;
        (void)u->api.ucp_worker_arm(u->worker);
        pthread_mutex_unlock(&u->lock);
        trib_ucx_sleep(u);
        pthread_mutex_lock(&u->lock);
    }
    if (real)
        u->api.ucp_request_free(request);
    pthread_mutex_unlock(&u->lock);
    return fine;
}

void trib_ucx_devices(const char *params, char *text, size_t bytes)
{
    (void)params;
    struct trib_ucx_api api;
    char why[200];

    if (trib_ucx_load(&api, why, sizeof(why)))
        snprintf(text, bytes, "UCX %s; ucx_info -d lists its networks",
                 api.ucp_get_version_string());
    else
        snprintf(text, bytes, "not available: %s; install libucx0", why);
}
