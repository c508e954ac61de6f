package transport

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"
)

// TestHostileSharedBuffers: buffers of answers are used again, also after clients that read nothing and disconnect in
// the middle of an answer. Every other client gets the bytes of its own answer and no others.
func TestHostileSharedBuffers(t *testing.T) {
	t.Parallel()
	for _, protocol := range []string{"HTTP/1", "HTTP/2"} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewUnstartedServer(http.HandlerFunc(answerLetters))
			server.EnableHTTP2 = protocol == "HTTP/2"
			server.StartTLS()
			t.Cleanup(server.Close)
			var clients sync.WaitGroup
			for i := range 8 {
				clients.Go(func() {
					for n := range 20 {
						size := []int{100, 5000, 60_000, 200_000, 300_000}[n%5]
						checkLetters(t, server, byte('a'+i), size, n%2 == 0, i%2 == 1 && n%3 != 0)
					}
				})
			}
			clients.Wait()
		})
	}
}

// answerLetters answers with so many of a letter, as JSON or as an event.
func answerLetters(w http.ResponseWriter, r *http.Request) {
	response := NewResponse(w, time.Minute)
	defer response.Close()
	stream := NewJSON(response)
	if r.FormValue("events") != "" {
		stream = NewEvents(response, 2)
	}
	size, _ := strconv.Atoi(r.FormValue("size"))
	for range stream.pending {
		_ = stream.Answer(http.StatusOK, func(dst []byte) []byte {
			return append(dst, bytes.Repeat([]byte(r.FormValue("letter")), size)...)
		})
	}
}

// checkLetters asks for an answer and checks it. With leaves, it disconnects after the first bytes.
func checkLetters(t *testing.T, server *httptest.Server, letter byte, size int, events, leaves bool) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	address := fmt.Sprintf("%s/?letter=%c&size=%d", server.URL, letter, size)
	want := bytes.Repeat([]byte{letter}, size)
	if events {
		address += "&events=1"
		want = append(append([]byte("event: message\ndata: "), want...), "\n\n"...)
		want = append(want, want...)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		t.Error(err)
		return
	}
	answer, err := server.Client().Do(request)
	if err != nil {
		t.Error(err)
		return
	}
	defer answer.Body.Close()
	if leaves {
		begin := make([]byte, min(len(want), 50))
		if _, err := io.ReadFull(answer.Body, begin); err != nil || !bytes.HasPrefix(want, begin) {
			t.Errorf("an answer of %c begins with %q, %v", letter, begin, err)
		}
		return
	}
	got, err := io.ReadAll(answer.Body)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes of %c: got %d bytes, %v; others: %.60q", len(want), letter, len(got), err,
			bytes.Trim(got, string(letter)))
	}
}
