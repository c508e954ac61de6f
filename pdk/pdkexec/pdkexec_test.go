package pdkexec_test

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hako-run/hako/pdk/abi"
	"github.com/hako-run/hako/pdk/pdkexec"
	"github.com/hako-run/hako/pdk/pdktest"
)

func TestRun(t *testing.T) {
	t.Parallel()
	var got *abi.ExecRequest
	ctx := pdktest.Context(t, pdktest.Options{Exec: func(request *abi.ExecRequest,
		output func(int, []byte)) (*abi.ExecExit, error) {
		got = request
		output(abi.ExecStdout, []byte("out"))
		output(abi.ExecStderr, []byte("err"))
		output(abi.ExecStdout, []byte("put"))
		return &abi.ExecExit{ExitCode: -1, Signal: "killed", Stopped: abi.StoppedTime, Cut: []string{"stderr"}}, nil
	}})
	var out, errs strings.Builder
	exit, err := pdkexec.Run(ctx, &pdkexec.Command{Argv: []string{"git", "log"}, Dir: "sub",
		Timeout: 1500 * time.Millisecond}, &out, &errs)
	if err != nil {
		t.Fatal(err)
	}
	if out.String() != "output" || errs.String() != "err" {
		t.Errorf("wrote %q and %q", out.String(), errs.String())
	}
	if exit.Code != -1 || exit.Signal != "killed" || exit.Stopped != abi.StoppedTime ||
		!slices.Equal(exit.Cut, []pdkexec.Stream{pdkexec.Stderr}) {
		t.Errorf("%+v", exit)
	}
	if !slices.Equal(got.Argv, []string{"git", "log"}) || got.Cwd != "sub" || got.TimeoutMS != 1500 {
		t.Errorf("asked for %+v", got)
	}
	if exit, err := pdkexec.Run(ctx, &pdkexec.Command{Line: "git log"}, nil, nil); err != nil || exit.Code != -1 {
		t.Errorf("without writers: %+v, %v", exit, err)
	}
	if _, err := pdkexec.Run(ctx, &pdkexec.Command{Line: "git log"}, full{}, nil); !errors.Is(err, errFull) {
		t.Errorf("a writer that fails: %v", err)
	}
}

var errFull = errors.New("full")

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestRead(t *testing.T) {
	t.Parallel()
	ctx := pdktest.Context(t, pdktest.Options{Exec: func(_ *abi.ExecRequest, output func(int, []byte)) (*abi.ExecExit,
		error) {
		output(abi.ExecStdout, []byte("abc"))
		return &abi.ExecExit{}, nil
	}})
	p, err := pdkexec.Start(ctx, &pdkexec.Command{Line: "x"})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	buffer := make([]byte, 2)
	for _, want := range []string{"ab", "c"} {
		if stream, n, err := p.Read(buffer); stream != pdkexec.Stdout || string(buffer[:n]) != want || err != nil {
			t.Errorf("%d, %q, %v", stream, buffer[:n], err)
		}
	}
	for range 2 {
		if _, _, err := p.Read(buffer); !errors.Is(err, io.EOF) {
			t.Errorf("after the end: %v", err)
		}
	}
	if _, _, err := p.Read(nil); !errors.Is(err, io.ErrShortBuffer) {
		t.Errorf("no room: %v", err)
	}
	for range 2 {
		if exit, err := p.Wait(); err != nil || exit.Code != 0 {
			t.Errorf("%+v, %v", exit, err)
		}
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	refused := pdktest.Context(t, pdktest.Options{Exec: func(*abi.ExecRequest, func(int, []byte)) (*abi.ExecExit,
		error) {
		return nil, &abi.Error{Code: abi.CodeNotGranted, Message: "no"}
	}})
	failed := pdktest.Context(t, pdktest.Options{Exec: func(*abi.ExecRequest, func(int, []byte)) (*abi.ExecExit,
		error) {
		return &abi.ExecExit{Error: &abi.Error{Code: abi.CodeInternal, Message: "broken"}}, nil
	}})
	line := &pdkexec.Command{Line: "x"}
	for name, run := range map[string]func() error{
		abi.CodeNotGranted: func() error { _, err := pdkexec.Run(refused, line, nil, nil); return err },
		abi.CodeInternal:   func() error { _, err := pdkexec.Run(failed, line, nil, nil); return err },
		abi.CodeInvalid:    func() error { _, err := pdkexec.Start(failed, &pdkexec.Command{}); return err },
	} {
		var own *abi.Error
		if err := run(); !errors.As(err, &own) || own.Code != name {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := pdkexec.Start(failed, &pdkexec.Command{Line: "x", Argv: []string{"y"}}); err == nil {
		t.Error("a line and a program")
	}
	if _, err := pdkexec.Start(pdktest.Context(t, pdktest.Options{}), line); err == nil ||
		!strings.Contains(err.Error(), "pdktest.Options.Exec") {
		t.Errorf("without a host: %v", err)
	}
}
