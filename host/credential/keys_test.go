package credential

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hako-run/hako/dev/kit/postgrestest"
	"github.com/hako-run/hako/host/secret"
	"github.com/hako-run/hako/host/store"
	"github.com/hako-run/hako/host/store/drivers"
)

func TestParseKeys(t *testing.T) {
	t.Parallel()
	one, two := newKeyText(), newKeyText()
	tests := map[string]struct {
		text string
		n    int
		want string
	}{
		"one":       {one, 1, ""},
		"two":       {one + "\r\n\n " + two + "\n", 2, ""},
		"url-safe":  {strings.NewReplacer("+", "-", "/", "_", "=", "").Replace(one), 1, ""},
		"none":      {"\n", 0, "no key"},
		"short":     {one[:20], 0, "line 1: it is not 32 bytes in base64"},
		"no base64": {one + "\npassw?rd", 0, "line 2: it is not"},
		"48 bytes":  {one + one[:20], 0, "line 1"},
	}
	for name, test := range tests {
		ring, err := parseKeys(test.text)
		if len(ring) != test.n || (err == nil) != (test.want == "") || err != nil &&
			(!strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "passw?rd")) {
			t.Errorf("%s: %d keys, %v", name, len(ring), err)
		}
	}
}

// TestRecordsAreBound: a record can be decrypted only under its own tenant and name, and not after a bit has changed.
func TestRecordsAreBound(t *testing.T) {
	t.Parallel()
	k, err := parseKey(newKeyText())
	if err != nil {
		t.Fatal(err)
	}
	own := id{"a", "b"}
	sealed := k.seal(own, []byte("text"))
	if plain, err := k.open(own, sealed); err != nil || string(plain) != "text" {
		t.Errorf("%q, %v", plain, err)
	}
	if sealed == k.seal(own, []byte("text")) {
		t.Error("the same text is encrypted the same way twice")
	}
	for _, other := range []id{{"", "b"}, {"b", "a"}, {"ab", ""}, {`a","b`, ""}} {
		if _, err := k.open(other, sealed); err == nil {
			t.Errorf("it opens for %+v", other)
		}
	}
	if _, err := k.open(own, "A"+sealed[1:]); err == nil && sealed[0] != 'A' {
		t.Error("it opens when it was changed")
	}
	if _, err := k.open(own, "?"); err == nil {
		t.Error("it opens what is no base64")
	}
}

// keyed returns a Broker with a store at dir and its key from a source.
func keyed(t *testing.T, dir string, source secret.Source) *Broker {
	o := options(dir, freeeSpec("http://127.0.0.1:1"))
	o.Key = source
	return newBroker(t, o)
}

