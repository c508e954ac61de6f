package terminal

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hako-run/hako/host/govern/secretscan"
	"github.com/hako-run/hako/internal/visible"
)

// maxHistory is the number of messages that a history keeps.
const maxHistory = 500

// history holds the messages of a person, the oldest first, in a file with one JSON text a line. Without a path they
// are held in memory.
type history struct {
	path    string
	entries []string
	// at is the index of the entry shown, len(entries) for the draft.
	at    int
	draft string
}

// openHistory reads the file, if there is one. Lines that cannot be read are left out.
func openHistory(path string) (*history, error) {
	h := &history{path: path}
	if path == "" {
		return h, nil
	}
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for line := range strings.Lines(string(data)) {
		var entry string
		if json.Unmarshal([]byte(line), &entry) == nil {
			h.entries = append(h.entries, visible.Clean(entry))
		}
	}
	if n := len(h.entries); n > 2*maxHistory {
		h.entries = slices.Clone(h.entries[n-maxHistory:])
		err = h.rewrite()
	} else {
		err = nil
	}
	h.at = len(h.entries)
	return h, err
}

// rewrite replaces the file by the entries.
func (h *history) rewrite() error {
	file, err := os.CreateTemp(filepath.Dir(h.path), filepath.Base(h.path)+"-*") // with mode 0600
	if err != nil {
		return err
	}
	var lines []byte
	for _, entry := range h.entries {
		lines = append(lines, encoded(entry)...)
	}
	_, err = file.Write(lines)
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), h.path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return nil
}

// encoded is an entry as the file has it: on one line, and without the secrets that were pasted into it.
func encoded(entry string) []byte {
	entry, _ = secretscan.Default().Text(secretscan.Results, entry)
	line, _ := json.Marshal(entry) // text can always be encoded
	return append(line, '\n')
}

// add appends a message, unless it is the last one again.
func (h *history) add(entry string) error {
	repeated := len(h.entries) > 0 && h.entries[len(h.entries)-1] == entry
	if !repeated {
		h.entries = append(h.entries, entry)
	}
	h.at, h.draft = len(h.entries), ""
	if repeated || h.path == "" {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(h.path), 0o700); err != nil {
		return err
	}
	file, err := os.OpenFile(h.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(encoded(entry))
	return errors.Join(err, file.Close())
}

// move returns the entry before or after the one shown, and whether there is one. shown is the text that the person
// sees now; it is kept while it is the draft.
func (h *history) move(by int, shown string) (string, bool) {
	to := h.at + by
	if to < 0 || to > len(h.entries) {
		return "", false
	}
	if h.at == len(h.entries) {
		h.draft = shown
	}
	if h.at = to; to == len(h.entries) {
		return h.draft, true
	}
	return h.entries[to], true
}
