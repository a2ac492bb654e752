# SPDX-License-Identifier: BSD-3-Clause
#
# show.awk -v width=COLUMNS bench.md: print Markdown for a terminal. Columns of tables are aligned;
# wide tables are split into parts below each other, each with the first column; other lines are
# wrapped.

function wide(text) { gsub(/[\200-\277]/, "", text); return length(text) }

function padded(text, n, left,    pad) {
    pad = sprintf("%" (n > wide(text) ? n - wide(text) : 0) "s", "")
    return left ? text pad : pad text
}

function part(from, to,    r, c, line) {
    for (r = 1; r <= rows; r++) {
        line = padded(cell[r, 1], size[1], 1)
        for (c = from; c <= to; c++) line = line "  " padded(cell[r, c], size[c], 0)
        sub(/ +$/, "", line)
        print line
    }
}

function table(    from, to, total) {
    for (from = 2; from <= columns; from = to + 1) {
        if (from > 2) print ""
        total = size[1] + 2 + size[from]
        for (to = from; to < columns && total + 2 + size[to + 1] <= width; to++) total += 2 + size[to + 1]
        part(from, to)
    }
    if (columns == 1) part(2, 1)
    rows = columns = 0
    split("", size)
}

function folded(line,    n, i, word, text) {
    n = split(line, word, " ")
    for (i = 1; i <= n; i++) {
        if (text != "" && wide(text) + 1 + wide(word[i]) > width) { print text; text = "" }
        text = text (text != "" ? " " : "") word[i]
    }
    print text
}

/^\|[-:| ]+$/ { next }

/^\|/ {
    n = split($0, parts, /\|/) - 2
    rows++
    for (i = 1; i <= n; i++) {
        text = parts[i + 1]
        gsub(/^ +| +$/, "", text)
        cell[rows, i] = text
        if (wide(text) > size[i]) size[i] = wide(text)
    }
    if (n > columns) columns = n
    next
}

{
    if (rows) table()
    if (wide($0) > width) folded($0); else print
}

END { if (rows) table() }
