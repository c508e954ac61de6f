// Package gobuild compiles plugins that are written in Go, with the standard compiler: Plugin builds the folder of one.
package gobuild

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/hako-run/hako/internal/scratch"
)

// errNoCompiler means that there is no go command to build with.
var errNoCompiler = errors.New("the Go compiler is not installed or not in PATH: install it from https://go.dev/dl/")

// Plugin compiles the main package in dir to a Wasm library and returns its bytes. The same sources and compiler give
// the same bytes.
//
// It fails if there is no go command, with the compiler's own messages, or with ctx's error when ctx ends first.
func Plugin(ctx context.Context, dir string) (_ []byte, err error) {
	goCommand, err := exec.LookPath("go")
	if err != nil {
		return nil, errNoCompiler
	}
	temp, err := scratch.New("", "hako-build")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, temp.Remove()) }()
	out := filepath.Join(temp.Path, "plugin.wasm")
	build := exec.CommandContext(ctx, goCommand, "build", "-buildmode=c-shared", "-trimpath", "-buildvcs=false",
		"-ldflags=-s -w", "-o", out, ".")
	build.Dir = dir
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
	var messages bytes.Buffer
	build.Stdout, build.Stderr = &messages, &messages
	if err := build.Run(); err != nil {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("build %s: %w", dir, ctx.Err())
		}
		return nil, fmt.Errorf("build %s: %w\n%s", dir, err, strings.TrimSpace(messages.String()))
	}
	return os.ReadFile(out)
}