func TestRotate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	running, other := keyed(t, dir, secret.Source{}), keyed(t, dir, secret.Source{})
	for _, tenant := range []string{"", "acme", "other"} {
		storeConnection(t, running, tenant, 0, time.Hour)
	}
	if r, err := keyed(t, t.TempDir(), secret.Source{}).Rotate(t.Context()); err != nil || r.Records != 0 {
		t.Errorf("without connections: %+v, %v", r, err)
	}
	file := filepath.Join(dir, "secrets.key")
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	r, err := other.Rotate(t.Context())
	if err != nil || r.Records != 3 || r.Remedy != "" {
		t.Fatalf("%+v, %v", r, err)
	}
	after, err := os.ReadFile(file)
	if err != nil || string(after) == string(before) || strings.Contains(string(after),
		strings.TrimSpace(string(before))) {
		t.Errorf("the old key is still there, or there is no new one: %v", err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	for _, b := range []*Broker{running, other, keyed(t, dir, secret.Source{})} {
		for _, tenant := range []string{"", "acme", "other"} {
			if got := token(t, b, tenant); got != "access-0000" {
				t.Errorf("after the rotation: %s", got)
			}
		}
	}
	storeConnection(t, running, "new", 0, time.Hour) // by a process that knows only the old key
	write(t, file, string(after))
	if got := token(t, keyed(t, dir, secret.Source{}), "new"); got != "access-0000" {
		t.Errorf("written by a process that runs on: %s", got)
	}
}

// TestRotateAfterCrash finishes an interrupted rotation: two keys in the file, and records encrypted with either.
func TestRotateAfterCrash(t *testing.T) {
	t.Parallel()
	for _, reencrypted := range []bool{false, true} {
		dir := t.TempDir()
		b := keyed(t, dir, secret.Source{})
		storeConnection(t, b, "", 0, time.Hour)
		file := filepath.Join(dir, "secrets.key")
		ring, err := b.vault.newestFirst(t.Context()) // the first step of a rotation
		if err != nil || len(ring) != 2 {
			t.Fatal(ring, err)
		}
		if reencrypted { // and the second step
			s, err := b.vault.ready(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := b.vault.reencrypt(t.Context(), s, ring[0]); err != nil {
				t.Fatal(err)
			}
		}
		next := keyed(t, dir, secret.Source{})
		if got := token(t, next, ""); got != "access-0000" {
			t.Errorf("after the crash: %s", got)
		}
		r, err := next.Rotate(t.Context())
		if err != nil || r.Key != ring[0].id || r.Records != 1 {
			t.Errorf("%+v, %v, want the key %s that was made already", r, err, ring[0].id)
		}
		if text, err := os.ReadFile(file); err != nil || strings.TrimSpace(string(text)) != ring[0].text {
			t.Errorf("the file holds more than the new key: %v", err)
		}
		if got := token(t, keyed(t, dir, secret.Source{}), ""); got != "access-0000" {
			t.Errorf("at last: %s", got)
		}
	}
}

func TestRotateFromCommand(t *testing.T) {
	t.Parallel()
	dir, file := t.TempDir(), filepath.Join(t.TempDir(), "vault")
	source := command("cat", file)
	old, next := newKeyText(), newKeyText()
	write(t, file, old)
	b := keyed(t, dir, source)
	storeConnection(t, b, "", 0, time.Hour)
	if _, err := b.Rotate(t.Context()); err == nil || !strings.Contains(err.Error(),
		"the command "+os.Args[0]+" contains only one key: insert a new one before it") {
		t.Errorf("got %v", err)
	}
	write(t, file, next+"\n"+old)
	storeConnection(t, keyed(t, dir, source), "early", 0, time.Hour) // encrypted with the old key
	r, err := b.Rotate(t.Context())
	if err != nil || r.Remedy != "remove the old keys from the command "+os.Args[0] || r.Records != 2 {
		t.Errorf("%+v, %v", r, err)
	}
	write(t, file, next)
	for _, tenant := range []string{"", "early"} {
		if got := token(t, keyed(t, dir, source), tenant); got != "access-0000" {
			t.Errorf("with the new key alone: %s", got)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "secrets.key")); err == nil {
		t.Error("a key of its own was made, too")
	}
}

// TestRotateWhereReplicasShare: with a shared store Rotate creates no key, because other machines would not have it.
func TestRotateWhereReplicasShare(t *testing.T) {
	t.Parallel()
	where, old, next := postgrestest.Start(t), newKeyText(), newKeyText()
	files := []string{filepath.Join(t.TempDir(), "key"), filepath.Join(t.TempDir(), "key")}
	var replicas []*Broker
	for _, file := range files {
		write(t, file, old+"\n")
		replicas = append(replicas, keyed(t, where, secret.Source{File: file}))
	}
	storeConnection(t, replicas[0], "", 0, time.Hour)
	if _, err := replicas[0].Rotate(t.Context()); err == nil || !strings.Contains(err.Error(), "for all replicas") {
		t.Errorf("got %v", err)
	}
	for _, file := range files {
		write(t, file, next+"\n"+old+"\n")
	}
	if r, err := replicas[0].Rotate(t.Context()); err != nil || r.Records != 1 ||
		!strings.Contains(r.Remedy, "remove the old keys") {
		t.Errorf("%+v, %v", r, err)
	}
	for i, file := range files {
		if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), old) {
			t.Errorf("the file of one machine was changed: %v", err)
		}
		if got := token(t, replicas[i], ""); got != "access-0000" {
			t.Errorf("afterwards: %s", got)
		}
	}
}

