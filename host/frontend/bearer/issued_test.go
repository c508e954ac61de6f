package bearer

import (
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hako-run/hako/dev/kit/postgrestest"
	"github.com/hako-run/hako/host/store/drivers"
)

// replicas are tokens of two processes over one store.
func replicas(t *testing.T, at string) (one, two *Issued) {
	t.Helper()
	var list []*Issued
	for range 2 {
		s, err := drivers.Open(t.Context(), at, &drivers.Options{Dir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		issued, err := Open(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, issued)
	}
	return list[0], list[1]
}

func one(t *testing.T) *Issued {
	t.Helper()
	issued, _ := replicas(t, t.TempDir())
	return issued
}

func (i *Issued) create(t *testing.T, token Token) (string, *Record) {
	t.Helper()
	text, r, err := i.Create(t.Context(), token, "aki", nil)
	if err != nil {
		t.Fatal(err)
	}
	return text, r
}

// TestReplicas: a token that one process creates is accepted by another one, until it is revoked at either.
func TestReplicas(t *testing.T) {
	t.Parallel()
	for name, place := range map[string]func() string{
		"a directory": t.TempDir, "PostgreSQL": func() string { return postgrestest.Start(t) },
	} {
		t.Run(name, func(t *testing.T) {
			a, b := replicas(t, place())
			go b.Run(t.Context(), slog.New(slog.DiscardHandler))
			text, r := a.create(t, Token{Name: "ci", User: "robot", Tenant: "acme", Scopes: []string{"tools", "x"}})
			found, revoked, err := b.Find(t.Context(), text)
			for deadline := time.Now().Add(Delay); found == nil && err == nil && time.Now().Before(deadline); {
				found, revoked, err = b.Find(t.Context(), text)
			}
			if err != nil || found == nil || found.Owner() != "robot" || found.Tenant != "acme" || len(found.Scopes) != 2 {
				t.Fatalf("at the other replica: %+v %v", found, err)
			}
			if b.ByHash(r.Hash, time.Now()) == nil || b.ForConsole() {
				t.Error("it is not found by its hash, or is one for the console")
			}
			if _, err := a.Revoke(t.Context(), r.ID, "ben"); err != nil {
				t.Fatal(err)
			}
			if found, _, err := a.Find(t.Context(), text); found != nil || err != nil {
				t.Errorf("where it was revoked: %+v %v", found, err)
			}
			<-revoked.Done()
			if found, _, err := b.Find(t.Context(), text); found != nil || err != nil {
				t.Errorf("at the other replica: %+v %v", found, err)
			}
			list, err := b.List(t.Context())
			if err != nil || len(list) != 1 || list[0].Creator != "aki" || list[0].Revoker != "ben" ||
				list[0].Revoked.IsZero() || list[0].Valid(time.Now()) || !strings.HasPrefix(text, list[0].ID) {
				t.Errorf("listed: %+v %v", list, err)
			}
		})
	}
}

// TestRevokeOfUser: all tokens of a user end, of one tenant or of all, and nobody else's.
func TestRevokeOfUser(t *testing.T) {
	t.Parallel()
	i := one(t)
	i.create(t, Token{Name: "laptop", User: "mori", Tenant: "tokyo"})
	i.create(t, Token{Name: "phone", User: "mori", Tenant: "osaka"})
	i.create(t, Token{Name: "mori", Role: "admin"})
	kept, _ := i.create(t, Token{Name: "mori's", User: "ken", Tenant: "tokyo"})
	i.create(t, Token{Name: "ci"})
	for _, step := range []struct{ user, tenant, want string }{
		{"mori", "tokyo", "laptop"}, {"mori", "", "mori phone"}, {"mori", "", ""}, {"", "", ""}, {"%", "", ""},
	} {
		records, err := i.RevokeOf(t.Context(), step.user, step.tenant, "aki")
		var names []string
		for _, r := range records {
			names = append(names, r.Name)
			if r.Revoker != "aki" || r.Valid(time.Now()) {
				t.Errorf("revoked %+v", r)
			}
		}
		slices.Sort(names)
		if got := strings.Join(names, " "); err != nil || got != step.want {
			t.Errorf("of %q in %q: %q, %v, want %q", step.user, step.tenant, got, err, step.want)
		}
	}
	if records, err := i.RevokeOf(t.Context(), "ci", "", "aki"); err != nil || len(records) != 1 {
		t.Errorf("a token without a user: %v, %v", records, err)
	}
	if found, _, err := i.Find(t.Context(), kept); found == nil || err != nil {
		t.Errorf("the token of somebody else: %v, %v", found, err)
	}
}

// TestNoSecrets: nothing in the store is a token, or most of one.
func TestNoSecrets(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	issued, _ := replicas(t, dir)
	text, _ := issued.create(t, Token{Name: "ci"})
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if strings.Contains(string(data), text[:idLength+4]) {
			t.Errorf("%s has the token", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestCreateIsChecked(t *testing.T) {
	t.Parallel()
	issued := one(t)
	_, old := issued.create(t, Token{Name: "old"})
	issued.create(t, Token{Name: "taken"})
	if _, err := issued.Revoke(t.Context(), "old", "aki"); err != nil {
		t.Fatal(err)
	}
	if _, r := issued.create(t, Token{Name: "old"}); r.ID == old.ID {
		t.Error("the ID of a revoked token is used again")
	}
	past := issued.store.Time().Add(-time.Second)
	for name, test := range map[string]struct {
		token Token
		taken bool
		want  string
	}{
		"no name":                  {Token{}, false, "has no name"},
		"control characters":       {Token{Name: "ci\x1b[31m"}, false, "not visible"},
		"a line break":             {Token{Name: "ci\nadmin"}, false, "not visible"},
		"another direction":        {Token{Name: "ci\u202e"}, false, "not visible"},
		"no width":                 {Token{Name: "ci", User: "a\u200bki"}, false, "not visible"},
		"a blank":                  {Token{Name: "ci", Tenant: "acme "}, false, "ends with a space"},
		"a long name":              {Token{Name: strings.Repeat("x", 257)}, false, "more than 256 bytes"},
		"a scope of two words":     {Token{Name: "ci", Scopes: []string{"a b"}}, false, "is not an OAuth scope"},
		"over already":             {Token{Name: "ci", Expires: past}, false, "has passed"},
		"a console with a tenant":  {Token{Name: "ci", Role: "viewer", Tenant: "acme"}, false, "neither tenant"},
		"a name that is taken":     {Token{Name: "taken"}, true, "a token with this name exists"},
		"one of the configuration": {Token{Name: "configured"}, true, "a token with this name exists"},
	} {
		_, _, err := issued.Create(t.Context(), test.token, "aki", []Token{{Name: "configured"}})
		var wrong *InvalidError
		if errors.Is(err, ErrTaken) != test.taken || errors.As(err, &wrong) == test.taken ||
			err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, which := range []string{"", "nobody's", old.ID, "%", "ol_"} {
		if _, err := issued.Revoke(t.Context(), which, "aki"); !errors.Is(err, ErrNone) {
			t.Errorf("revoke %q: %v", which, err)
		}
	}
}

func (i *Issued) exec(t *testing.T, statement string, args ...any) {
	t.Helper()
	err := i.store.Update(t.Context(), func(tx *sql.Tx) error {
		_, err := tx.ExecContext(t.Context(), statement, args...)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestHostileStore: damaged rows are no tokens, and keep nobody else out.
func TestHostileStore(t *testing.T) {
	t.Parallel()
	issued := one(t)
	good, _ := issued.create(t, Token{Name: "good"})
	for name, change := range map[string]string{
		"a hidden name": "name = 'a' || char(27)", "a long name": "name = '" + strings.Repeat("x", maxRow) + "'",
		"another hash": "hash = 'sha256:00'", "no hash": "hash = ''", "no scopes": "scopes = '{'", "no number": "expires = 'x'",
	} {
		text, r := issued.create(t, Token{Name: name})
		issued.exec(t, "UPDATE bearer_token SET "+change+" WHERE id = $1", r.ID)
		if err := issued.Refresh(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if found, _, err := issued.Find(t.Context(), text); found != nil || err != nil {
			t.Errorf("%s: %+v %v", name, found, err)
		}
	}
	if found, _, err := issued.Find(t.Context(), good); found == nil || err != nil {
		t.Errorf("the other: %v", err)
	}
}

// TestTooMany: the number of valid tokens is limited. What has ended long ago is forgotten.
func TestTooMany(t *testing.T) {
	t.Parallel()
	issued := one(t)
	err := issued.store.Update(t.Context(), func(tx *sql.Tx) error {
		for n := range maxTokens {
			_, err := tx.ExecContext(t.Context(), `INSERT INTO bearer_token VALUES ($1, $1, '', '', '', '[]', '', 0, 1, '', 0, 0, '')`,
				fmt.Sprint(n))
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := issued.Create(t.Context(), Token{Name: "ci"}, "aki", nil); err == nil ||
		!strings.Contains(err.Error(), "revoke those that nobody uses") {
		t.Errorf("one more: %v", err)
	}
	issued.exec(t, `UPDATE bearer_token SET revoked = 1`)
	issued.create(t, Token{Name: "ci"})
	if list, err := issued.List(t.Context()); err != nil || len(list) != 1 {
		t.Errorf("%d are listed: %v", len(list), err)
	}
}

// TestOutage: while the store cannot be read, tokens are accepted for a short time only.
func TestOutage(t *testing.T) {
	t.Parallel()
	issued := one(t)
	text, r := issued.create(t, Token{Name: "ci"})
	_ = issued.store.Close()
	for age, want := range map[time.Duration]error{0: nil, Delay + time.Second: nil, outage + time.Second: ErrUnavailable} {
		known := *issued.known.Load()
		known.at = time.Now().Add(-age)
		issued.known.Store(&known)
		found, _, err := issued.Find(t.Context(), text)
		if !errors.Is(err, want) || (found != nil) != (want == nil) {
			t.Errorf("after %v: %+v %v", age, found, err)
		}
		if (issued.ByHash(r.Hash, time.Now()) != nil) != (want == nil) {
			t.Errorf("after %v: by its hash", age)
		}
	}
}

// TestUse: the last use is stored, once in a while.
func TestUse(t *testing.T) {
	t.Parallel()
	issued := one(t)
	text, _ := issued.create(t, Token{Name: "ci", Role: "viewer"})
	used := func() time.Time {
		t.Helper()
		if err := issued.saveUse(t.Context()); err != nil {
			t.Fatal(err)
		}
		list, err := issued.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return list[0].Used
	}
	if at := used(); !at.IsZero() {
		t.Errorf("used at %v before its first use", at)
	}
	if _, _, err := issued.Find(t.Context(), text); err != nil || !issued.ForConsole() {
		t.Error(err)
	}
	first := used()
	if first.IsZero() {
		t.Error("the first use is not stored")
	}
	issued.known.Load().entries[0].used.Add(usedEvery.Milliseconds() - 1)
	if at := used(); !at.Equal(first) {
		t.Errorf("stored again at %v", at)
	}
	issued.known.Load().entries[0].used.Add(1)
	if at := used(); !at.After(first) {
		t.Error("later uses are not stored")
	}
}

// TestBlock: a user of one issuer is blocked at all replicas, and what was opened before ends.
func TestBlock(t *testing.T) {
	t.Parallel()
	here, there := replicas(t, t.TempDir())
	blocked := func(i *Issued, issuer, user string) bool {
		t.Helper()
		if err := i.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		is, _, err := i.Blocked(t.Context(), issuer, user)
		if err != nil {
			t.Fatal(err)
		}
		return is
	}
	_, changed, err := there.Blocked(t.Context(), "https://a", "aki")
	if err != nil || changed.Err() != nil {
		t.Fatal(err, changed.Err())
	}
	for range 2 {
		if err := here.Block(t.Context(), "https://a", "aki", "mori"); err != nil {
			t.Fatal(err)
		}
	}
	if !blocked(there, "https://a", "aki") || blocked(there, "https://b", "aki") || blocked(there, "https://a", "bo") ||
		changed.Err() == nil {
		t.Error("another replica does not follow")
	}
	here.exec(t, `UPDATE bearer_block SET blocked = 'never'`)
	if !blocked(here, "https://a", "aki") {
		t.Error("a damaged time undoes the block")
	}
	here.exec(t, `UPDATE bearer_block SET blocked = 1`)
	_, later, err := there.Blocked(t.Context(), "https://a", "bo")
	if err != nil {
		t.Fatal(err)
	}
	list, err := there.Blocks(t.Context())
	if err != nil || len(list) != 1 || list[0].User != "aki" || list[0].By != "mori" || list[0].Blocked.IsZero() {
		t.Errorf("%v: %+v", err, list)
	}
	for _, want := range []bool{true, false} {
		if was, err := there.Unblock(t.Context(), "https://a", "aki"); was != want || err != nil {
			t.Errorf("unblocked: %t, %v", was, err)
		}
	}
	if blocked(here, "https://a", "aki") || blocked(there, "https://a", "aki") || later.Err() != nil {
		t.Error("unblocking has no effect, or ends what others opened")
	}
}
