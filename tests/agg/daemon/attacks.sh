# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Functions to run tests/agg/daemon/attack against a tribd of daemons.sh; source it
# after daemons.sh.
#
#     attack_once one cma; result $? "cma: $refused"
# shellcheck disable=SC2154,SC2034 # of tap.sh and daemons.sh, and for the sourcing script

# The jobs of `ranks` must fail at the memory limit of tribd on any machine: a rank is
# charged 16 KiB.
attack_settings=("memory = 8192")

files_of() { # DAEMON: number of open descriptors
    find "/proc/${daemon_pid[$1]}/fd" -mindepth 1 2>/dev/null | wc -l
}

# DAEMON, NAME: set $refused to the error message, or to what was wrong; the log is
# $dir/attack.log. False: tribd did not refuse the attack as expected, or did not log
# it.
attack_once() {
    local from words code
    from=$(($(wc -l <"$dir/$1.log") + 1))
    [ "$2" != emfile ] || narrow "$1"
    TRIBD_HTTP=127.0.0.1:${daemon_http[$1]} TRIBD_PID=${daemon_pid[$1]} TRIB_SERVICE_JOB=$2 \
        service "$1" timeout -k 5 90 "$build/tests/agg/daemon/attack" "$2" >"$dir/attack.log" 2>&1 </dev/null
    code=$?
    [ "$2" != emfile ] || widen "$1"
    refused=$(sed -n "s/^$2: refused: //p" "$dir/attack.log")
    words=$(sed -n "s/^$2: log: //p" "$dir/attack.log")
    logged=""
    within 5 has_logged "$1" "$from" "$words" || {
        echo "tribd's log does not have \"$words\"" >>"$dir/attack.log"
        return 1
    }
    [ $code = 0 ]
}

has_logged() { # DAEMON, first line, words: set $logged to the matching line
    [ -n "$3" ] && logged=$(tail -n "+$2" "$dir/$1.log" | grep -F -m 1 -- "$3")
}

# Allow few descriptors in addition to those that tribd has open now; save the previous
# limit.
narrow() { # DAEMON
    files_limit=$(prlimit --pid "${daemon_pid[$1]}" --nofile --noheadings --output SOFT) &&
        prlimit --pid "${daemon_pid[$1]}" --nofile="$(($(files_of "$1") + 60)):"
}
widen() { # DAEMON
    prlimit --pid "${daemon_pid[$1]}" --nofile="$files_limit:"
}

# DAEMON: the log contains no forged line
log_is_plain() {
    ! LC_ALL=C grep -nvE '^[-0-9TZ:.]+ tributary: (error|warning|info|debug): [[:print:]]*$' "$dir/$1.log" |
        head -n 3 | grep .
}
