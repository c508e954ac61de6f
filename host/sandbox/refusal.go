package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/hako-run/hako/host/sandbox/compile"
)

// Refusal explains why a module is not compiled: an earlier compilation exceeded a limit.
type Refusal struct {
	// Reason is the limit, as a clause: "it took more than 2048 MiB of memory".
	Reason string
	// Note is the file that records the refusal. Without it the module is compiled again.
	Note string
	// Unusable reports whether the module cannot be called, because it is too large for the interpreter.
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

// Remedy describes how to have the module compiled.
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
	guest, err := rewritePlugin(wasm)
	if err != nil {
		return nil, err
	}
	cache := &codeCache{notes: notes}
	for i := range guest.Modules {
		note := cache.notePath(guest.Modules[i].Digest, refusedSuffix)
		refusal, err := readRefusal(note)
		if err != nil {
			return nil, err
		}
		if refusal != nil {
			return &Refusal{Reason: refusal.Reason, Note: note, Unusable: !guest.interpretable()}, nil
		}
	}
	return nil, nil
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
