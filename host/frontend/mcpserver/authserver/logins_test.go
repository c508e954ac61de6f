package authserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hako-run/hako/dev/kit/testwait"
	"github.com/hako-run/hako/host/frontend/connection"
)

func (w *world) logins() *Logins {
	w.t.Helper()
	l, err := OpenLogins(w.t.Context(), w.store)
	if err != nil {
		w.t.Fatal(err)
	}
	return l
}

// listed returns the IDs of the logins that an operator sees.
func (w *world) listed() (ids []string) {
	w.t.Helper()
	list, err := w.logins().List(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	for _, a := range list {
		ids = append(ids, a.ID)
	}
	return ids
}

// stream returns the context of an event stream that is opened with an access token.
func (w *world) stream(s *Server, access string) context.Context {
	w.t.Helper()
	by, err := s.Verify(w.t.Context(), access)
	if err != nil || by == nil {
		w.t.Fatalf("verified %v, %v", by, err)
	}
	return by.Revoked
}

// refusedBy waits until both replicas refuse an access token, and checks that its refresh token is of no use.
func (w *world) refusedBy(other *Server, c *client, access, refresh string) {
	w.t.Helper()
	for name, s := range map[string]*Server{"one": w.Server, "other": other} {
		if !testwait.Until(w.t, func() bool { return !isValid(w.t, s, access) }) {
			w.t.Errorf("replica %s still accepts the access token", name)
		}
		if response := c.refresh(s, refresh, nil); response.StatusCode != http.StatusBadRequest {
			w.t.Errorf("replica %s refreshes: %s", name, response.Status)
		}
	}
}

// TestOperatorEndsLogin: an operator sees a login without its secrets and ends it, and no other, at all replicas.
func TestOperatorEndsLogin(t *testing.T) {
	w := newWorld(t)
	other, operator := w.replica(), w.logins()
	c := w.register(appURL)
	access, refresh := w.login(c)
	list, err := operator.List(t.Context())
	if err != nil || len(list) != 1 {
		t.Fatalf("listed %v, %v", list, err)
	}
	a := list[0]
	if a.User != "aki@example.com" || a.Tenant != "" || a.Client != "Test client" || !slices.Equal(a.Scopes, []string{"tools"}) ||
		a.Expires.Sub(a.Created) < defaultLifetime-time.Hour {
		t.Errorf("listed %+v", a)
	}
	kept, _ := w.login(c)
	streams := []context.Context{w.stream(w.Server, access), w.stream(other, access)}
	open := w.stream(other, kept)
	for _, s := range []*Server{w.Server, other} {
		if !isValid(t, s, access) || !isValid(t, s, kept) {
			t.Fatal("the token is not valid everywhere")
		}
	}
	if ended, err := operator.End(t.Context(), a.ID); err != nil || ended.User != a.User {
		t.Fatalf("ended %+v, %v", ended, err)
	}
	for n, stream := range streams {
		if !testwait.Until(t, func() bool { return stream.Err() != nil }) {
			t.Errorf("the stream at replica %d stays open", n)
		}
	}
	w.refusedBy(other, c, access, refresh)
	if open.Err() != nil || !isValid(t, w.Server, kept) || len(w.listed()) != 1 {
		t.Error("another login has ended too")
	}
	for _, id := range []string{a.ID, "", "%", "\x00", access} {
		if _, err := operator.End(t.Context(), id); !errors.Is(err, connection.ErrNoLogin) {
			t.Errorf("end %q: %v", id, err)
		}
	}
}

// TestManyStreams: tokens without number do not grow what a server remembers, and a stream that ends for it can be opened
// again.
func TestManyStreams(t *testing.T) {
	w := newWorld(t)
	access, _ := w.login(w.register(appURL))
	stream := w.stream(w.Server, access)
	for n := range maxVerified {
		w.grants.revocations.of(fmt.Sprint(n))
	}
	if stream.Err() == nil || isValid(t, w.Server, newToken(kindAccess)) {
		t.Error("the stream stays open, or a guess is valid")
	}
	if again := w.stream(w.Server, access); again.Err() != nil || len(w.grants.revocations.pending) != 2 {
		t.Errorf("the next stream: %v; %d tokens are remembered", again.Err(), len(w.grants.revocations.pending))
	}
}

// TestOperatorEndsLoginsOfPerson: of one tenant or of all, with a code that a client has not exchanged yet.
func TestOperatorEndsLoginsOfPerson(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.Provider.TenantClaim = "org" })
	c := w.register(appURL)
	as := func(user, tenant string) (access, refresh string) {
		w.provider.claims = map[string]any{"email": user, "org": tenant}
		return w.login(c)
	}
	tokyo, _ := as("aki@example.com", "tokyo")
	osaka, osakaRefresh := as("aki@example.com", "osaka")
	ben, _ := as("ben@example.com", "tokyo")
	w.provider.claims = map[string]any{"email": "aki@example.com", "org": "tokyo"}
	code := w.authorize(newBrowser(), c).Get("code")
	if n := len(w.listed()); n != 3 {
		t.Errorf("%d logins are listed, want 3: a code is none", n)
	}
	ended, err := w.logins().EndOf(t.Context(), "aki@example.com", "tokyo")
	if err != nil || len(ended) != 1 || ended[0].Tenant != "tokyo" {
		t.Errorf("ended %v, %v", ended, err)
	}
	if response := c.exchange(w.Server, code, nil); response.StatusCode != http.StatusBadRequest {
		t.Errorf("the code is still exchanged: %s", response.Status)
	}
	fresh := w.replica()
	if isValid(t, fresh, tokyo) || !isValid(t, fresh, osaka) || !isValid(t, fresh, ben) {
		t.Error("not exactly the logins of the tenant have ended")
	}
	ended, err = w.logins().EndOf(t.Context(), "aki@example.com", "")
	if err != nil || len(ended) != 1 || ended[0].Tenant != "osaka" {
		t.Errorf("ended %v, %v", ended, err)
	}
	w.refusedBy(fresh, c, osaka, osakaRefresh)
	if ended, err = w.logins().EndOf(t.Context(), "aki@example.com", ""); err != nil || len(ended) != 0 || len(w.listed()) != 1 {
		t.Errorf("ended once more: %v, %v", ended, err)
	}
}

