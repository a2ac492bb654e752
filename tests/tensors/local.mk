# SPDX-License-Identifier: BSD-3-Clause
tensors_tests = \
	tests/tensors/test_cycle \
	tests/tensors/test_group_compare \
	tests/tensors/test_group_state \
	tests/tensors/test_group_take \
	tests/tensors/test_step \
	tests/tensors/test_tensor_group \
	tests/tensors/test_group_move
check_PROGRAMS += $(tensors_tests)
TESTS += $(tensors_tests)
tests_tensors_test_cycle_SOURCES = tests/tensors/net.h tests/tensors/test_cycle.c
tests_tensors_test_cycle_LDADD = $(comm_tests_link)
tests_tensors_test_group_compare_SOURCES = tests/tensors/net.h tests/tensors/test_group_compare.c
tests_tensors_test_group_compare_LDADD = $(comm_tests_link)
tests_tensors_test_group_state_SOURCES = tests/tensors/tensors.h tests/tensors/test_group_state.c
tests_tensors_test_group_state_LDADD = $(comm_tests_link)
tests_tensors_test_group_take_SOURCES = tests/tensors/tensors.h tests/tensors/test_group_take.c
tests_tensors_test_group_take_LDADD = $(comm_tests_link)
tests_tensors_test_step_SOURCES = tests/tensors/net.h tests/tensors/test_step.c
tests_tensors_test_step_LDADD = $(comm_tests_link)
tests_tensors_test_tensor_group_SOURCES = tests/tensors/tensors.h tests/tensors/test_tensor_group.c \
	tests/harness/daemon.c tests/harness/daemon.h
tests_tensors_test_tensor_group_LDADD = $(comm_tests_link)
tests_tensors_test_group_move_SOURCES = tests/tensors/tensors.h tests/tensors/test_group_move.c
tests_tensors_test_group_move_LDADD = $(comm_tests_link)
