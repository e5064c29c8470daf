//go:build !unix

package redisproc

import (
	"os"
	"os/exec"
)

func setAttributes(*exec.Cmd) {}

// askToEnd has no gentle form here; without persistence nothing is lost by the hard one.
func askToEnd(p *os.Process) error { return p.Kill() }

func freeze(*os.Process) error { return ErrUnsupported }

func thaw(*os.Process) error { return ErrUnsupported }
