package redisproc_test

import (
	"testing"

	"github.com/babelpool/babelpool/internal/testredis"
)

func TestMain(m *testing.M) {
	if parentMain() {
		return
	}
	testredis.Main(m)
}
