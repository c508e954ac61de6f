package mcpserver

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/hako-run/hako/host/frontend/mcpserver/sessionstore"
)

func (f *fleet) tamper(t *testing.T, statement string, args ...any) {
	t.Helper()
	err := f.replicas[0].store.Update(t.Context(), func(tx *sql.Tx) error {
		_, err := tx.ExecContext(t.Context(), statement, args...)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestHostileReplicas: somebody who changes what replicas say to each other can keep a client from an answer, and
// cannot make one.
func TestHostileReplicas(t *testing.T) {
	t.Parallel()
	// Each case changes rows as they are written, while a call goes on at another replica than the one where it waits.
	for name, change := range map[string]struct{ table, body string }{
		"answers that are cut off":        {"mcp_event", "NEW.data = left(NEW.data, 20)"},
		"answers that are changed":        {"mcp_event", "NEW.data = translate(NEW.data, 'ABCabc', 'BCAbca')"},
		"answers that are not encrypted":  {"mcp_event", `NEW.data = '{"Status":200}'`},
		"answers that are the request":    {"mcp_event", "NEW.data = (SELECT body FROM copied LIMIT 1)"},
		"answers with other numbers":      {"mcp_event", "NEW.number = NEW.number + 1"},
		"answers with numbers below zero": {"mcp_event", "NEW.number = -NEW.number"},
		"answers twice": {"mcp_event",
			"INSERT INTO mcp_event SELECT NEW.session, NEW.stream, NEW.number + 1, NEW.data WHERE NEW.number < 5"},
		"requests that are cut off": {"mcp_mail", "NEW.body = left(NEW.body, 20)"},
		"requests that are changed": {"mcp_mail", "NEW.body = translate(NEW.body, 'ABCabc', 'BCAbca')"},
		"requests under another ID": {"mcp_mail",
			"INSERT INTO mcp_stream SELECT NEW.session, 'forged', NEW.target, '[]', 0, 0; NEW.id = 'forged'"},
		"requests that pass for answers": {"mcp_mail", "NEW.kind = 'message'"},
		"requests that were never sent":  {"mcp_mail", "NEW.kind = 'left'"},
		"requests of an unknown kind":    {"mcp_mail", "NEW.kind = 'x'"},
		"requests for another call":      {"mcp_mail", "NEW.session = 'another'"},
		"requests of which each comes back": {"mcp_mail",
			"INSERT INTO mcp_mail SELECT NEW.id || 'x', NEW.target, NEW.kind, NEW.session, NEW.body, 0 WHERE length(NEW.id) < 40"},
		"streams of another replica": {"mcp_stream", "NEW.replica = 'nobody'"},
		"streams that have ended":    {"mcp_stream", "NEW.ended = 1"},
		"streams of nonsense":        {"mcp_stream", "NEW.requests = '{'"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, backend := newSlowAsker(t, nil)
			close(backend.letGo)
			a, b := f.replicas[0], f.replicas[1]
			first := callAgain(t, a.Handler(), "greet", "", "")
			f.tamper(t, `CREATE TABLE copied (body TEXT);
				CREATE FUNCTION copy_it() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO copied VALUES (NEW.body); RETURN NEW; END';
				CREATE TRIGGER a_copy BEFORE INSERT ON mcp_mail FOR EACH ROW EXECUTE FUNCTION copy_it();
				CREATE FUNCTION change_it() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN `+change.body+`; RETURN NEW; END $$;
				CREATE TRIGGER b_change BEFORE INSERT ON `+change.table+` FOR EACH ROW WHEN (pg_trigger_depth() < 1) EXECUTE FUNCTION change_it()`)
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			got := callAgainIn(ctx, b.Handler(), roundBody("greet", `{"n":1}`, first.state, aki))
			if strings.Contains(got.result, "Identity") || strings.Contains(got.result, "Status\":200") {
				t.Errorf("the client gets %s", got.result)
			}
			if asked := backend.begun.Load(); asked != 1 {
				t.Errorf("the call was made %d times", asked)
			}
			// Other calls go on, at one replica.
			next := callAgain(t, a.Handler(), "greet", "", "")
			if last := callAgain(t, a.Handler(), "greet", next.state, aki); !strings.Contains(last.result, "hello Aki") {
				t.Errorf("another call: %s", last.result)
			}
		})
	}
}

// TestHostileReplicaMail: mail that no replica has sent does nothing to calls and sessions that go on.
func TestHostileReplicaMail(t *testing.T) {
	t.Parallel()
	for name, mail := range map[string]func(key string) sessionstore.Mail{
		"an end of nobody's session": func(string) sessionstore.Mail { return sessionstore.Mail{Kind: sessionstore.Ended, Session: "x"} },
		"an end of a session":        func(key string) sessionstore.Mail { return sessionstore.Mail{Kind: sessionstore.Ended, Session: key} },
		"changes of a session":       func(key string) sessionstore.Mail { return sessionstore.Mail{Kind: sessionstore.Changed, Session: key} },
		"a message that is not sealed": func(key string) sessionstore.Mail {
			return sessionstore.Mail{Kind: sessionstore.Message, Session: key,
				Body: message(withSessions, 9, "tools/call", `{"name":"x","arguments":{}}`)}
		},
		"a message sealed for another": func(key string) sessionstore.Mail {
			return sessionstore.Mail{Kind: sessionstore.Message, Session: key,
				Body: sessionstore.Seal(key, sessionstore.MailPlace(sessionstore.Message, ""), []byte("{}"))}
		},
		"a request for a session": func(key string) sessionstore.Mail {
			return sessionstore.Mail{ID: "r", Kind: sessionstore.Request, Session: key, Body: "x"}
		},
		"a client that seems to have left": func(key string) sessionstore.Mail {
			return sessionstore.Mail{Kind: sessionstore.Left, Session: key, Body: key}
		},
		"updates that are no list": func(string) sessionstore.Mail { return sessionstore.Mail{Kind: sessionstore.Updated, Body: `{"a":1}`} },
		"updates of nothing": func(string) sessionstore.Mail {
			return sessionstore.Mail{Kind: sessionstore.Updated, Body: `[null,null]`}
		},
		"updates of another tenant's": func(string) sessionstore.Mail {
			return sessionstore.Mail{Kind: sessionstore.Updated, Body: `["other\u0000x://1"]`}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, offer(t, serveEverything, "x"), says, nil)
			a, b := f.replicas[0], f.replicas[1]
			id := a.initialize(t, "{}")
			call := message(withSessions, 1, "tools/call", `{"name":"x","arguments":{}}`)
			if response, body := b.send(t, id, call); response.StatusCode != http.StatusOK {
				t.Fatalf("%d %s", response.StatusCode, body)
			}
			for range 20 {
				for _, r := range f.replicas[:2] {
					_, err := f.replicas[2].replicas.shared.SendTo(t.Context(), r.store.Replica(),
						mail(sessionstore.Key(id)))
					if err != nil {
						t.Fatal(err)
					}
				}
			}
			eventually(t, func() bool { return f.count(t, "mcp_mail") == 0 })
			for _, r := range f.replicas {
				if response, body := r.send(t, id, call); response.StatusCode != http.StatusOK {
					t.Errorf("%d %s", response.StatusCode, body)
				}
			}
		})
	}
	// Each case is what somebody has made of the row of a session, which another replica reads then.
	for name, statement := range map[string]string{
		"an opening that is null":              "UPDATE mcp_session SET opening = 'null'",
		"an opening of nothing":                "UPDATE mcp_session SET opening = ''",
		"an opening that is empty":             "UPDATE mcp_session SET opening = '{}'",
		"an opening that is a list":            "UPDATE mcp_session SET opening = '[]'",
		"an opening without a client":          `UPDATE mcp_session SET opening = '{"protocolVersion":"2025-06-18","capabilities":null,"clientInfo":null}'`,
		"an opening with a version that is 7":  `UPDATE mcp_session SET opening = '{"protocolVersion":7}'`,
		"an opening that goes deep":            "UPDATE mcp_session SET opening = repeat('[', 100000)",
		"an opening of 16 MiB":                 `UPDATE mcp_session SET opening = '{"clientInfo":{"name":"' || repeat('x', 16777216) || '"}}'`,
		"a session of another owner":           "UPDATE mcp_session SET owner = 'somebody'",
		"a level of nonsense":                  "UPDATE mcp_session SET level = 'shout'",
		"subscriptions of what there is not":   "INSERT INTO mcp_subscription SELECT id, 'x://' || n FROM mcp_session, generate_series(1, 50) n",
		"a subscription with a line break":     "INSERT INTO mcp_subscription SELECT id, E'x://\\r\\ndata: forged' FROM mcp_session",
		"no session":                           "DELETE FROM mcp_session",
		"a session that is used in the future": "UPDATE mcp_session SET used = 9223372036854775807, held = 9223372036854775807",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, offer(t, serveEverything, "x"), says, nil)
			a, b := f.replicas[0], f.replicas[1]
			id := a.initialize(t, "{}")
			f.tamper(t, statement)
			for i, method := range []string{"tools/call", "tools/list", "logging/setLevel"} {
				params := []string{`{"name":"x","arguments":{}}`, `{}`, `{"level":"info"}`}[i]
				response, body := b.send(t, id, message(withSessions, 1, method, params))
				if response.StatusCode == http.StatusInternalServerError ||
					strings.Contains(fmt.Sprint(body), "panic") {
					t.Errorf("%s: %d %s", method, response.StatusCode, body)
				}
			}
			fresh := b.initialize(t, "{}")
			if response, body := b.send(t, fresh, message(withSessions, 1, "tools/list", `{}`)); response.StatusCode != http.StatusOK {
				t.Errorf("another session: %d %s", response.StatusCode, body)
			}
		})
	}
}

