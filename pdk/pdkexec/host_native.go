//go:build !wasip1

package pdkexec

import (
	"context"

	"github.com/hako-run/hako/pdk/abi"
	"github.com/hako-run/hako/pdk/internal/nativeexec"
)

// Outside of Wasm nothing runs: a test says what a command does.

var errNoRunner = &abi.Error{Code: abi.CodeNotGranted, Message: "outside of a host no commands run: name what they do in pdktest.Options.Exec"}

// played is a command that a test plays to its end before anything is read.
type played struct {
	pieces []piece
	exit   *abi.ExecExit
}

type piece struct {
	stream int
	data   []byte
}

func hostStart(ctx context.Context, request *abi.ExecRequest) (source, error) {
	runner := nativeexec.FromContext(ctx)
	if runner == nil {
		return nil, errNoRunner
	}
	p := new(played)
	var err error
	p.exit, err = runner(request, func(stream int, data []byte) {
		if len(data) > 0 {
			p.pieces = append(p.pieces, piece{stream, append([]byte(nil), data...)})
		}
	})
	return p, err
}

func (p *played) read(buffer []byte) (stream, n int, err error) {
	if len(p.pieces) == 0 {
		return 0, 0, nil
	}
	first := &p.pieces[0]
	stream, n = first.stream, copy(buffer, first.data)
	if first.data = first.data[n:]; len(first.data) == 0 {
		p.pieces = p.pieces[1:]
	}
	return stream, n, nil
}

func (p *played) wait() (*abi.ExecExit, error) { return p.exit, nil }

func (p *played) close() {}
