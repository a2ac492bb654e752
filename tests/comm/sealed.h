/* SPDX-License-Identifier: BSD-3-Clause */
/* The transports of test_matrix whose ranks have TRIB_SEAL=1, if this build can seal:
 * include build-config.h first. */
#ifndef TESTS_COMM_SEALED_H
#define TESTS_COMM_SEALED_H

#define SEALED "sealed " /* before the text of such a transport */
#if HAVE_SODIUM && !defined(FAKE_VERBS)
#define WITH_SEALS SEALED "tcp", SEALED "auto:near=shm,far=tcp,ranks_per_host=2",
#else
#define WITH_SEALS
#endif

#endif
