package compile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"syscall"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"
)

// The child is started here, so that programs that embed the host, and their tests, need no call in their main.
func init() {
	if len(os.Args) == 2 && os.Args[0] == childName {
		// Under the race detector os.Exit would wait for a second.
		syscall.Exit(child(os.Args[1], os.Stdin, os.Stdout))
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
		err = generate(in, o.Stub)
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

// generate compiles a module, and its stub, which precedes it in the input, and gives the code of the module the name
// of the stub's.
func generate(in io.Reader, stubSize int) error {
	input, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	const modules = "module"
	if err := compileInto(modules, input[stubSize:]); err != nil {
		return err
	}
	code, err := singleFile(modules)
	if err != nil {
		return err
	}
	if err := compileInto("stub", input[:stubSize]); err != nil {
		return err
	}
	name, err := singleFile("stub")
	if err != nil {
		return err
	}
	folder := filepath.Base(filepath.Dir(name))
	return errors.Join(os.Rename(code, name), os.Rename(filepath.Dir(name), folder), os.RemoveAll(modules),
		os.RemoveAll("stub"))
}

func compileInto(dir string, module []byte) error {
	cache, err := NewCache(dir)
	if err != nil {
		return errors.Join(errConfine, err)
	}
	ctx := experimental.WithCompilationWorkers(context.Background(), workers)
	_, err = wazero.NewRuntimeWithConfig(ctx, Config(cache)).CompileModule(ctx, module)
	return err
}

// errFileTooLarge is the error for a file beyond RLIMIT_FSIZE.
const errFileTooLarge = syscall.EFBIG
