#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Launchers start ranks on hosts whose names cannot be looked up, or are all the same.
# shellcheck disable=SC2317 # at_exit is called at the end
# shellcheck source=tests/harness/tap.sh
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"
# shellcheck source=tests/netns/net.sh
. "${abs_top_srcdir:-.}/tests/netns/net.sh"
quick=("$build/perf/trib-perf" allreduce --check --sizes 8 --iters 2)
! why=$(net_refused) || skip_all "$why"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export TMPDIR=$dir TRIB_BOOT_TIMEOUT_MS=15000
unset TRIB_ROOT TRIB_RANK TRIB_SIZE
at_exit() { net_close; }

net_open 3 1500 4 || exit 1
echo "127.0.0.1 localhost" >"$net_dir/hosts"

# Replaces ssh: AGENT nodeI COMMAND runs the command on host I. Each host has its own
# folder for temporary files: Open MPI puts its daemon's shared memory there under the
# host's name.
cat >"$dir/agent" <<AGENT
#!/usr/bin/env bash
pids=(${net_pids[*]})
AGENT
cat >>"$dir/agent" <<'AGENT'
pid=${pids[${1#node}]}
export TMPDIR=$TMPDIR/$1
mkdir -p "$TMPDIR"
shift
exec nsenter --target "$pid" --net --uts --ipc --mount \
    --pid="/proc/$pid/ns/pid_for_children" -- sh -c "$*"
AGENT
chmod +x "$dir/agent"

# The launcher runs on host 0, the ranks on the other two.
launch() { # open-mpi | mpich, number of ranks
    local here=(nsenter "--net=/proc/${net_pids[0]}/ns/net" "--uts=/proc/${net_pids[0]}/ns/uts" --)

    if [ "$1" = open-mpi ]; then
        "${here[@]}" mpirun.openmpi --oversubscribe --mca plm_rsh_agent "$dir/agent" \
            --mca plm_rsh_no_tree_spawn 1 --wdir "$PWD" -x TRIB_BOOT_TIMEOUT_MS \
            -H "node1:8,node2:8" --map-by node -n "$2" "${quick[@]}"
    else
        "${here[@]}" mpiexec.hydra -localhost "$(net_address 0)" -launcher rsh \
            -launcher-exec "$dir/agent" -wdir "$PWD" -hosts node1,node2 -n "$2" "${quick[@]}"
    fi
}

called() { # NAME of host 0, of 1, of 2
    local i

    for i in 0 1 2; do
        net_on "$i" hostname "$1"
        shift
    done
}

starts() { # WHAT, open-mpi | mpich
    launch "$2" 4 >"$said" 2>&1 </dev/null
    grep -qF "4 ranks, tributary" "$said"
    result $? "$2: $1"
}

long=$(printf 'n%.0s' {1..64})
for launcher in open-mpi mpich; do
    program=mpirun.openmpi
    [ "$launcher" = open-mpi ] || program=mpiexec.hydra
    ! missing "$program" "$launcher" || continue
    if [ "$launcher" = open-mpi ] &&
        "$build/tools/trib-info" --boots | grep -q "PMIx.*not in this build"; then
        skip "$launcher" "this build is without PMIx"
        continue
    fi
    called a-host unknown-1 unknown-2
    starts "hosts whose names cannot be looked up" "$launcher"
    called same same same
    starts "hosts that all have one name" "$launcher"
    # (mpirun of Open MPI 4 itself crashes with such a name.)
    [ "$launcher" = open-mpi ] || called "$long" "$long" "$long"
    [ "$launcher" = open-mpi ] || starts "names of 64 characters" "$launcher"
done

# Errors and reports contain such a name in full.
called "$long" "$long" "$long"
net_job "$build/tools/trib-info" doctor
net_ended 60 0 1 2
shown=("$net_dir"/rank*.out)
grep -q "$long (rank 0), $long (rank 1), $long" "$net_dir/rank0.out"
result $? "the doctor knows names of 64 characters"
finish
