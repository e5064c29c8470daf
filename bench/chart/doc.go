// Command chart draws the comparison that bench/peers measured as a bar chart for a README.
//
//	go run ./bench/chart -in bench/results/peers-2026-12-01.json -out docs/peers.svg
//
// In flows a results file of bench/peers; out flows one SVG picture on a background of its own, so that it reads on
// white and on dark pages. It shows the median of every contender, and its lowest and highest run. It measures nothing.
package main
