#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Ranks that real launchers start, without any TRIB_* variable.
# shellcheck source=tests/harness/tap.sh
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"
perf=$build/perf/trib-perf
pids=$dir/pids
expect_seconds=40
openmpi=(mpirun.openmpi --oversubscribe)
mpich=(mpiexec.hydra)
quick=(allreduce --check --sizes "8,64K" --iters 3)
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export TMPDIR=$dir # mpiruns that end remove what others begin to use
unset TRIB_ROOT TRIB_RANK TRIB_SIZE

# Scripts of ranks are expanded by the ranks.
# shellcheck disable=SC2016
{
    thrice='for i in 1 2 3; do
            mkdir "$TMPDIR/$i"
            TMPDIR=$TMPDIR/$i "$@" & jobs="$jobs $!"
        done
        for job in $jobs; do wait "$job" || exit 1; done'
    # Rank 2 kills itself before it joins: the launcher or the boot ends the others.
    orphan='if [ ${PMIX_RANK:-$PMI_RANK} = 2 ]; then kill -9 $$; fi
        echo $$ >>$0; exec "$@"'
    # Or it lives and does not come: only the time that the boot allows ends the others.
    absent='if [ ${PMIX_RANK:-$PMI_RANK} = 2 ]; then exec sleep 20; fi
        echo $$ >>$0; exec "$@"'
}

nobody_left() { # of the ranks; a launcher may end just before the last of them
    local left
    mapfile -t left <"$pids"
    within 5 gone "${left[@]}"
}

# LAUNCHER, command: what each must do
starts() {
    local name=$1 before
    shift
    expect "$name: four ranks" 0 "4 ranks, tributary" "$@" -n 4 "$perf" "${quick[@]}"
    grep -q "64 KiB .* 0\$" "$said"
    result $? "$name: sums are right"
    expect "$name: one rank" 0 "1 rank, tributary" "$@" -n 1 "$perf" "${quick[@]}"
    rm -rf "$dir"/[123]
    expect "$name: many jobs at once" 0 "2 ranks, tributary" bash -c "$thrice" - \
        "$@" -n 2 "$perf" "${quick[@]}"
    expect "$name: rank and origin are shown" 0 "launcher     number of this rank" \
        "$@" -n 2 "$build/tools/trib-info" --config
    expect "$name: TRIB_* wins" 0 "1 rank, tributary" env TRIB_RANK=0 TRIB_SIZE=1 \
        "$@" -n 2 "$perf" "${quick[@]}"
    : >"$pids"
    expect "$name: a rank is killed at the start" any "" \
        "$@" -n 4 sh -c "$orphan" "$pids" "$perf" "${quick[@]}"
    nobody_left
    result $? "$name: and nobody is left"
    : >"$pids"
    before=$SECONDS
    expect "$name: a rank does not come" any "has not come" \
        env TRIB_BOOT_TIMEOUT_MS=1500 "$@" -n 4 sh -c "$absent" "$pids" "$perf" "${quick[@]}"
    [ $((SECONDS - before)) -lt 15 ] && nobody_left
    result $? "$name: nobody waits for it for ever"
}

names=("four ranks" "sums are right" "one rank" "many jobs at once"
    "rank and origin are shown" "TRIB_* wins" "a rank is killed at the start"
    "and nobody is left" "a rank does not come" "nobody waits for it for ever")

if ! missing mpirun.openmpi "${names[@]/#/Open MPI: }"; then
    if "$build/tools/trib-info" --boots | grep -q "PMIx.*not in this build"; then
        expect "Open MPI: this build is without PMIx, and says so" any "without PMIx" \
            "${openmpi[@]}" -n 2 "$perf" "${quick[@]}"
    else
        starts "Open MPI" "${openmpi[@]}"
    fi
fi
missing mpiexec.hydra "${names[@]/#/MPICH: }" || starts "MPICH" "${mpich[@]}"

# Slurm, as far as its variables go.
slurm() { # RANKS THAT COME, command
    local ranks=$1 rank jobs=() code=0
    shift
    for ((rank = 0; rank < ranks; rank++)); do
        SLURM_PROCID=$rank SLURM_NTASKS=4 SLURM_JOB_NODELIST=localhost \
            SLURM_JOB_ID=$$ timeout 30 "$@" &
        jobs+=($!)
    done
    for rank in "${jobs[@]}"; do
        wait "$rank" || code=1
    done
    return $code
}

slurm 4 "$perf" "${quick[@]}" >"$said" 2>&1 </dev/null &&
    grep -q "64 KiB .* 0\$" "$said" && grep -q "4 ranks, tributary" "$said"
result $? "Slurm: four ranks"
! TRIB_BOOT_TIMEOUT_MS=1500 slurm 3 "$perf" "${quick[@]}" >"$said" 2>&1 </dev/null &&
    grep -q "rank 3 of 4 did not come" "$said"
result $? "Slurm: a rank does not come"

finish
