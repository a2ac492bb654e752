/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BASE_RELEASE_H
#define BASE_RELEASE_H

#define TRIB_RELEASE_BYTES 24 /* size of the text in messages */

/**
 * trib_release - release of this library, as sent to other processes.
 *
 * The text exists once in the library and is not inlined anywhere, so tests can patch
 * these bytes to simulate a library of another release.
 */
extern const char trib_release[TRIB_RELEASE_BYTES];

#endif
