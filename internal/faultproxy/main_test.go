package faultproxy

import (
	"testing"

	"github.com/babelpool/babelpool/internal/testredis"
)

func TestMain(m *testing.M) { testredis.Main(m) }
