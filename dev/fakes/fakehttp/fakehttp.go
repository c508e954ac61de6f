// Package fakehttp has the parts that the fakes of vendors' APIs share: JSON answers, bearer tokens and a Log of
// what was sent. How the fakes fail is in package fault.
package fakehttp

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// JSON answers with body, which a fake has made up: JSON panics if it cannot be encoded. A Content-Type that is set
// already stays.
func JSON(w http.ResponseWriter, status int, body any) {
	data, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	if w.Header().Get("Content-Type") == "" {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
	}
	w.WriteHeader(status)
	_, _ = w.Write(data)
}

// Bearer returns the token of the Authorization header, or "".
func Bearer(r *http.Request) string {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		return ""
	}
	return token
}

// Log keeps what a fake was sent, in order. The zero value is empty. It is safe for concurrent use.
type Log[T any] struct {
	mu      sync.Mutex
	entries []T // guarded by mu
}

// Add appends an entry and returns how many there are now.
func (l *Log[T]) Add(entry T) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries = append(l.entries, entry)
	return len(l.entries)
}

// All returns a copy of the entries.
func (l *Log[T]) All() []T {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.entries)
}
