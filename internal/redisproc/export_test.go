package redisproc

// StartPicking is Start with the choice of a free port in the test's hands.
var StartPicking = start
