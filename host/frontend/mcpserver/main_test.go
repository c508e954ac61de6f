package mcpserver

import (
	"testing"

	"github.com/hako-run/hako/dev/kit/testwait"
)

func TestMain(m *testing.M) { testwait.Main(m) }
