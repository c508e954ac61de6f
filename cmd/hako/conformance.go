//go:build conformance

package main

import (
	"github.com/hako-run/hako/dev/kit/mcpsuite"
	"github.com/hako-run/hako/host/frontend/mcpserver"
)

func init() {
	extension = &mcpserver.Extension{Configure: mcpsuite.Configure, Register: mcpsuite.Register}
}
