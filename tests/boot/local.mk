# SPDX-License-Identifier: BSD-3-Clause
EXTRA_DIST += tests/boot/boottest.h tests/boot/mpi_order.c
check_tests += tests/boot/tcp/test_listener_slots tests/boot/tcp/test_tcp tests/boot/test_boot \
	tests/boot/test_job_secret tests/boot/test_launcher tests/boot/test_local tests/boot/test_pmi tests/boot/test_root \
	tests/boot/test_slurm
check_scripts += tests/boot/test_launchers.sh
