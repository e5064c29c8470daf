// Package plots draws with gonum's vector graphics and hands the drawing over as one SVG element that can stand in an
// HTML page or in a file of its own.
//
// In flow shapes and texts, in pixels counted from the bottom left corner; out flow SVG text without identifiers, links,
// scripts or embedded fonts, so that several drawings fit into one page. The package knows nothing about what is drawn,
// and never opens a file.
package plots
