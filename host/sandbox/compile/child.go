package compile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime/debug"
	"syscall"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"
)

// The child needs no call in anybody's main: programs that embed the host, and their tests, have one by importing it.
func init() {
	if len(os.Args) == 2 && os.Args[0] == childName {
		os.Exit(child(os.Args[1], os.Stdin, os.Stdout))
	}
}

// child compiles the module at in and returns the exit code. Its directory is the one to write to.
func child(encoded string, in io.Reader, out io.Writer) int {
	var o order
	err := json.Unmarshal([]byte(encoded), &o)
	if err == nil {
		debug.SetMemoryLimit(o.Memory / 4 * 3)
		err = hold(&o)
	}
	if err == nil {
		err = generate(in)
	}
	if err == nil {
		return 0
	}
	fmt.Fprintln(out, err)
	var system *fs.PathError
	var link *os.LinkError
	switch {
	case errors.Is(err, errTooLarge):
		return exitCode
	case errors.As(err, &system), errors.As(err, &link), errors.Is(err, errHold):
		return exitSystem
	}
	return exitInvalid
}

var errHold = errors.New("the compiler cannot be confined")

func generate(in io.Reader) error {
	module, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	cache, err := wazero.NewCompilationCacheWithDir(".")
	if err != nil {
		return errors.Join(errHold, err)
	}
	ctx := experimental.WithCompilationWorkers(context.Background(), workers)
	_, err = wazero.NewRuntimeWithConfig(ctx, Config(cache)).CompileModule(ctx, module)
	return err
}

// errTooLarge is the system's for a file that is larger than the process may write.
const errTooLarge = syscall.EFBIG
