/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Slurm's variables, if srun starts ranks without PMI or PMIx.
 */
#ifndef BOOT_SLURM_H
#define BOOT_SLURM_H

#include <stdbool.h>
#include <stddef.h>

/**
 * trib_slurm_first_host - extract the first host of a node list such as
 * "rack[01-03,7]-n[5-8],login".
 *
 * returns  false if the text is not a node list, or the name is longer than `bytes`
 */
bool trib_slurm_first_host(const char *list, char *host, size_t bytes);

/** trib_slurm_port - return the rendezvous port of a job step: 20000 to 29999. */
int trib_slurm_port(unsigned job, unsigned step);

#endif
