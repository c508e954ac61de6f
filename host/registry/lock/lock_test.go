package lock_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/hako-run/hako/dev/kit/testprogram"
	"github.com/hako-run/hako/host/registry/lock"
)

var (
	first  = "sha256:" + strings.Repeat("1", 64)
	second = "sha256:" + strings.Repeat("2", 64)
)

func entry(version, digest string) lock.Entry {
	return lock.Entry{From: "oci://registry.example/tools/weather:" + version, Digest: digest, Wasm: digest, Version: version}
}

func update(t *testing.T, path string, change func(lock.Plugins)) {
	t.Helper()
	err := lock.Update(t.Context(), path, func(p lock.Plugins) error {
		change(p)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestUpdate: what is written is read again, the version before is kept, and the same entries give the same bytes.
func TestUpdate(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "new", lock.FileName)
	if p, err := lock.Load(path); err != nil || len(p) != 0 {
		t.Errorf("no file: %v, %v", p, err)
	}
	want := lock.Plugins{}
	update(t, path, func(p lock.Plugins) {
		for _, p := range []lock.Plugins{p, want} {
			p["weather"] = lock.Plugin{Note: "for the dashboard: # kept"}
			p.Set("weather", entry("1.0.0", first))
			p.Set("weather", lock.Entry{From: "oci://example.com/w:1.1.0", Digest: second, Wasm: second, Version: "1.1.0",
				Signer: &lock.Signer{Issuer: "https://issuer.example", Subject: "release@example.com"}})
			p.Set("calc", lock.Entry{From: lock.FromFile, Digest: first, Wasm: first, Version: "0.1.0"})
		}
	})
	got, err := lock.Load(path)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
	if p := got["weather"]; p.Previous == nil || p.Previous.Version != "1.0.0" {
		t.Errorf("the version before: %+v", p.Previous)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), "\nplugins:\n  calc:\n    from: file\n") {
		t.Errorf("not sorted:\n%s", text)
	}
	edited := append([]byte("# my own comment\n"), text...)
	if err := os.WriteFile(path, edited, 0o600); err != nil {
		t.Fatal(err)
	}
	update(t, path, func(lock.Plugins) {})
	if now, err := os.ReadFile(path); err != nil || string(now) != string(edited) {
		t.Errorf("written without a change: %v\n%s", err, now)
	}
	refused := errors.New("refused")
	err = lock.Update(t.Context(), path, func(p lock.Plugins) error {
		delete(p, "calc")
		return refused
	})
	if now, _ := os.ReadFile(path); !errors.Is(err, refused) || string(now) != string(edited) {
		t.Errorf("after a refusal: %v\n%s", err, now)
	}
}

// TestUpdateAtOnce: of changes at the same time none is lost.
func TestUpdateAtOnce(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), lock.FileName)
	names := "abcdefghijklmnop"
	var group sync.WaitGroup
	for i := range names {
		group.Go(func() { update(t, path, func(p lock.Plugins) { p.Set(names[i:i+1], entry("1.0.0", first)) }) })
	}
	group.Wait()
	if p, err := lock.Load(path); err != nil || len(p) != len(names) {
		t.Errorf("%d of %d entries, %v", len(p), len(names), err)
	}
}

// TestUnwritable: where the configuration is read-only, the error says what to set.
func TestUnwritable(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), lock.FileName)
	if err := os.Mkdir(path+".lock", 0o700); err != nil { // root may write everywhere, but not into a directory
		t.Fatal(err)
	}
	err := lock.Update(t.Context(), path, func(lock.Plugins) error { return nil })
	if err == nil || !strings.Contains(err.Error(), "set lock in hako.yaml") {
		t.Errorf("got %v", err)
	}
}

