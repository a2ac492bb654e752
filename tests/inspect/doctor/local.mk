# SPDX-License-Identifier: BSD-3-Clause
check_tests += tests/inspect/doctor/test_doctor
