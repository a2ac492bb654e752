/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Settings with symbolic values.
 */
#ifndef COMM_LIFE_SETTINGS_H
#define COMM_LIFE_SETTINGS_H

#include <stdbool.h>

#include <tributary/status.h>

struct trib_config;
struct trib_config_faults;
struct trib_error;

/**
 * trib_settings_check - find settings that would make trib_init or a collective fail.
 *
 * Checks names and options of parsed settings; opens nothing.
 * faults   receives a message for each wrong setting that has none yet
 * returns  true if all settings are valid
 */
bool trib_settings_check(const struct trib_config *cfg,
                         struct trib_config_faults *faults);

/**
 * trib_settings_refuse - check codec, feedback, quorum, check and algorithm. Return
 * TRIB_ERR_CONFIG with a message for the first that would make a collective fail.
 */
trib_status_t trib_settings_refuse(const struct trib_config *cfg,
                                   struct trib_error *err);

#endif
