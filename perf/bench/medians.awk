# SPDX-License-Identifier: BSD-3-Clause
#
# medians.awk: medians and number formats for the tables of the bench scripts.
# value[key, 1 … count[key]] are the launches.

# Sorts value[key, 1 … n] in place and leaves low, middle, high.
function summarise(key,    n, i, j, v) {
    n = count[key]
    for (i = 2; i <= n; i++) {
        v = value[key, i]
        for (j = i - 1; j >= 1 && value[key, j] > v; j--) value[key, j + 1] = value[key, j]
        value[key, j + 1] = v
    }
    low = value[key, 1]
    high = value[key, n]
    middle = n % 2 ? value[key, (n + 1) / 2] : (value[key, n / 2] + value[key, n / 2 + 1]) / 2
}

function number(x) {
    return sprintf(x < 0.1 ? "%.2g" : x < 10 ? "%.2f" : x < 1000 ? "%.1f" : "%.0f", x)
}

function size_text(b) {
    if (b >= 1048576 && b % 1048576 == 0) return b / 1048576 " MiB"
    if (b >= 1024 && b % 1024 == 0) return b / 1024 " KiB"
    if (b >= 1000000 && b % 1000000 == 0) return b / 1000000 " MB"
    return b " B"
}

function ratio(a, b) { return a > 0 && b > 0 ? sprintf("%.2f", a / b) : "-" }
