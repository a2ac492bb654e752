# SPDX-License-Identifier: BSD-3-Clause
# Accuracy over bytes sent, one line per codec. Set by demo.sh: out, files, codecs, ranks.

set terminal pngcairo size 1200,750 font "DejaVu Sans,14" background "#ffffff"
set output out."/accuracy.png"
set datafile separator ","

set title "{/=19 Fashion-MNIST on ".ranks." ranks: what a byte of gradient buys}\n" . \
    "one seed, four codecs; up and to the left is better" \
    font ",13" textcolor "#333333" offset 0,0.2
set xlabel "gradient bytes that each rank has sent" offset 0,-0.3
set ylabel "test accuracy (%)" offset -0.5,0
set logscale x 10
set xrange [2e5:1e10]
set xtics ("1 MB" 1e6, "10 MB" 1e7, "100 MB" 1e8, \
    "1 GB" 1e9, "10 GB" 1e10)
set yrange [40:95]
set ytics 10
set grid xtics ytics linetype 1 linecolor "#e4e4e4"
set border 3 linecolor "#666666"
set tics nomirror textcolor "#333333"
set key bottom right reverse Left samplen 2.5 spacing 1.35 box linecolor "#cccccc" \
    height 0.6 width 1 opaque

# Okabe and Ito's colours, which colour-blind readers can tell apart.
array colour[4] = ["#0072b2", "#e69f00", "#009e73", "#cc79a7"]
array shape[4] = [7, 5, 9, 13]

n = words(files)
array last_x[n]
array last_y[n]
do for [i = 1:n] {
    stats word(files, i) every ::1 using 2:3 nooutput
    last_x[i] = STATS_max_x
    stats word(files, i) every ::1 using (column(2) == last_x[i] ? column(3) : NaN) nooutput
    last_y[i] = STATS_max
    set label i sprintf("%.1f %%", last_y[i]) at last_x[i], last_y[i] center \
        offset 0,(i % 2 ? 1.0 : 2.1) textcolor rgb colour[i] font ",14" front
}

plot for [i = 1:n] word(files, i) every ::1 using 2:3 with linespoints \
    linewidth 2.5 pointtype shape[i] pointsize 1 linecolor rgb colour[i] \
    title sprintf("%s, %.1f %%", word(codecs, i), last_y[i])