// TestHostileLoginRows: damaged and expired rows are not listed and hide no other, and names show what they contain.
func TestHostileLoginRows(t *testing.T) {
	w := newWorld(t)
	c := w.register(appURL)
	access, _ := w.login(c)
	damaged := w.listed()[0]
	w.login(c)
	for _, text := range []string{"", "x", "[]", `{"groups": 1}`, `{"scopes": "all"}`, strings.Repeat("x", maxDetail+1)} {
		w.exec("UPDATE oauth_grant SET detail = $1 WHERE id = $2", text, damaged)
		if ids := w.listed(); len(ids) != 1 || ids[0] == damaged {
			t.Errorf("with the detail %.20q %v are listed", text, ids)
		}
	}
	w.exec(`UPDATE oauth_grant SET detail = '{"name": "a\u202eb"}' WHERE id = $1`, damaged)
	if a, err := w.logins().Find(t.Context(), damaged); err != nil || a.Client != "ab" {
		t.Errorf("a name that deceives: %+v, %v", a, err)
	}
	for _, change := range []string{"person = 'a\u202eki'", "person = ''", "tenant = 'a\ncme'", "expires = 1"} {
		w.exec("UPDATE oauth_grant SET "+change+" WHERE id = $1", damaged)
		if ids := w.listed(); len(ids) != 1 || ids[0] == damaged {
			t.Errorf("with %q %v are listed", change, ids)
		}
		w.exec("UPDATE oauth_grant SET person = 'aki@example.com', tenant = '' WHERE id = $1", damaged)
	}
	w.exec("UPDATE oauth_grant SET detail = 'x'")
	if ended, err := w.logins().EndOf(t.Context(), "aki@example.com", ""); err != nil || len(ended) != 0 ||
		w.count("oauth_grant") != 0 || w.count("oauth_token") != 0 || isValid(t, w.replica(), access) {
		t.Errorf("damaged logins remain: %v, %v", ended, err)
	}
}
