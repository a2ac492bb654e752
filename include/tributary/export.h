/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TRIBUTARY_EXPORT_H
#define TRIBUTARY_EXPORT_H

/** TRIB_API - export a symbol from the shared library; all others are hidden. */
#if defined(__GNUC__)
#define TRIB_API __attribute__((visibility("default")))
#else
#define TRIB_API
#endif

#endif
