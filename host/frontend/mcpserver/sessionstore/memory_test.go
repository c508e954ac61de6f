package sessionstore

import (
	"errors"
	"slices"
	"testing"
	"time"
)

// TestMemory: sessions that have to make room are those of the same client, then of whichever client has most; those in
// use come last, and of the others the one that was used longest ago comes first.
func TestMemory(t *testing.T) {
	t.Parallel()
	ctx, m := t.Context(), NewMemory()
	used := map[string]time.Time{}
	serves := ""
	clock := time.Unix(1000, 0)
	limits := &Limits{Sessions: 5, PerClient: 3, Use: func(key string) (Use, time.Time) {
		if key == serves {
			return Serving, used[key]
		}
		return Idle, used[key]
	}}
	open := func(key, client string) []string {
		t.Helper()
		clock = clock.Add(time.Second)
		used[key] = clock
		ended, err := m.Add(ctx, &Session{Key: key, Client: client, Owner: "o", Opening: []byte("{}")}, limits)
		check(t, err)
		return ended
	}
	for _, key := range []string{"a1", "a2", "a3"} {
		if ended := open(key, "a"); ended != nil {
			t.Errorf("%s ended %v", key, ended)
		}
	}
	if ended := open("a4", "a"); !slices.Equal(ended, []string{"a1"}) {
		t.Errorf("a fourth session of one client ended %v", ended)
	}
	serves = "a2"
	if ended := open("a5", "a"); !slices.Equal(ended, []string{"a3"}) {
		t.Errorf("beside one in use it ended %v", ended)
	}
	open("b1", "b")
	open("b2", "b")
	if ended := open("c1", "c"); !slices.Equal(ended, []string{"a4"}) {
		t.Errorf("a sixth session of all ended %v", ended)
	}

	check(t, m.Subscribe(ctx, "b1", "x://1"))
	check(t, m.Subscribe(ctx, "b1", "x://1"))
	check(t, m.Subscribe(ctx, "b1", "x://2"))
	check(t, m.Unsubscribe(ctx, "b1", "x://1"))
	check(t, m.SetLevel(ctx, "b1", "info"))
	found, err := m.Find(ctx, "b1")
	if err != nil || found.Level != "info" || !slices.Equal(found.Subscriptions, []string{"x://2"}) ||
		found.Owner != "o" {
		t.Errorf("%+v, %v", found, err)
	}
	if there, err := m.Remove(ctx, "b1"); !there || err != nil {
		t.Error(there, err)
	}
	m.Release("b2")
	for _, key := range []string{"a1", "b1", "b2", "never"} {
		if _, err := m.Find(ctx, key); !errors.Is(err, ErrNone) {
			t.Errorf("%s: %v", key, err)
		}
	}
	if there, err := m.Remove(ctx, "b1"); there || err != nil {
		t.Error(there, err)
	}
	if n := len(m.sessions) + len(m.clients); n != 3+2 {
		t.Errorf("%d sessions and clients: %v %v", n, m.sessions, m.clients)
	}
}
