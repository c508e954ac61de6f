//go:build !wasip1

package pdkexec

import (
	"context"

	"github.com/hako-run/hako/pdk/abi"
	"github.com/hako-run/hako/pdk/internal/nativeexec"
)

// Outside of Wasm a test runs the commands.

var errNoRunner = &abi.Error{Code: abi.CodeNotGranted,
	Message: "outside of a host no commands run: name what they do in pdktest.Options.Exec"}

// nativeCommand is a command that the test has run to its end.
type nativeCommand struct {
	chunks []chunk
	exit   *abi.ExecExit
}

type chunk struct {
	stream int
	data   []byte
}

func hostStart(ctx context.Context, request *abi.ExecRequest) (source, error) {
	runner := nativeexec.FromContext(ctx)
	if runner == nil {
		return nil, errNoRunner
	}
	p := new(nativeCommand)
	var err error
	p.exit, err = runner(request, func(stream int, data []byte) {
		if len(data) > 0 {
			p.chunks = append(p.chunks, chunk{stream, append([]byte(nil), data...)})
		}
	})
	return p, err
}

func (p *nativeCommand) read(buffer []byte) (stream, n int, err error) {
	if len(p.chunks) == 0 {
		return 0, 0, nil
	}
	first := &p.chunks[0]
	stream, n = first.stream, copy(buffer, first.data)
	if first.data = first.data[n:]; len(first.data) == 0 {
		p.chunks = p.chunks[1:]
	}
	return stream, n, nil
}

func (p *nativeCommand) wait() (*abi.ExecExit, error) { return p.exit, nil }

func (p *nativeCommand) close() {}
