// Package testlog provides a Buffer for tests that read logs and output while another goroutine or process still writes
// them.
package testlog

import (
	"bytes"
	"log/slog"
	"sync"
)

// Buffer is an io.Writer. The zero value is empty. It is safe for concurrent use.
type Buffer struct {
	mu   sync.Mutex
	text bytes.Buffer // guarded by mu
}

// Write implements io.Writer.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

// String returns what has been written so far.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// Logger returns a logger that writes records of all levels as text.
func (b *Buffer) Logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(b, &slog.HandlerOptions{Level: slog.LevelDebug}))
}
