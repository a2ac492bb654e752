/* SPDX-License-Identifier: BSD-3-Clause */
#include <tributary/status.h>

const char *trib_status_str(trib_status_t status)
{
    switch (status) {
#define STATUS_TEXT(name, value, scope, text) \
    case TRIB_##name: \
        return text;
        TRIB_STATUS_MAP(STATUS_TEXT)
#undef STATUS_TEXT
    }
    return "unknown status";
}

const char *trib_status_name(trib_status_t status)
{
    switch (status) {
#define STATUS_NAME(name, value, scope, text) \
    case TRIB_##name: \
        return "TRIB_" #name;
        TRIB_STATUS_MAP(STATUS_NAME)
#undef STATUS_NAME
    }
    return "TRIB_?";
}

trib_scope_t trib_status_scope(trib_status_t status)
{
    switch (status) {
#define STATUS_SCOPE(name, value, scope, text) \
    case TRIB_##name: \
        return TRIB_SCOPE_##scope;
        TRIB_STATUS_MAP(STATUS_SCOPE)
#undef STATUS_SCOPE
    }
    return TRIB_SCOPE_CONTEXT; /* unknown status: assume the worst */
}
