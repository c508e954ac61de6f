package sandbox

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/hako-run/hako/host/internal/rewrite"
	"github.com/hako-run/hako/host/sandbox/compile"
)

// Refusal says why a module is not compiled: an earlier compilation exceeded a limit.
type Refusal struct {
	// Reason is the limit, as a clause: "it took more than 2048 MiB of memory".
	Reason string
	// Note is the file that records the refusal. Without it the module is compiled again.
	Note string
	// Unusable says that the module cannot be called, because it is too large for the interpreter.
	Unusable bool
}

// Problem describes the refusal and its consequence.
func (r *Refusal) Problem() string {
	consequence := "so its calls are interpreted, which is slower by a factor of ten to thirty"
	if r.Unusable {
		consequence = "and it is too large for the interpreter, so its calls fail"
	}
	return "the plugin is not compiled, because the compiler was ended: " + r.Reason + ", " + consequence
}

// Remedy says how to have the module compiled.
func (r *Refusal) Remedy() string {
	return "if the machine was short of memory or busy at that time, remove " + r.Note +
		", and the next start compiles it again; otherwise split up its largest functions, which cost the compiler most"
}

// FindRefusal returns the refusal of a module that is recorded in the cache directory dir of an Engine, or nil. It
// compiles nothing and changes no file. read returns the module; it is not called if nothing is recorded.
func FindRefusal(dir string, read func() ([]byte, error)) (*Refusal, error) {
	notes := filepath.Join(dir, notesFolder)
	if !anyRefusal(notes) {
		return nil, nil // saves rewriting the module
	}
	wasm, err := read()
	if err != nil {
		return nil, err
	}
	result, err := rewrite.Module(wasm, quantum)
	if err != nil {
		return nil, err
	}
	module := &rewritten{Result: *result, Digest: sha256.Sum256(result.Wasm)}
	cache := &codeCache{notes: notes}
	note := cache.notePath(module.Digest, refusedSuffix)
	refusal, err := readRefusal(note)
	if refusal == nil || err != nil {
		return nil, err
	}
	return &Refusal{Reason: refusal.Reason, Note: note, Unusable: !module.interpretable()}, nil
}

func anyRefusal(notes string) bool {
	entries, _ := os.ReadDir(notes)
	for _, entry := range entries {
		if filepath.Ext(entry.Name()) == refusedSuffix {
			return true
		}
	}
	return false
}

// readRefusal reads a note on a refused module. It returns nil if there is none.
func readRefusal(note string) (*compile.LimitError, error) {
	reason, err := os.ReadFile(note)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read why a module is not compiled: %w", err)
	}
	return &compile.LimitError{Reason: strings.TrimSpace(string(reason))}, nil
}
