/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Settings that a job sends with its JOIN. They are untrusted: a job may choose a
 * listed transport by its plain name, and the settings that all ranks must share. All
 * other settings are those of the service.
 */
#ifndef AGG_DAEMON_JOB_SETTINGS_H
#define AGG_DAEMON_JOB_SETTINGS_H

#include <stdbool.h>

#include <tributary/status.h>

struct aggregator;
struct trib_error;

/** job_settings_transports - return the operator's list, or the default for NULL. */
const char *job_settings_transports(const char *transports);

/** job_settings_check_transports - return true if the setting `transports` only names
 * transports that jobs may use. */
bool job_settings_check_transports(const char *list, struct trib_error *err);

/**
 * job_settings_allow - return true if a job may use the transport in these settings.
 *
 * transports  the operator's list; NULL: the default
 */
bool job_settings_allow(const char *settings, const char *transports,
                        struct trib_error *err);

/** job_settings_load - load the settings, and the job's secret before them, into the
 * aggregator. */
trib_status_t job_settings_load(struct aggregator *agg, const char *text,
                                struct trib_error *err);

/** job_settings_bind_to - bind the data ports to the networks `net`, unless this
 * service's TRIB_TRANSPORT sets net=. */
void job_settings_bind_to(struct aggregator *agg, const char *net);

#endif
