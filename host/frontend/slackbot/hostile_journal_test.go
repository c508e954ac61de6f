package slackbot_test

import (
	"database/sql"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/hako-run/hako/dev/fakes/slack"
	"github.com/hako-run/hako/dev/kit/postgrestest"
	"github.com/hako-run/hako/host/frontend/slackbot"
	"github.com/hako-run/hako/host/store/drivers"
)

// TestHostileSlackJournal: rows that are none of this program's, or another row's, are left out, others are answered,
// and the token of the bot goes to Slack alone.
func TestHostileSlackJournal(t *testing.T) {
	t.Parallel()
	evil := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("somebody else is asked for %s with %q", r.URL, r.Header.Get("Authorization"))
	}))
	t.Cleanup(evil.Close)
	// row is one of a turn that nobody answers any more, of the message that change makes.
	row := func(change func(m map[string]any, row map[string]string)) map[string]string {
		m := map[string]any{"workspace": "acme", "team": slack.Team, "channel": general, "thread": "1.000001",
			"ts": "1.000001", "user": ken, "text": "forged"}
		r := map[string]string{"id": "message:" + slack.Team + ":" + general + ":1.000001", "owner": "dead",
			"workspace":    "acme",
			"conversation": slack.Team + ":" + general + ":1.000001", "state": "waiting", "answer": "",
			"stopped_by": "", "cards": ""}
		change(m, r)
		if r["message"] == "" {
			text, err := json.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			r["message"] = string(text)
		}
		return r
	}
	file := func(url string) map[string]string {
		return row(func(m map[string]any, _ map[string]string) {
			m["files"] = []any{map[string]any{"name": "x.txt", "type": "text/plain", "size": 10, "url": url}}
		})
	}
	for name, test := range map[string]struct {
		row map[string]string
		// answered reports whether the message is answered all the same.
		answered bool
	}{
		"a message that is no JSON": {row(func(_ map[string]any, r map[string]string) { r["message"] = "{" }),
			false},
		"a message that is null": {row(func(_ map[string]any,
			r map[string]string) {
			r["message"] = "null"
		}), false},
		"a message of a newer version": {row(func(m map[string]any,
			_ map[string]string) {
			m["user"] = map[string]any{"id": ken}
		}), false},
		"a message of 8 MiB that is nothing": {row(func(_ map[string]any,
			r map[string]string) {
			r["message"] = strings.Repeat("x", 8<<20)
		}), false},
		"another workspace's message": {row(func(m map[string]any,
			_ map[string]string) {
			m["workspace"] = "other"
		}), false},
		"another team's message": {row(func(m map[string]any,
			_ map[string]string) {
			m["team"] = "T0000000EVL"
		}), false},
		"another channel's message": {row(func(m map[string]any,
			_ map[string]string) {
			m["channel"] = office
		}), false},
		"another thread's message": {row(func(m map[string]any,
			_ map[string]string) {
			m["thread"] = "2.000002"
		}), false},
		"a row under another ID": {row(func(_ map[string]any,
			r map[string]string) {
			r["id"] = "message:x"
		}), false},
		"an ID that is SQL": {row(func(_ map[string]any,
			r map[string]string) {
			r["id"] = "'; DROP TABLE slack_turn; --"
		}), false},
		"cards that are no JSON": {row(func(_ map[string]any, r map[string]string) { r["cards"] = "{" }),
			false},
		"a file at another host": {file(evil.URL + "/x"), true},
		"a file at a host like Slack's": {file(strings.Replace(evil.URL, "http://", "http://slack.com@", 1) +
			"/x"), true},
		"a file of the wrong scheme": {file("file:///etc/passwd"), true},
		"a file without a host":      {file("//" + strings.TrimPrefix(evil.URL, "http://") + "/x"), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.dir = postgrestest.Start(t)
			s, err := drivers.Open(t.Context(), w.dir, &drivers.Options{Dir: t.TempDir()})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if err := slackbot.Forget(t.Context(), s); err != nil { // makes the tables
				t.Fatal(err)
			}
			err = s.Update(t.Context(), func(tx *sql.Tx) error {
				r := test.row
				_, err := tx.ExecContext(t.Context(), `INSERT INTO slack_turn (id, owner, workspace, conversation, state, message, answer, stopped_by, cards)
					VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`, r["id"], r["owner"], r["workspace"], r["conversation"], r["state"], r["message"], r["answer"], r["stopped_by"], r["cards"])
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			w.start(engine(echo), nil)
			w.connected()
			w.tell(mention("hello"))
			w.answered("You said: hello")
			if test.answered {
				w.wait("answer to the other", func() bool { return len(w.answers()) > 1 })
				return
			}
			w.wait("line in the log", func() bool { return strings.Contains(w.log.String(), "could not be taken over") })
			if n := len(w.answers()); n != 1 {
				t.Errorf("%d answers", n)
			}
		})
	}
}

// TestHostileSlackFiles: the bot's token goes with requests to Slack's own addresses.
func TestHostileSlackFiles(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{
		"https://files.slack.com/files-pri/T1-F1/x.txt": true,
		"https://slack.com/x":                           true,
		"https://files.slack-gov.com/x":                 true,
		"http://files.slack.com/x":                      false,
		"https://files.slack.com.evil.example/x":        false,
		"https://evilslack.com/x":                       false,
		"https://files.slack.com@evil.example/x":        false,
		"https://user@files.slack.com/x":                false,
		"https://evil.example/files.slack.com":          false,
		"https://evil.example?x=.slack.com":             false,
		"https://evil.example#.slack.com":               false,
		"https://evil.example\\.slack.com/x":            false,
		"https://files.slack.com:8443/x":                false,
		"https://169.254.169.254/latest":                false,
		"https://.slack.com/x":                          true, // and resolves nowhere
		"ftp://files.slack.com/x":                       false,
		"":                                              false,
		"https:///x":                                    false,
	} {
		t.Run(address, func(t *testing.T) {
			t.Parallel()
			if got := slackbot.AtSlack(address); got != want {
				t.Errorf("%t", got)
			}
		})
	}
}
