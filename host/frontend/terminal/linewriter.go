package terminal

import (
	"strings"
)

// lineWriter prints the lines that are written to it above an editor, in the order of the changes. It never waits for
// the loop, which may be what writes.
type lineWriter struct {
	*editor
	// partial is a line without its end. The editor's writing guards it.
	partial string
}

// Write implements io.Writer for data that has passed a Screen.
func (w *lineWriter) Write(data []byte) (int, error) {
	w.writing.Lock()
	defer w.writing.Unlock()
	lines := strings.Split(w.partial+string(data), "\n")
	w.partial = lines[len(lines)-1]
	w.add(lines[:len(lines)-1])
	return len(data), nil
}

// flush prints a line that has no end yet.
func (w *lineWriter) flush() {
	w.writing.Lock()
	defer w.writing.Unlock()
	if w.partial != "" {
		w.add([]string{w.partial})
		w.partial = ""
	}
}

// add queues lines. w.writing is held.
func (w *lineWriter) add(lines []string) {
	w.written = append(w.written, lines...)
	select {
	case w.wake <- struct{}{}:
	default: // it will wake already
	}
}