// TestRotateWhileWriting: nothing is lost if one process writes while another one rotates keys repeatedly.
func TestRotateWhileWriting(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writer, rotator := keyed(t, dir, secret.Source{}), keyed(t, dir, secret.Source{})
	storeConnection(t, writer, "", 0, time.Hour)
	var work sync.WaitGroup
	work.Go(func() {
		for range 20 {
			storeConnection(t, writer, "acme", 0, time.Hour)
			if got := token(t, writer, "acme"); got != "access-0000" {
				t.Errorf("got %s", got)
			}
		}
	})
	work.Go(func() {
		for range 5 {
			if _, err := rotator.Rotate(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
	work.Wait()
	for _, tenant := range []string{"", "acme"} {
		if got := token(t, keyed(t, dir, secret.Source{}), tenant); got != "access-0000" {
			t.Errorf("at last: %s", got)
		}
	}
}

func TestMissingKey(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	storeConnection(t, keyed(t, dir, secret.Source{}), "", 0, time.Hour)
	file := filepath.Join(dir, "secrets.key")
	if err := os.Rename(file, file+".away"); err != nil {
		t.Fatal(err)
	}
	if got := token(t, keyed(t, dir, secret.Source{}), ""); !strings.Contains(got, "the file "+file) ||
		!strings.Contains(got, "no such file") {
		t.Errorf("without the file: %s", got)
	}
	if err := keyed(t, dir, secret.Source{}).vault.put(t.Context(), id{"", "freee"}, &record{}); err == nil {
		t.Error("written without the key")
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("another key was made: the connections look as if they could be read")
	}
	write(t, file, newKeyText())
	b := keyed(t, dir, secret.Source{})
	if got := token(t, b, ""); !strings.Contains(got, "is not in the file "+file+": add it there") {
		t.Errorf("with another key: %s", got)
	}
	if status := only(t, b); status.State != Unusable || !strings.Contains(status.Remedy, "add it there") {
		t.Errorf("status %+v", status)
	}
	if err := b.vault.put(t.Context(), id{"", "freee"}, &record{}); !errors.Is(err, errNoKey) {
		t.Errorf("written with a key that the store does not know: %v", err)
	}
	if err := os.Rename(file+".away", file); err != nil {
		t.Fatal(err)
	}
	if got := token(t, b, ""); got != "access-0000" {
		t.Errorf("with the key back, without a restart: %s", got)
	}
}

// TestManyMakeOneKey starts many processes at once without a key.
func TestManyMakeOneKey(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var work sync.WaitGroup
	for range 8 {
		work.Go(func() { storeConnection(t, keyed(t, dir, secret.Source{}), "", 0, time.Hour) })
	}
	work.Wait()
	if got := token(t, keyed(t, dir, secret.Source{}), ""); got != "access-0000" {
		t.Error(got)
	}
}

func TestStoreThatCannotBeOpened(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	write(t, file, "")
	b := newBroker(t, options(file, freeeSpec("http://127.0.0.1:1")))
	if got := token(t, b, ""); !strings.HasPrefix(got,
		"the credential freee cannot be read from the store: see hako connect status: ") {
		t.Errorf("got %s", got)
	}
	if _, err := b.Status(t.Context()); err == nil {
		t.Error("the status says nothing of it")
	}
	newer := t.TempDir()
	s, err := drivers.Open(t.Context(), newer, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Migrate(t.Context(), "credentials", append(append([]string(nil), migrations...),
		"SELECT 1")...); err != nil {
		t.Fatal(err)
	}
	b = newBroker(t, options(newer, freeeSpec("http://127.0.0.1:1")))
	if _, err := b.vault.ready(context.Background()); !errors.Is(err, store.ErrNewer) {
		t.Errorf("made by a newer hako: %v", err)
	}
}
