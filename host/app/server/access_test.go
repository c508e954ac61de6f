package server

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hako-run/hako/dev/kit/storetest"
	"github.com/hako-run/hako/host/app/config"
	"github.com/hako-run/hako/host/frontend/bearer"
	"github.com/hako-run/hako/host/frontend/connection"
	"github.com/hako-run/hako/host/frontend/console"
	"github.com/hako-run/hako/host/frontend/mcpserver/auth"
	"github.com/hako-run/hako/host/govern/audit"
	"github.com/hako-run/hako/host/store"
)

// accessWorld is the access of people over a store, with the operations on it.
type accessWorld struct {
	*Access
	t        *testing.T
	recorded []string
}

func newAccessWorld(t *testing.T) *accessWorld {
	t.Helper()
	s := storetest.Open(t, storetest.Where(t))
	c := &config.Config{File: "hako.yaml"}
	c.Console.Tokens = []bearer.Token{{Name: "break-glass", User: "mori", Role: "admin", Hash: "sha256:" + strings.Repeat("0", 64)}}
	access, err := OpenAccess(t.Context(), c, s)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := console.EndSessions(t.Context(), s, ""); err != nil { // makes the tables
		t.Fatal(err)
	}
	return &accessWorld{Access: access, t: t}
}

// record performs operations and remembers them.
func (w *accessWorld) record(o *audit.Operation, do func() error) error {
	err := do()
	var detail []string
	for _, key := range slices.Sorted(maps.Keys(o.Detail)) {
		detail = append(detail, key+"="+o.Detail[key])
	}
	w.recorded = append(w.recorded, fmt.Sprint(o.Action, " ", o.Target.Name, " ", strings.Join(detail, ","), " ", err == nil))
	return err
}

