#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Start ranks with real launchers, without any TRIB_* variable.
# shellcheck source=tests/harness/tap.sh
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"
perf=$build/perf/trib-perf
pids=$dir/pids
openmpi=(mpirun.openmpi --oversubscribe)
mpich=(mpiexec.hydra)
quick=(allreduce --check --sizes "8,64K" --iters 3)
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export TMPDIR=$dir # an mpirun that ends removes files that another one starts to use
unset TRIB_ROOT TRIB_RANK TRIB_SIZE

# The ranks expand these scripts.
# shellcheck disable=SC2016
{
    thrice='for i in 1 2 3; do
            mkdir "$TMPDIR/$i"
            TMPDIR=$TMPDIR/$i "$@" & jobs="$jobs $!"
        done
        for job in $jobs; do wait "$job" || exit 1; done'
    # Rank 2 kills itself before it joins: the launcher or the boot ends the other
    # ranks.
    orphan='if [ ${PMIX_RANK:-$PMI_RANK} = 2 ]; then kill -9 $$; fi
        echo $$ >>$0; exec "$@"'
    # Or rank 2 lives and never joins: only the time limit of the boot ends the other
    # ranks.
    absent='if [ ${PMIX_RANK:-$PMI_RANK} = 2 ]; then exec sleep 200; fi
        echo $$ >>$0; exec "$@"'
}

nobody_left() { # wait for the ranks: a launcher may end just before its last rank
    local left
    mapfile -t left <"$pids"
    within 20 gone "${left[@]}"
}

# LAUNCHER, command: what each launcher must do
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
        env TRIB_BOOT_TIMEOUT_MS=5000 "$@" -n 4 sh -c "$absent" "$pids" \
        "$perf" "${quick[@]}"
    [ $((SECONDS - before)) -lt $((40 * slow)) ] && nobody_left
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

# With MPI in the same program: both use one socket, or one library, to the launcher.
if [[ $(sanitizer) = [at]san ]]; then
    no_mpi="a program of mpicc does not load a library that is built for a sanitizer"
fi

# SOURCE, PROGRAM, MPI: link with the library in the build folder
compile_mpi() {
    "mpicc.$3" "$1" -I"$source/include" -L"$build/.libs" -ltributary \
        "-Wl,-rpath,$build/.libs" -o "$2" >"$said" 2>&1
}

# NAME, MPI, command of the launcher
beside_mpi() {
    local name=$1 mpi=$2 order
    shift 2
    compile_mpi "$source/tests/boot/mpi_order.c" "$dir/order.$mpi" "$mpi"
    result $? "$name: a program of both compiles"
    for order in tsT tsTtsT tmsbTM tmsbMT mtsbTM mtsbMT tsTmbM; do
        expect "$name: in the order $order" 0 "all done" "$@" -n 3 "$dir/order.$mpi" $order
        grep -q "sum 6" "$said" && ! grep -qi "improperly\|bad termination" "$said"
        result $? "$name: in the order $order the sum is right, and nobody complains"
    done
    compile_mpi "$source/examples/mpi_root.c" "$dir/root.$mpi" "$mpi" &&
        expect "$name: the example that passes its root by MPI_Bcast" 0 \
            "3 ranks, sum of ranks 3" "$@" -n 3 "$dir/root.$mpi"
    compile_mpi "$source/examples/mpi_allgather.c" "$dir/gather.$mpi" "$mpi" &&
        expect "$name: the example whose ranks meet over MPI_Allgather" 0 \
            "3 ranks, sum 3" "$@" -n 3 "$dir/gather.$mpi"
}

source=${abs_top_srcdir:-.}
build=$(cd "$build" && pwd)
for mpi in openmpi mpich; do
    [ $mpi = openmpi ] && launcher=("${openmpi[@]}") || launcher=("${mpich[@]}")
    if [ -n "${no_mpi:-}" ]; then
        skip "beside $mpi" "$no_mpi"
    elif ! missing "${launcher[0]}" "beside $mpi" && ! missing "mpicc.$mpi" "beside $mpi" &&
        { [ $mpi = mpich ] || ! "$build/tools/trib-info" --boots | grep -q "PMIx.*not in"; }; then
        beside_mpi "beside $mpi" $mpi "${launcher[@]}"
    fi
done
if [ -x "$dir/order.mpich" ]; then
    expect "after MPI_Finalize of MPICH, a sentence and no SIGPIPE" any \
        "call trib_init before that, or pass the text of trib_root_create" \
        "${mpich[@]}" -n 2 "$dir/order.mpich" mMts
fi

# The variables of Slurm, without Slurm.
slurm() { # JOB, RANKS THAT COME, command
    local job=$1 ranks=$2 rank jobs=() code=0
    shift 2
    for ((rank = 0; rank < ranks; rank++)); do
        SLURM_PROCID=$rank SLURM_NTASKS=4 SLURM_JOB_NODELIST=localhost \
            SLURM_JOB_ID=$job timeout $((60 * slow)) "$@" &
        jobs+=($!)
    done
    for rank in "${jobs[@]}"; do
        wait "$rank" || code=1
    done
    return $code
}

# The port is derived from the number of the job and may be in use: then try another
# job. Arguments: 0 or 1 for the expected end, words that must be printed, RANKS THAT
# COME, command
slurm_says() {
    local end=$1 words=$2 job
    shift 2
    for job in $$ $(($$ + 4321)); do
        if slurm "$job" "$@" >"$said" 2>&1 </dev/null; then
            [ "$end" = 0 ]
        else
            [ "$end" != 0 ]
        fi && grep -q "$words" "$said" && return
    done
    return 1
}

slurm_says 0 "4 ranks, tributary" 4 "$perf" "${quick[@]}" &&
    grep -q "64 KiB .* 0\$" "$said"
result $? "Slurm: four ranks"
TRIB_BOOT_TIMEOUT_MS=6000 slurm_says 1 "rank 3 of 4 did not come" 3 \
    "$perf" "${quick[@]}"
result $? "Slurm: a rank does not come"
# Another process listens at the port of the job. The port is from Slurm, not from
# TRIB_ROOT.
job=$$
TRIB_RANK=0 TRIB_SIZE=2 TRIB_ROOT=localhost:$((20000 + job % 10000)) TRIB_BOOT_TIMEOUT_MS=20000 \
    "$perf" "${quick[@]}" >/dev/null 2>&1 </dev/null &
taken=$!
# shellcheck disable=SC2317 # called through within
is_taken() { (exec 3<>"/dev/tcp/localhost/$((20000 + job % 10000))") 2>/dev/null; }
within 20 is_taken
slurm "$job" 1 "$perf" "${quick[@]}" >"$said" 2>&1 </dev/null
grep -qF "(chosen by what Slurm says; TRIB_ROOT is not set) is in use" "$said" &&
    grep -qF "another by TRIB_ROOT=host:port" "$said"
result $? "Slurm: a port in use is named as Slurm's"
kill -KILL $taken
for rank in 0 1; do
    expect "Slurm: -n in rank $rank" 2 "cannot start ranks under a launcher (this is rank $rank from SLURM_PROCID" \
        env SLURM_PROCID=$rank SLURM_NTASKS=4 "$perf" allreduce -n 2 --sizes 4
    expect "Slurm: a wrong argument in rank $rank" 2 "unknown option '--wrong'" \
        env SLURM_PROCID=$rank SLURM_NTASKS=4 "$perf" allreduce --wrong
done

finish
