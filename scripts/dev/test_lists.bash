# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2154,SC2034 # variables of other files
# Order of the tests: the long ones first, those with time limits apart.

# wants_quiet TEST - return 0 if TEST checks a time limit, such as the 2 s until a death is reported,
# and must not run with the other tests.
wants_quiet() {
    case $1 in
    tests/fault/* | tests/comm/test_idle | tests/comm/test_mismatch | tests/comm/core/test_memory) return 0 ;;
    tests/netns/test_silence.sh | tests/netns/test_doctor.sh | tests/transport/decorators/test_decorators) return 0 ;;
    tests/tools/test_trib_info.sh) return 0 ;; # its doctor allows 3 s per transport
    esac
    return 1
}

# The longest tests start first, so that none runs alone at the end; those that mostly wait take turns with those
# that compute.
long_tests=(tests/fuzz/fuzz_region tests/fabric/test_fabric_rails tests/netns/test_doctor.sh tests/fault/test_fault tests/fault/test_shrink_faults
    tests/fault/test_tribd_faults tests/comm/test_idle tests/netns/test_silence.sh tests/netns/test_hosts.sh tests/comm/test_matrix
    tests/transport/verbs/test_verbs_oob_connect tests/comm/test_means tests/boot/tcp/test_tcp tests/comm/test_bad_values
    tests/transport/verbs/test_verbs_liveness tests/perf/test_trib_perf.sh tests/transport/common/test_heartbeat tests/agg/daemon/test_tribd_lost.sh
    tests/transport/verbs/test_verbs_conformance tests/bindings/mpi/test_trib_mpi.sh tests/transport/verbs/test_verbs_multiport
    tests/agg/daemon/test_tribd_hostile.sh tests/transport/auto/test_auto_verbs tests/agg/daemon/test_tribd.sh tests/boot/test_local
    tests/train/program/test_trib_train.sh tests/netns/test_addresses.sh tests/boot/test_launchers.sh tests/transport/verbs/test_verbs
    tests/agg/client/test_agg_comm tests/netns/test_trouble.sh tests/agg/client/test_offload_partial tests/comm/plan/test_plan_notify
    tests/comm/test_rounds tests/agg/daemon/test_tribd_return.sh tests/transport/test_conformance tests/agg/daemon/test_see.sh
    tests/agg/daemon/test_tribd_tree.sh tests/compress/test_neon.sh tests/train/trainer/test_trainer_move tests/perf/test_agg.sh
    tests/comm/state/test_state_merge tests/comm/members/test_grow tests/comm/core/test_gate tests/comm/kinds/test_plan_blocks
    tests/comm/plan/test_contribution_check tests/bindings/mpi/test_mpi_loading.sh tests/agg/client/test_fallback tests/train/coded/test_coded)

# split_tests - set `quiet`, the tests that wants_quiet names, and `busy`, all others.
split_tests() {
    local test tests

    quiet='' busy=''
    read -ra tests < <(make -C build -s print-tests)
    for test in "${long_tests[@]}" "${tests[@]}"; do
        case " $quiet $busy " in
        *" $test "*) continue ;;
        esac
        # This build may lack the transport of a long test.
        [[ " ${tests[*]} " = *" $test "* ]] || continue
        if wants_quiet "$test"; then
            quiet+=" $test"
        else
            busy+=" $test"
        fi
    done
}
