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

// The child is started here, so that programs that embed the host, and their tests, need no call in their main.
func init() {
	if len(os.Args) == 2 && os.Args[0] == childName {
		os.Exit(child(os.Args[1], os.Stdin, os.Stdout))
	}
}

// child compiles the module that it reads from in and returns the exit code. It writes into the current directory.
func child(encoded string, in io.Reader, out io.Writer) int {
	var o childConfig
	err := json.Unmarshal([]byte(encoded), &o)
	if err == nil {
		debug.SetMemoryLimit(o.Memory / 4 * 3)
		err = confineSelf(&o)
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
	case errors.Is(err, errFileTooLarge):
		return exitCode
	case errors.As(err, &system), errors.As(err, &link), errors.Is(err, errConfine):
		return exitSystem
	}
	return exitInvalid
}

var errConfine = errors.New("the compiler cannot be confined")

func generate(in io.Reader) error {
	module, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	cache, err := wazero.NewCompilationCacheWithDir(".")
	if err != nil {
		return errors.Join(errConfine, err)
	}
	ctx := experimental.WithCompilationWorkers(context.Background(), workers)
	_, err = wazero.NewRuntimeWithConfig(ctx, Config(cache)).CompileModule(ctx, module)
	return err
}

// errFileTooLarge is the error for a file beyond RLIMIT_FSIZE.
const errFileTooLarge = syscall.EFBIG
