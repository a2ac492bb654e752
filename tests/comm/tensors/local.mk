# SPDX-License-Identifier: BSD-3-Clause
tensors_tests = \
	tests/comm/tensors/test_cycle \
	tests/comm/tensors/test_group_compare \
	tests/comm/tensors/test_group_state \
	tests/comm/tensors/test_group_take \
	tests/comm/tensors/test_step \
	tests/comm/tensors/test_tensor_group \
	tests/comm/tensors/test_group_move
check_PROGRAMS += $(tensors_tests)
TESTS += $(tensors_tests)
tests_comm_tensors_test_cycle_SOURCES = tests/comm/tensors/net.h tests/comm/tensors/test_cycle.c
tests_comm_tensors_test_cycle_LDADD = $(comm_tests_link)
tests_comm_tensors_test_group_compare_SOURCES = tests/comm/tensors/net.h tests/comm/tensors/test_group_compare.c
tests_comm_tensors_test_group_compare_LDADD = $(comm_tests_link)
tests_comm_tensors_test_group_state_SOURCES = tests/comm/tensors/tensors.h tests/comm/tensors/test_group_state.c
tests_comm_tensors_test_group_state_LDADD = $(comm_tests_link)
tests_comm_tensors_test_group_take_SOURCES = tests/comm/tensors/tensors.h tests/comm/tensors/test_group_take.c
tests_comm_tensors_test_group_take_LDADD = $(comm_tests_link)
tests_comm_tensors_test_step_SOURCES = tests/comm/tensors/net.h tests/comm/tensors/test_step.c
tests_comm_tensors_test_step_LDADD = $(comm_tests_link)
tests_comm_tensors_test_tensor_group_SOURCES = tests/comm/tensors/tensors.h tests/comm/tensors/test_tensor_group.c \
	tests/harness/daemon.c tests/harness/daemon.h
tests_comm_tensors_test_tensor_group_LDADD = $(comm_tests_link)
tests_comm_tensors_test_group_move_SOURCES = tests/comm/tensors/tensors.h tests/comm/tensors/test_group_move.c
tests_comm_tensors_test_group_move_LDADD = $(comm_tests_link)