// TestHostileMailAlone sends what is meant for other replicas to a server that has none.
func TestHostileMailAlone(t *testing.T) {
	t.Parallel()
	h := newServer(t, offer(t, serveEverything, "x"), nil, nil).Handler()
	id := openSession(t, h)
	for name, body := range map[string]string{
		"a response":           `{"jsonrpc":"2.0","id":"other-7","result":{"action":"accept"}}`,
		"an error":             `{"jsonrpc":"2.0","id":"other-7","error":{"code":-32000,"message":"no"}}`,
		"a response to nobody": `{"jsonrpc":"2.0","id":"-7","result":{}}`,
		"a cancellation":       `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"other-7"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			if w := do(h, post(withSessions, body, "Mcp-Session-Id", id)); w.Code != http.StatusAccepted {
				t.Errorf("%d %s", w.Code, w.Body)
			}
			w := do(h, post(withSessions, message(withSessions, 1, "tools/list", "{}"), "Mcp-Session-Id", id))
			if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"name":"x"`) {
				t.Errorf("then tools/list: %d %s", w.Code, w.Body)
			}
		})
	}
	r := post(withSessions, "", "Mcp-Session-Id", id, "Last-Event-ID", "unknown_1")
	r.Method = http.MethodGet
	if w := do(h, r); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "no longer stored") {
		t.Errorf("a stream of another: %d %s", w.Code, w.Body)
	}
}
