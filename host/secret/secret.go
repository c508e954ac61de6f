// Package secret reads the secrets of the host, such as keys of APIs, from where the operator keeps them: an
// environment variable, a file or a command.
package secret

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/hako-run/hako/internal/cause"
)

const (
	// MaxSize is the most bytes of a secret.
	MaxSize = 64 << 10
	// commandTime is the timeout of a source's command.
	commandTime = 30 * time.Second
)

// Source is the source of a secret. Exactly one of its fields is set.
type Source struct {
	// Env is the name of an environment variable.
	Env string
	// File is the path of a file, which is read again when it has changed.
	File string
	// Command is a program and its arguments, run without a shell, whose standard output is the secret. It runs at the
	// first use and after a server has refused the secret.
	Command []string
}

// IsZero reports whether no field is set.
func (s Source) IsZero() bool { return s.Env == "" && s.File == "" && len(s.Command) == 0 }

// String describes the source, without the command's arguments.
func (s Source) String() string {
	switch {
	case s.Env != "":
		return "the environment variable " + s.Env
	case s.File != "":
		return "the file " + s.File
	case len(s.Command) > 0:
		return "the command " + s.Command[0]
	}
	return "nothing"
}

// Check returns an error unless exactly one field is set.
func (s Source) Check() error {
	set := 0
	for _, is := range []bool{s.Env != "", s.File != "", len(s.Command) > 0} {
		if is {
			set++
		}
	}
	if set != 1 {
		return errors.New("needs one of env, file and command")
	}
	return nil
}

// Read returns the secret without surrounding white space. It fails if the variable is not set, the file cannot be
// read, the command fails or takes more than 30 seconds, or the secret has more than 64 KiB. The error names the source
// and does not contain the secret.
func (s Source) Read(ctx context.Context) (string, error) { return New(s).Read(ctx) }

// Secret is a secret of the host, such as the key of a model's API. It reads and caches a Source. It is safe for
// concurrent use.
type Secret struct {
	source Source

	mu    sync.Mutex // guards the fields below
	known bool
	text  string
	info  os.FileInfo // of the file at the last read
}

// New returns a Secret that is read from source when it is first needed.
func New(source Source) *Secret { return &Secret{source: source} }

// Read returns the secret: the current content of a file, or for other sources the value at the first use or after
// Forget. The error names the source and does not contain the secret.
func (s *Secret) Read(ctx context.Context) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known && !s.changed() {
		return s.text, nil
	}
	text, err := s.fetch(ctx)
	if err != nil {
		return "", fmt.Errorf("%v: %w", s.source, err)
	}
	s.text, s.known = text, true
	return text, nil
}

// Forget makes the next Read query the source again, after a server has refused the secret.
func (s *Secret) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known = false
}

func (s *Secret) changed() bool {
	if s.source.File == "" {
		return false
	}
	info, err := os.Stat(s.source.File)
	return err != nil || !os.SameFile(info, s.info) || info.ModTime() != s.info.ModTime() ||
		info.Size() != s.info.Size()
}

// fetch reads the source and trims white space.
func (s *Secret) fetch(ctx context.Context) (string, error) {
	var data []byte
	var err error
	switch {
	case s.source.File != "":
		data, err = s.readFile()
	case s.source.Env != "":
		data = []byte(os.Getenv(s.source.Env))
	default:
		data, err = run(ctx, s.source.Command)
	}
	text := strings.TrimSpace(string(data))
	switch {
	case err != nil:
		return "", err
	case len(data) > MaxSize:
		return "", fmt.Errorf("has more than %d bytes", MaxSize)
	case text == "":
		return "", errors.New("is empty or not set")
	}
	return text, nil
}

func (s *Secret) readFile() ([]byte, error) {
	file, err := os.Open(s.source.File)
	if err != nil {
		return nil, cause.WithoutPath(err)
	}
	defer file.Close()
	if s.info, err = file.Stat(); err != nil {
		return nil, cause.WithoutPath(err)
	}
	data, err := io.ReadAll(io.LimitReader(file, MaxSize+1))
	return data, cause.WithoutPath(err)
}

// run runs a command and returns its output. The error contains neither output nor arguments, which may be secret.
func run(ctx context.Context, command []string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTime)
	defer cancel()
	out := limitedBuffer{left: MaxSize + 1}
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Stdout = &out
	cmd.WaitDelay = 10 * time.Second // output may be late on a busy machine
	err := cmd.Run()
	if ctx.Err() != nil {
		return nil, fmt.Errorf("it did not end in time: %w", ctx.Err())
	}
	return out.Bytes(), err
}

// limitedBuffer stores up to a number of bytes and drops the rest.
type limitedBuffer struct {
	bytes.Buffer
	left int
}

func (b *limitedBuffer) Write(p []byte) (int, error) {
	kept := p[:min(len(p), b.left)]
	b.left -= len(kept)
	b.Buffer.Write(kept)
	return len(p), nil
}
