# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
#
# For those who have tests/agg/daemon/attack attack a tribd of daemons.sh: sourced behind that.
#
#     attack_once one cma; result $? "cma: $refused"
# shellcheck disable=SC2154,SC2034 # of tap.sh and daemons.sh, and for those who source it

# The memory of tribd must be what ends the jobs of `ranks`, on any machine: a rank has 16 KiB of it.
attack_settings=("memory = 8192")

files_of() { # DAEMON: how many descriptors it has open
    find "/proc/${daemon_pid[$1]}/fd" -mindepth 1 2>/dev/null | wc -l
}

# DAEMON, NAME: into $refused the sentence, or what was wrong; its log is $dir/attack.log. False: tribd
# did not refuse it as it should, or its log has no word of it.
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

has_logged() { # DAEMON, first line, words: into $logged the line that has them
    [ -n "$3" ] && logged=$(tail -n "+$2" "$dir/$1.log" | grep -F -m 1 -- "$3")
}

# Few descriptors beside those that tribd has open now, and what it had before.
narrow() { # DAEMON
    files_limit=$(prlimit --pid "${daemon_pid[$1]}" --nofile --noheadings --output SOFT) &&
        prlimit --pid "${daemon_pid[$1]}" --nofile="$(($(files_of "$1") + 60)):"
}
widen() { # DAEMON
    prlimit --pid "${daemon_pid[$1]}" --nofile="$files_limit:"
}

# DAEMON: nobody has written a line of its own into the log
log_is_plain() {
    ! LC_ALL=C grep -nvE '^[-0-9TZ:.]+ tributary: (error|warning|info|debug): [[:print:]]*$' "$dir/$1.log" |
        head -n 3 | grep .
}
