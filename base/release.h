/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BASE_RELEASE_H
#define BASE_RELEASE_H

#define TRIB_RELEASE_BYTES 24 /* room for the text where it travels */

/**
 * trib_release - the release of this library, as other processes are told.
 *
 * It stands in the library once, and no compiler knows its text elsewhere: so a copy in
 * which these bytes are others is a library of another release, for tests.
 */
extern const char trib_release[TRIB_RELEASE_BYTES];

#endif
