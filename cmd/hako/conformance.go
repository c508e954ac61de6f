//go:build conformance

package main

import (
	"github.com/hako-run/hako/host/mcpserver"
	"github.com/hako-run/hako/host/mcpserver/conformance"
)

func init() {
	extension = &mcpserver.Extension{Configure: conformance.Configure, Register: conformance.Register}
}
