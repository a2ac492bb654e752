# SPDX-License-Identifier: BSD-3-Clause
#
# tables.awk: medians, number formats and Markdown tables of the benches.
# value[key, 1 … count[key]] are the launches; item[list, 1 … items[list]] are lists in order of appearance.

BEGIN { FS = "," }

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

function add(key, x) { value[key, ++count[key]] = x + 0 }

# Append x to a list unless it is there.
function note(list, x) {
    if ((list, x) in noted) return
    noted[list, x] = 1
    item[list, ++items[list]] = x
}

# Return the median, or 0 if there is no launch; set low, middle, high.
function median(key) {
    low = middle = high = 0
    if (key in count) summarise(key)
    return middle
}

# Return the least median of the items of a list, except one; 0: none. Set `who` to its item.
function best(row, list, except,    i, took, least) {
    for (i = 1; i <= items[list]; i++) {
        took = item[list, i] == except ? 0 : median(row item[list, i])
        if (took > 0 && (!least || took < least)) { least = took; who = item[list, i] }
    }
    return least
}

function number(x) {
    return sprintf(x < 0.1 ? "%.2g" : x < 10 ? "%.2f" : x < 1000 ? "%.1f" : "%.0f", x)
}
function shown(x) { return x > 0 ? number(x) : "-" }

function size_text(b) {
    if (b >= 1048576 && b % 1048576 == 0) return b / 1048576 " MiB"
    if (b >= 1024 && b % 1024 == 0) return b / 1024 " KiB"
    if (b >= 1000000 && b % 1000000 == 0) return b / 1000000 " MB"
    return b " B"
}
function ratio(a, b) { return a > 0 && b > 0 ? sprintf("%.2f", a / b) : "-" }

# Return a ratio and whether it is in these limits; "" is none.
function mark(a, b, least, most,    text) {
    text = ratio(a, b)
    if (text == "-") return text
    return text ((least == "" || a >= least * b) && (most == "" || a <= most * b) ? " ✓" : " ✗")
}

# Return "median [least-greatest]", each divided by `by` if given.
function cell(key, by) {
    if (!(key in count)) return "-"
    summarise(key)
    if (!by) by = 1
    return number(middle / by) " [" number(low / by) "-" number(high / by) "]"
}

# Return the cells of the items of a list, each with " |".
function cells(row, list, by,    i, line) {
    for (i = 1; i <= items[list]; i++) line = line " " cell(row item[list, i], by) " |"
    return line
}

# Return the items of a list for head(), each after "|".
function listed(list,    i, line) {
    for (i = 1; i <= items[list]; i++) line = line "|" item[list, i]
    return line
}

# Print a table's head, "<left|right|…".
function head(columns,    n, i, of, line, rule) {
    n = split(columns, of, "|")
    line = rule = "|"
    for (i = 1; i <= n; i++) {
        rule = rule (of[i] ~ /^</ ? "---|" : "--:|")
        sub(/^</, "", of[i])
        line = line (of[i] == "" ? "" : " " of[i]) " |"
    }
    print line
    print rule
}

# Count a launch by the probes before and after it; return near, far, mixed, …
function probed(before, after,    state) {
    state = before == after ? before : "mixed"
    probes[state]++
    return state
}

function print_probes(    state, line) {
    for (state in probes) line = line " " state " " probes[state]
    print "Core probe around the rows:" line "."
}
