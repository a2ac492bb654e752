#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# ./dev check retries failed tests (scripts/retry-failed, scripts/count-tests), and ./dev shake repeats
# tests (scripts/shake). A stand-in for a build folder has tests that fail in their first N runs.
# shellcheck source=tests/harness/tap.sh
. "${abs_top_srcdir:-.}/tests/harness/tap.sh"
scripts=${abs_top_srcdir:-.}/scripts
fake=$dir/build

# new_build - create a build folder without results.
new_build() {
    rm -rf "$fake"
    mkdir -p "$fake/tests/x" "$fake/lint"
    echo "ok 1 - lint" >"$fake/lint/lint.log"
    cat >"$fake/Makefile" <<'TEXT'
print-tests:
	@ls tests/x/*.sh tests/x/program[0-9] 2>/dev/null | tr '\n' ' '
check-TESTS:
	@status=0; for test in $(TESTS); do bash run-test $$test || status=1; done; exit $$status
tests/x/%:
TEXT
    # A test is a file that contains the number of its failing runs.
    cat >"$fake/run-test" <<'TEXT'
log=${1%.sh} left=$(cat "$1")
if [ "$left" -gt 0 ]; then
    echo $((left - 1)) >"$1"
    echo "# the reason" >"$log.log"
    echo "not ok 1 - a case" >>"$log.log"
    echo ":global-test-result: FAIL" >"$log.trs"
    exit 1
fi
echo "ok 1 - a case" >"$log.log"
echo ":global-test-result: PASS" >"$log.trs"
TEXT
}

# check_with TEST=FAILING-RUNS... - run the end of a check of these tests; store its output in
# $said.
check_with() {
    local row

    new_build
    for row; do
        echo "${row#*=}" >"$fake/tests/x/${row%=*}"
        make -C "$fake" -s check-TESTS TESTS="tests/x/${row%=*}" >/dev/null 2>&1
    done
    "$scripts/retry-failed" "$fake" >"$dir/retried"
    "$scripts/count-tests" "$fake" >"$said"
    status=$?
}

last() { # COUNTS, STATUS
    [ "$(tail -n 1 "$said")" = "$1" ] && [ "$status" = "$2" ]
}

check_with a.sh=0 program1=0
last "3 passed, 0 failed, 0 skipped" 0 && ! grep -q flaky "$said" && [ ! -s "$dir/retried" ]
result $? "without a failure no test runs again"

check_with a.sh=1 program1=0
last "3 passed, 0 failed, 0 skipped" 0 && grep -q '^flaky: tests/x/a (' "$said" && grep -q 'the reason' "$said"
result $? "a script that passes the second time counts as passed and is listed as flaky"
[ -s "$fake/tests/x/a.log" ] && grep -q 'not ok' "$fake/tests/x/a.first.log"
result $? "both of its logs are kept"

check_with a.sh=0 program1=1 program2=1
last "4 passed, 0 failed, 0 skipped" 0 && [ "$(grep -c '^flaky: tests/x/program' "$said")" = 2 ]
result $? "two flaky programs pass"

check_with a.sh=1 program1=1 program2=1
last "4 passed, 1 failed, 0 skipped" 1 && [ "$(grep -c '^flaky: ' "$said")" = 3 ]
result $? "three flaky tests fail the check"

check_with a.sh=2 program1=0
last "2 passed, 1 failed, 0 skipped" 1 && grep -q 'FAILED   tests/x/a: a case' "$said"
result $? "a test that fails twice fails the check"

check_with program{1..6}=1
last "1 passed, 6 failed, 0 skipped" 1 && grep -q '6 tests failed' "$dir/retried"
result $? "where many tests fail none runs again"

new_build
echo 0 >"$fake/tests/x/a.sh"
echo 1 >"$fake/tests/x/program1"
expect "shake: a test that passes" 0 "tests/x/a.sh: 0 of 1 runs failed" "$scripts/shake" "$fake" --times 1 tests/x/a.sh
expect "shake: one failure of two" 1 "tests/x/program1: 1 of 2 runs failed; logs:" \
    "$scripts/shake" "$fake" --times 2 tests/x/program1
grep -q 'the reason' "$fake/shake/program1.1.log"
result $? "shake: the log of the failed run is kept"
expect "shake: no such test" 2 "this build has no test tests/x/none" "$scripts/shake" "$fake" tests/x/none
expect "shake: no number" 2 "usage: ./dev shake" "$scripts/shake" "$fake" --times x tests/x/a.sh
expect "shake: no test" 2 "usage: ./dev shake" "$scripts/shake" "$fake"
finish
