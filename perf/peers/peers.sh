#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# peers.sh - build and launch the programs that Tributary is compared with. Scripts source it
# after driver.sh, and set `here` (perf/), `out`, `errors`, `sizes`, `samples`, `sample_ms`,
# `place` (in or out) and `rewrite`.
# shellcheck disable=SC2154 # set by the scripts
missing=()

build_peer() { # NAME COMPILER ARGUMENT…
    local name=$1
    shift
    mkdir -p "$out/peers"
    if command -v "$1" >/dev/null && "$@" -o "$out/peers/$name" 2>>"$errors"; then
        return 0
    fi
    missing+=("$name")
    return 1
}

build_openmpi() {
    build_peer openmpi mpicc.openmpi -O2 -I"$here/.." "$here/peers/mpi_collectives.c"
}

build_mpich() {
    build_peer mpich mpicc.mpich -O2 -I"$here/.." "$here/peers/mpi_collectives.c"
}

build_gloo() {
    build_peer gloo g++ -O3 -I"$here/.." "$here/peers/gloo_allreduce.cc" -lgloo -lpthread
}

peer_options() { # LABEL
    printf '%s\n' -l "$1" -s "$sizes" -n "$samples" -t "0$(printf .%03d "$sample_ms")"
    [ "$place" = in ] || echo -o
    [ "${collective:-allreduce}" = allreduce ] || printf '%s\n' -x "$collective"
    [ -z "$rewrite" ] || echo -w
}

# Launch functions print rows "label,ranks,bytes,samples,batch,p50,min,max". They also read
# `cores`, `cores_bound` and `over`.

openmpi() { # RANKS LABEL MCA_OPTION…
    local n=$1 label=$2 binding=(--bind-to core) options
    shift 2
    [ "$n" -le "$cores" ] ||
        binding=(--oversubscribe --bind-to none --mca mpi_yield_when_idle 1)
    [ "$cores_bound" -gt 0 ] || [ "$n" -gt "$cores" ] || binding=(--bind-to none)
    [ "$over" != tcp ] ||
        binding+=(--mca pml ob1 --mca btl "self,tcp" --mca btl_tcp_if_include lo)
    mapfile -t options < <(peer_options "$label")
    mpirun.openmpi -np "$n" "${binding[@]}" "$@" "$out/peers/openmpi" "${options[@]}"
}

mpich() { # RANKS
    local binding=(-bind-to core) options
    [ "$1" -le "$cores_bound" ] || binding=()
    [ "$over" != tcp ] ||
        binding+=(-genv MPIR_CVAR_NOLOCAL 1 -genv UCX_TLS "tcp,self" -genv UCX_NET_DEVICES lo)
    mapfile -t options < <(peer_options mpich)
    mpirun.mpich -n "$1" "${binding[@]}" "$out/peers/mpich" "${options[@]}"
}

gloo() { # RANKS
    local options store rank pids=() failed=0
    mapfile -t options < <(peer_options gloo)
    store=$(mktemp -d "$out/gloo.XXXXXX")
    # shellcheck disable=SC2064 # expand it now: it is local
    trap "rm -rf '$store'" EXIT
    trap 'exit 143' TERM
    for ((rank = 0; rank < $1; rank++)); do
        "$out/peers/gloo" "${options[@]}" -x "$rank:$1:$store:lo" &
        pids+=($!)
    done
    for pid in "${pids[@]}"; do wait "$pid" || failed=1; done
    return "$failed"
}

# The equivalent options of trib-perf, without --bind.
trib_options() {
    printf '%s\n' --sizes "$sizes" --iters "$samples" --sample "${sample_ms}ms" --sync --csv -
    [ "$place" = out ] || echo --in-place
    [ -z "$rewrite" ] || echo --rewrite
}

# Turn the csv of trib-perf into rows "label,ranks,bytes,samples,batch,p50,min,max" and COLUMNs.
trib_rows() { # LABEL [COLUMN…]
    awk -F, -v label="$1" -v more="${*:2}" '
        { sub(/"[^"]*"/, "codec") } # codec texts may have commas
        NR == 1 {
            for (i = 1; i <= NF; i++) column[$i] = i
            n = split("ranks bytes iters batch p50_us min_us max_us " more, wanted, " ")
            next
        }
        {
            row = label
            for (i = 1; i <= n; i++) row = row "," $column[wanted[i]]
            print row
        }'
}