// TestMerge: git merges changes of neighbouring plugins, and a conflict is explained.
func TestMerge(t *testing.T) {
	t.Parallel()
	git, err := exec.LookPath("git")
	if err != nil {
		testprogram.Missing(t, "git is not installed")
	}
	dir := t.TempDir()
	write := func(file, calc, weather string) {
		update(t, filepath.Join(dir, file), func(p lock.Plugins) {
			p.Set("calc", entry(calc, first))
			p.Set("weather", entry(weather, first))
		})
	}
	write("base", "1.0.0", "1.0.0")
	write("ours", "1.1.0", "1.0.0")
	write("theirs", "1.0.0", "1.2.0")
	merge := func(files ...string) (lock.Plugins, error) {
		command := exec.CommandContext(t.Context(), git, append([]string{"merge-file"}, files...)...)
		command.Dir = dir
		_ = command.Run() // its exit code is the number of conflicts
		return lock.Load(filepath.Join(dir, files[0]))
	}
	merged, err := merge("ours", "base", "theirs")
	if err != nil || merged["calc"].Version != "1.1.0" || merged["weather"].Version != "1.2.0" {
		t.Errorf("merged: %+v, %v", merged, err)
	}
	write("conflict", "1.3.0", "1.0.0")
	if _, err := merge("conflict", "base", "ours"); err == nil || !strings.Contains(err.Error(), "conflicts of a merge") {
		t.Errorf("a conflict: %v", err)
	}
}

// TestHostile: names and digests become paths, and addresses are connected to, so none may be other than it seems.
func TestHostile(t *testing.T) {
	t.Parallel()
	good := "plugins:\n  weather:\n    from: file\n    digest: " + first + "\n    wasm: " + first + "\n    version: 1.0.0\n"
	for name, test := range map[string]struct{ old, new, want string }{
		"a path as name":      {"  weather:", "  ../../etc/cron:", "is not a plugin name"},
		"an absolute name":    {"  weather:", "  /etc/cron:", "is not a plugin name"},
		"a name with a dot":   {"  weather:", "  a.b:", "is not a plugin name"},
		"no name":             {"  weather:", `  "":`, "is not a plugin name"},
		"a path as digest":    {"wasm: " + first, "wasm: sha256:../../../etc/passwd", "sha256: and 64"},
		"a short digest":      {"wasm: " + first, "wasm: sha256:11", "sha256: and 64"},
		"no digest":           {"    digest: " + first + "\n", "", "sha256: and 64"},
		"a file's path":       {"from: file", "from: /etc/passwd", "must be an address"},
		"a file's URL":        {"from: file", "from: file:///etc/passwd", "must be an address"},
		"no registry":         {"from: file", "from: oci://../../etc/passwd", "is not a registry reference"},
		"no tag":              {"from: file", "from: 'oci://r.example/w:1 2'", "is not a registry reference"},
		"a secret":            {"from: file", "from: https://example.com/w.wasm?token=x", "may be secrets"},
		"a password":          {"from: file", "from: https://me:secret@example.com/w.wasm", "may be secrets"},
		"hidden text":         {"version: 1.0.0", `version: "1.0.0\u202e"`, "hidden characters"},
		"escapes":             {"version: 1.0.0", `version: "\e[2J"`, "hidden characters"},
		"a signer of nobody":  {"version: 1.0.0", "version: 1.0.0\n    signer: {}", "names nobody"},
		"an unknown key":      {"version: 1.0.0", "versoin: 1.0.0", `did you mean "version"`},
		"a name twice":        {"version: 1.0.0\n", "version: 1.0.0\n  weather: {}\n", "weather"},
		"a bad one before":    {"version: 1.0.0", "version: 1.0.0\n    previous: {from: /etc/passwd}", "previous.from"},
		"before the previous": {"version: 1.0.0", "version: 1.0.0\n    previous: {previous: {}}", `unknown key "previous"`},
	} {
		path := filepath.Join(t.TempDir(), lock.FileName)
		text := strings.Replace(good, test.old, test.new, 1)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := lock.Load(path); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
		err := lock.Update(t.Context(), path, func(lock.Plugins) error { return nil })
		if err == nil {
			t.Errorf("%s: it was updated", name)
		}
	}
}