func (w *accessWorld) exec(query string, args ...any) {
	w.t.Helper()
	err := w.store.Update(w.t.Context(), func(tx *sql.Tx) error {
		_, err := tx.ExecContext(w.t.Context(), query, args...)
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// logIn adds a login and a session in the console.
func (w *accessWorld) logIn(id, user, tenant string) {
	w.t.Helper()
	now := w.store.Time()
	later := now.Add(time.Hour).UnixMilli()
	w.exec(`INSERT INTO oauth_grant (id, client, person, tenant, detail, created, expires)
		VALUES ($1, 'c', $2, $3, '{"name": "Claude"}', $4, $5)`, id, user, tenant, now.UnixMilli(), later)
	w.exec(`INSERT INTO oauth_token (id, grant_id, kind, spent, expires) VALUES ($1, $2, 'hako_rt_', 0, $3)`, "hash of "+id, id, later)
	w.exec(`INSERT INTO console_session (id, person, via, source, proof, membership, address, created, seen, expires)
		VALUES ($1, $2, 'oidc', '', '', '[]', '', $3, $3, $4)`, id, user, now.UnixMilli(), later)
}

func (w *accessWorld) create(t bearer.Token) {
	w.t.Helper()
	if _, _, err := w.Tokens.Create(w.t.Context(), t, "aki", nil); err != nil {
		w.t.Fatal(err)
	}
}

// left describes the valid tokens, logins and console sessions.
func (w *accessWorld) left() string {
	w.t.Helper()
	list, err := w.List(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	var left []string
	for _, t := range list.Tokens {
		if t.State == "valid" {
			left = append(left, t.Name)
		}
	}
	left = append(left, ids(list.Logins, func(l *connection.Login) string { return l.ID[:3] }))
	sessions, err := store.List(w.t.Context(), w.store, store.Column[string], `SELECT person FROM console_session ORDER BY id`)
	if err != nil {
		w.t.Fatal(err)
	}
	slices.Sort(left)
	return strings.Join(append(left, sessions...), " ")
}

func loginID(start string) string { return start + strings.Repeat("A", 23) }

// TestRevokeUser: somebody who leaves keeps nothing but the tokens of the configuration, which are named.
func TestRevokeUser(t *testing.T) {
	t.Parallel()
	w := newAccessWorld(t)
	w.create(bearer.Token{Name: "mori-laptop", User: "mori", Tenant: "tokyo"})
	w.create(bearer.Token{Name: "mori", Role: "viewer"})
	w.create(bearer.Token{Name: "ken-laptop", User: "ken", Tenant: "tokyo"})
	w.logIn(loginID("ONE"), "mori", "tokyo")
	w.logIn(loginID("TWO"), "mori", "osaka")
	w.logIn(loginID("KEN"), "ken", "tokyo")

	r, err := w.RevokeUser(t.Context(), "mori", "tokyo", "aki", w.record)
	if err != nil || len(r.Tokens) != 1 || len(r.Logins) != 1 || r.Sessions != 0 || len(r.Remaining) != 0 {
		t.Errorf("in one tenant: %+v, %v", r, err)
	}
	if got, want := w.left(), "KEN TWO break-glass ken-laptop mori ken mori mori"; got != want {
		t.Errorf("left: %s, want %s", got, want)
	}
	r, err = w.RevokeUser(t.Context(), "mori", "", "aki", w.record)
	if err != nil || len(r.Tokens) != 1 || r.Tokens[0].State != "revoked" || len(r.Logins) != 1 || r.Sessions != 2 ||
		len(r.Remaining) != 1 || r.Remaining[0].Setting != "console.tokens" {
		t.Errorf("in all: %+v, %v", r, err)
	}
	if got, want := w.left(), "KEN break-glass ken-laptop ken"; got != want {
		t.Errorf("left: %s, want %s", got, want)
	}
	for user, want := range map[string]string{"mori": `("break-glass"): take them out of hako.yaml`, "nobody": "has no token"} {
		if _, err := w.RevokeUser(t.Context(), user, "", "aki", w.record); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", user, err)
		}
	}
	want := "user.revoke mori logins=" + loginID("ONE") + ",sessions=0,tenant=tokyo,tokens=hako_"
	if len(w.recorded) != 4 || !strings.HasPrefix(w.recorded[0], want) || !strings.HasSuffix(w.recorded[2], "false") {
		t.Errorf("recorded %q", w.recorded)
	}
}

// TestRevokeOne: a token goes by its name and a login by its ID, each recorded as what it is.
func TestRevokeOne(t *testing.T) {
	t.Parallel()
	w := newAccessWorld(t)
	w.create(bearer.Token{Name: "ci"})
	w.logIn(loginID("ONE"), "mori", "tokyo")
	if r, err := w.Revoke(t.Context(), loginID("ONE"), "aki", w.record); err != nil || len(r.Logins) != 1 || len(r.Tokens) != 0 {
		t.Errorf("a login: %+v, %v", r, err)
	}
	if r, err := w.Revoke(t.Context(), "ci", "aki", w.record); err != nil || len(r.Tokens) != 1 || len(r.Logins) != 0 {
		t.Errorf("a token: %+v, %v", r, err)
	}
	for _, gone := range []string{"ci", loginID("ONE"), ""} {
		if _, err := w.Revoke(t.Context(), gone, "aki", w.record); !errors.Is(err, bearer.ErrNone) {
			t.Errorf("%q: %v", gone, err)
		}
	}
	want := []string{"login.end " + loginID("ONE") + " client=Claude,tenant=tokyo,user=mori true", "token.revoke ci  true"}
	if len(w.recorded) != 5 || !slices.Equal(w.recorded[:2], want) {
		t.Errorf("recorded %q", w.recorded)
	}
	unrecorded := func(*audit.Operation, func() error) error { return context.Canceled }
	w.logIn(loginID("TWO"), "mori", "")
	if _, err := w.Revoke(t.Context(), loginID("TWO"), "aki", unrecorded); err == nil || !strings.HasPrefix(w.left(), "TWO") {
		t.Errorf("without a record: %v, left %s", err, w.left())
	}
}

// TestBlockUser: a user is blocked at the configured issuers, or at one, which is recorded.
func TestBlockUser(t *testing.T) {
	t.Parallel()
	w := newAccessWorld(t)
	if err := w.Block(t.Context(), "aki", "", "mori", w.record); err == nil || !strings.Contains(err.Error(), "token revoke --user aki") {
		t.Errorf("without issuers: %v", err)
	}
	w.config.HTTP.OAuth.Issuers = []auth.Issuer{{URL: "https://b"}, {URL: "https://a"}}
	w.config.HTTP.OAuth.Resource = "https://hako/mcp"
	w.config.HTTP.Login.Provider.Issuer = "https://c"
	w.config.HTTP.Introspection.URL = "https://d/introspect"
	w.config.Console.OIDC.Issuer = "https://e"
	for _, test := range []struct{ user, issuer, err string }{
		{"", "", "without a name"}, {"aki", "https://a/", "configured are: https://a, https://b, https://c, https://d/introspect, https://e"}, {"aki", "", ""}, {"bo", "https://b", ""},
	} {
		err := w.Block(t.Context(), test.user, test.issuer, "mori", w.record)
		if test.err == "" && err != nil || test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)) {
			t.Errorf("%+v: %v", test, err)
		}
	}
	if list, err := w.List(t.Context()); err != nil || len(list.Blocks) != 6 {
		t.Errorf("%v: %+v", err, list)
	}
	if err := w.Unblock(t.Context(), "aki", "https://a", w.record); err != nil {
		t.Error(err)
	}
	if err := w.Unblock(t.Context(), "aki", "https://a", w.record); err == nil || !strings.Contains(err.Error(), "is not blocked") {
		t.Errorf("twice: %v", err)
	}
	want := []string{"user.block aki issuers=https://a https://b https://c https://d/introspect https://e true", "user.block bo issuers=https://b true",
		"user.unblock aki issuers=https://a true"}
	if !slices.Equal(w.recorded, want) {
		t.Errorf("recorded %q", w.recorded)
	}
}
