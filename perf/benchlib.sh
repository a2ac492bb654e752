#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# benchlib.sh - what the scripts that compare with others share. They source it.

die() {
    echo "bench: $*" >&2
    exit 2
}

say() {
    if [ -t 2 ]; then printf '\r\033[K%s' "$*" >&2; else echo "$*" >&2; fi
}

# The folders at the end of the command line. Sets build (has perf/probe), out, runs (rows
# of all launches) and errors (what was said).
take_folders() { # BUILD_DIR OUT_DIR
    [ $# -eq 2 ] || die "BUILD_DIR and OUT_DIR are needed; --help tells more"
    [ -x "$1/perf/trib-perf" ] || die "$1/perf/trib-perf is missing: build first"
    build=$(cd "$1" && pwd)
    mkdir -p "$2"
    out=$(cd "$2" && pwd)
    runs=$out/runs.csv
    errors=$out/errors.log
    : >"$errors"
}

# The comment at the top of a script, from the fourth line on.
help_of() { # FILE
    sed -n '4,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$1"
}

# One launch between two probes of how near the cores are: its rows go behind HEAD, the
# two words and commas into runs.
launch_probed() { # HEAD WHAT COMMAND…
    local head=$1 what=$2 before after rows
    shift 2
    before=$("$build/perf/probe")
    say "$what (cores: $before)"
    echo "## $what" >>"$errors"
    rows=$("$@" 2>>"$errors") ||
        echo "## $what failed: exit $?" | tee -a "$errors" >&2
    after=$("$build/perf/probe")
    [ -z "$rows" ] ||
        awk -v head="$head,${before#* },${after#* }" '{ print head "," $0 }' \
            <<<"$rows" >>"$runs"
}

machine_line() {
    local model
    model=$(sed -n '/^model name/{s/.*: //p;q}' /proc/cpuinfo)
    echo "Machine: ${model:-unknown processor}, $(nproc) cores, Linux $(uname -r)."
}
