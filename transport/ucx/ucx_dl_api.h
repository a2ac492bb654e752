/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The UCX functions in use. The libraries are loaded at run time, so a program built
 * with ucx also starts on hosts without them.
 */
#ifndef TRANSPORT_UCX_UCX_DL_API_H
#define TRANSPORT_UCX_UCX_DL_API_H

#include <stdbool.h>
#include <stddef.h>
#include <ucp/api/ucp.h>

#define TRIB_UCP_CALLS(X) \
    X(ucp_get_version) \
    X(ucp_get_version_string) \
    X(ucp_config_read) \
    X(ucp_config_modify) \
    X(ucp_config_print) \
    X(ucp_config_release) \
    X(ucp_init_version) \
    X(ucp_cleanup) \
    X(ucp_worker_create) \
    X(ucp_worker_destroy) \
    X(ucp_worker_query) \
    X(ucp_worker_release_address) \
    X(ucp_worker_progress) \
    X(ucp_worker_get_efd) \
    X(ucp_worker_arm) \
    X(ucp_worker_set_am_recv_handler) \
    X(ucp_ep_create) \
    X(ucp_ep_close_nbx) \
    X(ucp_ep_flush_nbx) \
    X(ucp_am_send_nbx) \
    X(ucp_am_recv_data_nbx) \
    X(ucp_request_check_status) \
    X(ucp_request_free)

/* Functions of libucs are declared here: its headers need more than UCP users have
 * installed. */
struct trib_ucx_api {
#define TRIB_UCX_CALL(name) __typeof__(&name) name;
    TRIB_UCP_CALLS(TRIB_UCX_CALL)
#undef TRIB_UCX_CALL
    const char *(*ucs_status_string)(ucs_status_t status);
    ucs_status_t (*ucs_global_opts_get_value)(const char *name, char *value,
                                              size_t max);
    ucs_status_t (*ucs_global_opts_set_value)(const char *name, const char *value);
};

/**
 * trib_ucx_load - open libucp and libucs.
 *
 * The libraries install no signal handlers and print no warnings, unless UCX_LOG_LEVEL
 * says otherwise.
 *
 * why      receives a clause that names the missing library
 * thread   any
 */
bool trib_ucx_load(struct trib_ucx_api *api, char *why, size_t bytes);

#endif
