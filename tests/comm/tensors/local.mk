# SPDX-License-Identifier: BSD-3-Clause
check_tests += tests/comm/tensors/test_cycle tests/comm/tensors/test_group_compare tests/comm/tensors/test_group_move \
	tests/comm/tensors/test_group_state tests/comm/tensors/test_group_take tests/comm/tensors/test_step \
	tests/comm/tensors/test_tensor_group

EXTRA_DIST += tests/comm/tensors/net.h tests/comm/tensors/tensors.h
