package server

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/hako-run/hako/dev/kit/testcert"
	"github.com/hako-run/hako/host/app/config"
	"github.com/hako-run/hako/host/govern/audit"
)

// testServer returns a server without parts.
func testServer(c *config.Config) *Server {
	s := &Server{Options: Options{Config: c, Level: new(slog.LevelVar), Logger: slog.New(slog.DiscardHandler)}}
	s.observability = newObservability(c, "", s.Logger)
	s.governance = &governance{server: s}
	return s
}

func writeFile(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// loadConfig reads a configuration from hako.yaml in dir.
func loadConfig(t *testing.T, dir, text string) *config.Config {
	t.Helper()
	writeFile(t, filepath.Join(dir, "hako.yaml"), []byte(text))
	c, err := config.Load(config.Source{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// fakePart is a part that applies the locale.
type fakePart struct {
	name  string
	check func() error
	// applied receives the names of parts that have applied a configuration, discarded of those that discarded one.
	applied, discarded *[]string
}

func (fakePart) start(context.Context) error { return nil }

func (fakePart) keys() []string { return []string{"locale"} }

func (p fakePart) prepare(context.Context, *config.Config) (*change, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	return &change{
		apply: func() []string {
			*p.applied = append(*p.applied, p.name)
			return []string{p.name + " is slow"}
		},
		discard: func() { *p.discarded = append(*p.discarded, p.name) },
	}, nil
}

// TestReloadStopping: nothing is read while hako stops.
func TestReloadStopping(t *testing.T) {
	t.Parallel()
	c, err := config.Load(config.Source{Dir: t.TempDir(), Default: []byte("locale: en\n")})
	if err != nil {
		t.Fatal(err)
	}
	r := newReloader(testServer(c), nil)
	r.close()
	if _, err := r.reload(t.Context(), audit.Subject{}); !errors.Is(err, errStopping) {
		t.Errorf("error %v", err)
	}
}

// TestReloadPrepares: if one part refuses a configuration, no part applies it, and those before it discard it.
func TestReloadPrepares(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "hako.yaml"), []byte("locale: en\n"))
	source := config.Source{Dir: dir, Default: []byte("locale: en\n")}
	c, err := config.Load(source)
	if err != nil {
		t.Fatal(err)
	}
	var events []*audit.Event
	s := testServer(c)
	s.Source = source
	r := newReloader(s, nil)
	r.record = func(e *audit.Event) { events = append(events, e) }
	done, discarded, refuse := []string{}, []string{}, true
	s.parts = []part{
		fakePart{"first", func() error { return nil }, &done, &discarded},
		fakePart{"second", func() error {
			if refuse {
				return errors.New("not this one")
			}
			return nil
		}, &done, &discarded},
	}
	writeFile(t, filepath.Join(dir, "hako.yaml"), []byte("locale: ja\nmemoryBudget: 1GiB\naudit: {key: {env: NEXT}}\n"))
	if _, err := r.reload(t.Context(), audit.Subject{Frontend: "console", User: "aki"}); err == nil || len(done) > 0 ||
		!slices.Equal(discarded, []string{"first"}) || r.config().Locale != "en" {
		t.Errorf("error %v, done %v, discarded %v, locale %s", err, done, discarded, r.config().Locale)
	}
	refuse = false
	answer, err := r.reload(t.Context(), audit.Subject{Frontend: "console", User: "aki"})
	if err != nil || !slices.Equal(done, []string{"first", "second"}) || len(discarded) != 1 ||
		r.config().Locale != "ja" || r.config().MemoryBudget != 2<<30 || !r.config().Audit.Key.IsZero() {
		t.Errorf("error %v, done %v, configuration %+v", err, done, r.config())
	}
	if !slices.Equal(answer.Changed, []string{"locale"}) ||
		!slices.Equal(answer.NeedRestart, []string{"audit.key", "memoryBudget"}) ||
		len(answer.Warnings) != 2 {
		t.Errorf("%+v", answer)
	}
	if len(events) != 2 || events[0].Outcome != "failed" || events[1].Outcome != "ok" ||
		events[1].Subject.User != "aki" || events[1].Detail["applied"] != "locale" {
		t.Errorf("%+v", events)
	}
	if answer, err = r.reload(t.Context(), audit.Subject{}); err != nil || len(answer.Changed) > 0 ||
		len(answer.NeedRestart) != 2 {
		t.Errorf("again: %+v, %v", answer, err)
	}
	if err := os.Remove(filepath.Join(dir, "hako.yaml")); err != nil {
		t.Fatal(err)
	}
	if _, err := r.reload(t.Context(), audit.Subject{}); err == nil || !strings.Contains(err.Error(), "is missing") ||
		r.config().Locale != "ja" {
		t.Errorf("without the file: %v", err)
	}
}

// TestLiveKeysAreDocumented compares what changes while hako serves with what docs/configuration.md says of it.
func TestLiveKeysAreDocumented(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	text, err := os.ReadFile("../../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## Changes while it serves\n")
	section, _, _ = strings.Cut(section, "\n## ")
	documented, live := map[string]bool{}, map[string]bool{}
	for row := range strings.Lines(section) {
		if cells := strings.Split(row, "|"); len(cells) > 2 {
			for _, key := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[1], -1) {
				documented[key[1]] = true
			}
		}
	}
	testcert.Write(t, dir, 1)
	c := loadConfig(t, dir, "http: {tls: {cert: tls.crt, key: tls.key}}\n"+
		"agent: {agents: [a], key: {env: KEY}}\n")
	options := testServer(c).Options
	options.HTTP = true
	for _, newServer := range []func(Options) (*Server, error){New, NewAgent} {
		s, err := newServer(options)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range s.parts {
			if p, ok := p.(*tlsCertificate); ok {
				if err := p.start(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if p, ok := p.(reloadable); ok {
				for _, key := range p.keys() {
					live[key] = true
				}
			}
		}
	}
	if !maps.Equal(documented, live) {
		t.Errorf("documented: %v\nlive: %v", slices.Sorted(maps.Keys(documented)), slices.Sorted(maps.Keys(live)))
	}
}
