package mcpclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"golang.org/x/time/rate"
)

// scripted is a transport that gives its answers one after the other.
type scripted struct {
	answers []func(*http.Request) (*http.Response, error)
	// ids are the ids of the last events in the requests.
	ids []string
}

func (s *scripted) RoundTrip(req *http.Request) (*http.Response, error) {
	s.ids = append(s.ids, req.Header.Get("Last-Event-ID"))
	next := s.answers[0]
	s.answers = s.answers[1:]
	return next(req)
}

func (s *scripted) CloseIdleConnections() {}

func (s *scripted) remote(ctx context.Context) *remote {
	return &remote{base: s, ctx: ctx, most: 1 << 20, meter: new(meter), limiter: rate.NewLimiter(rate.Inf, 1),
		noise: func([]byte) {}}
}

// answering is an answer with this status, and events as its body.
func answering(status int, body string) func(*http.Request) (*http.Response, error) {
	return func(req *http.Request) (*http.Response, error) {
		resp := newResponse(req, status)
		resp.Header.Set("Content-Type", "text/event-stream")
		resp.Body = io.NopCloser(strings.NewReader(body))
		return resp, nil
	}
}

// TestNotificationsAreReopened: the stream for notifications comes back however often it ends or fails, until the session
// is over.
func TestNotificationsAreReopened(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		event := "data: {\"jsonrpc\":\"2.0\",\"method\":\"n\"}\n\n"
		s := &scripted{answers: []func(*http.Request) (*http.Response, error){answering(200, "id: a\n"+event)}}
		for range 20 {
			s.answers = append(s.answers, answering(200, ""), answering(503, ""),
				func(*http.Request) (*http.Response, error) { return nil, errors.New("broken") })
		}
		s.answers = append(s.answers, answering(200, "id: b\n"+event+event), answering(405, ""), answering(404, ""))
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://a.example/", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set(sessionHeader, "s")
		resp, err := s.remote(t.Context()).RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(resp.Body)
		if want := "id: a\n" + event + "id: b\n" + event + event; string(data) != want || err != nil || len(s.answers) > 0 {
			t.Errorf("got %q, %v; %d answers are left", data, err, len(s.answers))
		}
		if want := slices.Concat([]string{""}, slices.Repeat([]string{"a"}, 61), []string{"b", "b"}); !slices.Equal(s.ids, want) {
			t.Errorf("the ids are %q", s.ids)
		}
	})
}

// TestResumesAreBounded: a call whose stream cannot be resumed gets an error, before the SDK ends the session.
func TestResumesAreBounded(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func(*http.Request) (*http.Response, error){
		"status": answering(405, ""), "nothing": answering(200, ": wait\n"),
		"broken": func(*http.Request) (*http.Response, error) { return nil, errors.New("broken") },
	} {
		x := &exchange{method: "tools/call"}
		x.id.Store(7)
		s := &scripted{answers: slices.Repeat([]func(*http.Request) (*http.Response, error){answer}, maxResumes)}
		var got string
		for range maxResumes + 1 {
			req, err := http.NewRequestWithContext(context.WithValue(t.Context(), exchangeKey{}, x), http.MethodGet,
				"http://a.example/", nil)
			if err != nil {
				t.Fatal(err)
			}
			if resp, err := s.remote(t.Context()).RoundTrip(req); err == nil {
				data, _ := io.ReadAll(resp.Body)
				got += string(data)
			}
		}
		if !strings.Contains(got, fmt.Sprintf(`"id":%d`, 7)) || !strings.HasPrefix(got, "data: {") {
			t.Errorf("%s: got %q", name, got)
		}
	}
}
