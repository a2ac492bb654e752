/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The settings that a job sends with its JOIN. They come from strangers: a job may
 * choose a transport from the operator's list, by its bare name, and what ranks must
 * agree on; all else is the service's own.
 */
#ifndef TRIBD_JOB_SETTINGS_H
#define TRIBD_JOB_SETTINGS_H

#include <stdbool.h>

#include <tributary/status.h>

struct aggregator;
struct trib_error;

/** job_settings_transports - the operator's list, or the usual one for NULL. */
const char *job_settings_transports(const char *transports);

/** job_settings_check_transports - true if the setting `transports` names transports
 * that jobs may have; else err has the sentence. */
bool job_settings_check_transports(const char *list, struct trib_error *err);

/**
 * job_settings_allow - true if a job may ask for these settings' transport.
 *
 * transports  the operator's list; NULL: the usual one
 * errors      err has the sentence
 */
bool job_settings_allow(const char *settings, const char *transports,
                        struct trib_error *err);

/** job_settings_load - read the settings, and the job's secret before them, into the
 * aggregator. */
trib_status_t job_settings_load(struct aggregator *agg, const char *text,
                                struct trib_error *err);

/** job_settings_bind_to - put the data ports on the networks `net`, unless
 * TRIB_TRANSPORT of this service says where. */
void job_settings_bind_to(struct aggregator *agg, const char *net);

#endif
