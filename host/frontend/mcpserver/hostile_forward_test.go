package mcpserver

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/hako-run/hako/dev/kit/postgrestest"
	"github.com/hako-run/hako/dev/kit/testwait"
	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/frontend/mcpserver/sessionstore"
	"github.com/hako-run/hako/host/store"
	"github.com/hako-run/hako/host/store/drivers"
)

// liar is a replica that holds calls and answers forwarded requests as it likes. It knows the secret of each call.
type liar struct {
	*sessionstore.SQL
	state string
	parts func() []string
}

// newLiar adds a liar to a fleet of one replica.
func newLiar(t *testing.T) (*fleet, *liar) {
	t.Helper()
	f, database := &fleet{t: t}, postgrestest.Start(t)
	f.add(database, func(int, *store.Store, *Options) (*catalog.Catalog, Pipeline) {
		return offer(t, serveEverything, "x"), says(0)
	}, 0)
	s, err := drivers.Open(t.Context(), database, &drivers.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	if err := s.Join(t.Context(), "test"); err != nil {
		t.Fatal(err)
	}
	l := new(liar)
	if l.SQL, err = sessionstore.New(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	l.state = pendingPrefix + l.Replica() + "-secret"
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.Receive(ctx, func(mail sessionstore.Mail) { l.answer(t, mail) }, func(error) {})
	}()
	t.Cleanup(func() {
		stop()
		<-done
	})
	return f, l
}

func (l *liar) answer(t *testing.T, mail sessionstore.Mail) {
	if mail.Kind != sessionstore.Request {
		return
	}
	parts := l.parts()
	for i, part := range parts {
		event := sessionstore.Event{Number: i + 1,
			Data: sessionstore.Seal(l.state, sessionstore.EventPlace(mail.ID, i+1), []byte(part))}
		if err := l.Append(t.Context(), mail.Session, mail.ID, event, i == len(parts)-1); err != nil && t.Context().Err() == nil {
			t.Error(err)
		}
	}
}

// TestHostileAnswersOfReplicas: the replica that holds a call chooses the text of its answer, and nothing else of the
// response: no status that stops the other replica, no redirect, cookie, login or header of its own.
func TestHostileAnswersOfReplicas(t *testing.T) {
	t.Parallel()
	f, l := newLiar(t)
	const body = `{"jsonrpc":"2.0","id":1,"result":{}}`
	head := func(text string) []string { return []string{text + "\n" + body} }
	for name, test := range map[string]struct {
		parts  []string
		status int    // zero for 200
		want   string // empty: the answer is replaced by an error
	}{
		"an answer":              {head(`{"Status":200,"Header":{"Content-Type":["application/json"]}}`), 0, body},
		"a refusal":              {head(`{"Status":503,"Header":{"Retry-After":["1"]}}`), 503, body},
		"no status":              {head(`{}`), 0, ""},
		"a status below zero":    {head(`{"Status":-1}`), 0, ""},
		"a status of two digits": {head(`{"Status":99}`), 0, ""},
		"a status that goes on":  {head(`{"Status":100}`), 0, ""},
		"another protocol":       {head(`{"Status":101,"Header":{"Upgrade":["x"],"Connection":["Upgrade"]}}`), 0, ""},
		"a status of 600":        {head(`{"Status":600}`), 0, ""},
		"a status of 1000":       {head(`{"Status":1000}`), 0, ""},
		"a large status":         {head(`{"Status":1e3}`), 0, ""},
		"a redirect":             {head(`{"Status":302,"Header":{"Location":["https://evil.example/"]}}`), 0, ""},
		"a permanent redirect":   {head(`{"Status":308,"Header":{"Location":["https://evil.example/"]}}`), 0, ""},
		"a login elsewhere": {head(`{"Status":401,"Header":{"Www-Authenticate":["Bearer resource_metadata=\"https://evil.example/\""]}}`),
			401, body},
		"a cookie":              {head(`{"Status":200,"Header":{"Set-Cookie":["a=b"]}}`), 0, body},
		"any origin":            {head(`{"Status":200,"Header":{"Access-Control-Allow-Origin":["*"],"Access-Control-Allow-Credentials":["true"]}}`), 0, body},
		"another session":       {head(`{"Status":200,"Header":{"Mcp-Session-Id":["x"]}}`), 0, body},
		"a shorter length":      {head(`{"Status":200,"Header":{"Content-Length":["3"]}}`), 0, body},
		"a longer length":       {head(`{"Status":200,"Header":{"Content-Length":["3000"]}}`), 0, body},
		"another encoding":      {head(`{"Status":200,"Header":{"Transfer-Encoding":["gzip"],"Content-Encoding":["gzip"]}}`), 0, body},
		"a trailer":             {head(`{"Status":200,"Header":{"Trailer":["Set-Cookie"],"Trailer:Set-Cookie":["a=b"]}}`), 0, body},
		"a refresh":             {head(`{"Status":200,"Header":{"Refresh":["0;url=https://evil.example"],"Link":["<https://evil.example>"]}}`), 0, body},
		"a header with a break": {head(`{"Status":200,"Header":{"Content-Type":["text/plain\r\nSet-Cookie: a=b"]}}`), 0, body},
		"a type twice":          {head(`{"Status":200,"Header":{"Content-Type":["text/html","application/json"]}}`), 0, body},
		"a name with a break":   {head(`{"Status":200,"Header":{"X\r\nSet-Cookie: a=b":["x"]}}`), 0, body},
		"a head that is null":   {head(`null`), 0, ""},
		"a head that is a list": {head(`[]`), 0, ""},
		"no head":               {[]string{body}, 0, ""},
		"a head that is cut":    {[]string{`{"Status":200`, "\n" + body}, 0, ""},
		"nothing, and then it":  {[]string{"", body}, 0, ""},
		"a second head":         {[]string{`{"Status":200}` + "\n", `{"Status":302,"Header":{"Location":["https://evil.example/"]}}` + "\n" + body}, 0, body},
	} {
		t.Run(name, func(t *testing.T) {
			l.parts = func() []string { return test.parts }
			r, err := http.NewRequestWithContext(testwait.Context(t), http.MethodPost, f.replicas[0].url+Path,
				strings.NewReader(roundBody("x", `{}`, l.state, aki)))
			if err != nil {
				t.Fatal(err)
			}
			for name, values := range post(withoutSessions, roundBody("x", `{}`, l.state, aki)).Header {
				r.Header[name] = values
			}
			client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
			response, err := client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			text, err := io.ReadAll(response.Body)
			if err != nil {
				t.Errorf("the answer breaks off: %v", err)
			}
			if want := max(test.status, http.StatusOK); response.StatusCode != want {
				t.Errorf("status %d, want %d", response.StatusCode, want)
			}
			if test.want != "" && !strings.HasSuffix(string(text), test.want) || test.want == "" && !strings.Contains(string(text), `"error"`) {
				t.Errorf("got %s", text)
			}
			for _, name := range []string{"Location", "Set-Cookie", "Www-Authenticate", "Access-Control-Allow-Origin", "Mcp-Session-Id",
				"Content-Encoding", "Refresh", "Link", "Upgrade"} {
				if value := response.Header.Get(name); value != "" {
					t.Errorf("%s: %s", name, value)
				}
			}
			if len(response.Trailer) > 0 {
				t.Errorf("trailer %v", response.Trailer)
			}
		})
	}
}