func TestNewest(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ tags, current, want string }{
		{"1.0.0 1.1.0 1.10.0 1.9.0 latest", "1.0.0", "1.10.0"},
		{"1.0.0 0.9.0", "1.0.0", ""},
		{"v1.2.0 v2.0.0-rc.1 sha-1a2b3c", "v1.1.0", "v1.2.0"},
		{"2.0.0-rc.1 2.0.0-rc.2 2.0.0-rc.10", "2.0.0-rc.1", "2.0.0-rc.10"},
		{"2.0.0-rc.1 2.0.0", "2.0.0-rc.1", "2.0.0"},
		{"1 1.4.9 1.5 1.5.0", "1.4", "1.5"},
		{"1.5.0", "1.4", ""},
		{"1.5.0 1.5 1", "1.4.2", "1.5.0"},
		{"1.5 2 2.0.0", "1.5.0", "2.0.0"},
		{"2.0.0", "latest", ""},
		{"01.2.0 1.2.0.1 1..2 1.2- 99999999999999999999999.0.0", "1.0.0", "99999999999999999999999.0.0"},
	} {
		if got := lock.Newest(strings.Fields(test.tags), test.current); got != test.want {
			t.Errorf("newer than %s in %s: %q, want %q", test.current, test.tags, got, test.want)
		}
	}
}

// TestCompare: the order of Semantic Versioning 2.0.0, section 11.
func TestCompare(t *testing.T) {
	t.Parallel()
	ordered := []string{"0.9.9", "1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-beta", "1.0.0-beta.2",
		"1.0.0-beta.11", "1.0.0-rc.1", "v1.0.0+build", "1.0.1", "1.2", "2", "10.0.0"}
	for i, a := range ordered {
		for j, b := range ordered {
			if order, ok := lock.Compare(a, b); !ok || (order < 0) != (i < j) || (order == 0) != (i == j) {
				t.Errorf("%s and %s: %d, %v", a, b, order, ok)
			}
		}
	}
	if _, ok := lock.Compare("1.0.0", "latest"); ok {
		t.Error("latest is no version")
	}
}

func FuzzLoad(f *testing.F) {
	path := filepath.Join(f.TempDir(), lock.FileName)
	f.Add([]byte("plugins:\n  weather:\n    from: oci://r.example/w:1\n    digest: " + first + "\n    wasm: " + second +
		"\n    version: 1.0.0\n    signer: {issuer: a, subject: b}\n    previous: {from: file, digest: " + first + ", wasm: " +
		first + "}\n    note: text\n"))
	f.Add([]byte("plugins: {../x: {from: file}}"))
	f.Add([]byte("<<<<<<< ours\nplugins: {}\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		plugins, err := lock.Load(path)
		if err != nil {
			return
		}
		for name := range plugins {
			if !filepath.IsLocal(name) || filepath.Base(name) != name {
				t.Fatalf("%q is a path", name)
			}
		}
		// a change rewrites the file, and what is written says the same
		update(t, path, func(p lock.Plugins) { p.Set("zz-new", entry("1.0.0", first)) })
		plugins.Set("zz-new", entry("1.0.0", first))
		if again, err := lock.Load(path); err != nil || !reflect.DeepEqual(again, plugins) {
			t.Fatalf("%+v is written and read as %+v, %v", plugins, again, err)
		}
	})
}

// TestUpdateRefuses: what Load would refuse is not written, and the file stays as it is.
func TestUpdateRefuses(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), lock.FileName)
	update(t, path, func(p lock.Plugins) { p.Set("weather", entry("1.0", first)) })
	for name, change := range map[string]func(*lock.Entry){
		"version":  func(e *lock.Entry) { e.Version = strings.Repeat("1", 3000) },
		"digest":   func(e *lock.Entry) { e.Digest = "sha512:" + strings.Repeat("1", 128) },
		"from":     func(e *lock.Entry) { e.From = "https://registry.example/" + strings.Repeat("x", 3000) },
		"signer":   func(e *lock.Entry) { e.From, e.Signer = lock.FromFile, &lock.Signer{Key: "acme"} },
		"previous": func(e *lock.Entry) { e.Wasm = "" },
	} {
		err := lock.Update(t.Context(), path, func(p lock.Plugins) error {
			e := entry("2.0", second)
			change(&e)
			p.Set("weather", e)
			return nil
		})
		if err == nil || name != "previous" && !strings.Contains(err.Error(), "plugins.weather."+name) {
			t.Errorf("%s: %v", name, err)
		}
		if now, err := lock.Load(path); err != nil || now["weather"].Version != "1.0" {
			t.Errorf("%s: now it is %+v, %v", name, now, err)
		}
	}
}
