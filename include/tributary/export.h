/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TRIBUTARY_EXPORT_H
#define TRIBUTARY_EXPORT_H

/** TRIB_API - a symbol of the shared library; everything else stays hidden. */
#if defined(__GNUC__)
#define TRIB_API __attribute__((visibility("default")))
#else
#define TRIB_API
#endif

#endif
