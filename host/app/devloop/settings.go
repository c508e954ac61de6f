package devloop

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/app/config"
	"github.com/hako-run/hako/host/app/server"
	"github.com/hako-run/hako/host/app/shipped"
	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/internal/clip"
)

// Settings are the configuration and the operator's consents under which a plugin is served. A Loop
// takes up their changes.
type Settings struct {
	source  config.Source
	shipped []shipped.Plugin
	// config is in force. Only rounds of the loop use it.
	config *config.Config

	// mu guards the fields below. It is held while a person is asked, so that the answer does not count as a change.
	mu sync.Mutex
	// digest is Source.Digest of what was read last, latest the last configuration without mistakes.
	digest string
	latest *config.Config
	// consents are those read last, by plugin, as readConsents returns them.
	consents map[string]grant.Consent
}

// NewSettings returns the settings of a loop on the plugin in dir: c was read from source and is in force. It makes
// the output folder in dir the only plugin folder of c. shipped are the plugins that come with the program.
func NewSettings(dir string, source config.Source, c *config.Config, shipped []shipped.Plugin) (*Settings, error) {
	if err := os.MkdirAll(outputFolder(dir), 0o755); err != nil {
		return nil, err
	}
	c.Plugins = []string{outputFolder(dir)}
	consents, err := readConsents(c.Consents)
	return &Settings{source: source, shipped: shipped, config: c, digest: source.Digest(), latest: c,
		consents: consents}, err
}

// Config returns the configuration in force. It is for Loop.Approve and Loop.Call.
func (s *Settings) Config() *config.Config { return s.config }

// readConsents reads consents without what each new version changes in them.
func readConsents(path string) (map[string]grant.Consent, error) {
	file, err := grant.Load(path)
	if err != nil {
		return nil, err
	}
	consents := map[string]grant.Consent{}
	for _, c := range file.Consents() {
		consents[c.Name] = grant.Consent{Mounts: c.Mounts, HTTP: c.HTTP, Exec: c.Exec, RevokedAt: c.RevokedAt}
	}
	return consents, nil
}

// files returns the files to watch, and the files and directories that are no sources if they lie among them: what the
// host itself writes, and where tools may write.
func (s *Settings) files() (watched, others []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	path, err := s.source.Path()
	if err != nil {
		path = ""
	}
	others = slices.Concat(s.latest.OwnFiles(), s.latest.AllowPaths,
		slices.Collect(maps.Values(s.latest.ShippedMounts)))
	for _, c := range s.consents {
		for _, mount := range c.Mounts {
			path := mount.Path
			if !filepath.IsAbs(path) {
				path = filepath.Join(filepath.Dir(s.latest.Consents), path)
			}
			others = append(others, path)
		}
	}
	return []string{path, s.latest.Consents}, others
}

// changes reads the files again and says what has changed, a line for each file with a change. Changes of formatting,
// and of the digest in a consent, are none.
func (s *Settings) changes() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := ""
	if digest := s.source.Digest(); digest != s.digest {
		s.digest = digest
		text = s.readConfig()
	}
	consents, err := readConsents(s.latest.Consents)
	if err != nil {
		s.consents = nil // a repaired file is a change
		// Load explains why.
		return text + line(s.latest.Consents, "it cannot be read, and the consents before stay in force")
	}
	var changed []string
	for name, now := range consents {
		if before, ok := s.consents[name]; !ok || !reflect.DeepEqual(before, now) {
			changed = append(changed, name)
		}
	}
	for name := range s.consents {
		if _, ok := consents[name]; !ok {
			changed = append(changed, name)
		}
	}
	s.consents = consents
	if len(changed) > 0 {
		slices.Sort(changed)
		text += line(s.latest.Consents, "the consents of "+strings.Join(changed, ", "))
	}
	return text
}

// readConfig reads the configuration again and says what has changed in it. s.mu is held.
func (s *Settings) readConfig() string {
	next, err := config.Load(s.source)
	if err == nil && next.File == "" && s.latest.File != "" {
		err = fmt.Errorf("the configuration file %s is missing: restore it", s.latest.File)
	}
	if err != nil {
		return fmt.Sprintf("%v\n%s\n", err, configKept)
	}
	next.Plugins, next.Updates = s.latest.Plugins, s.latest.Updates // the loop has its own
	var live, later []string
	for _, key := range s.latest.Changes(next) {
		if slices.ContainsFunc(server.HostKeys, func(outer string) bool { return config.Below(key, outer) }) {
			live = append(live, key)
		} else {
			later = append(later, key)
		}
	}
	s.latest = next
	what := strings.Join(live, ", ")
	if len(later) > 0 {
		what = strings.TrimPrefix(what+"; only from the next start: "+strings.Join(later, ", "), "; ")
	}
	if what == "" {
		return ""
	}
	return line(next.File, what)
}

const configKept = "The configuration before stays in force."

// maxLine bounds the text about one file, in characters.
const maxLine = 200

func line(file, what string) string {
	return fmt.Sprintf("%s changed: %s\n", filepath.Base(file),
		clip.Runes(strings.ReplaceAll(what, "\n", " "), maxLine))
}

// apply puts the latest configuration in force. file is the plugin in service, which apply removes if its version does
// not take the configuration: the next version may.
func (s *Settings) apply(ctx context.Context, h *host.Host, file string) error {
	s.mu.Lock()
	latest := s.latest
	s.mu.Unlock()
	if latest == s.config {
		return nil
	}
	options, err := server.HostOptions(latest, s.shipped)
	if err != nil {
		return err
	}
	options.Updates = grant.SamePermissions
	put, err := h.Reconfigure(options)
	if err != nil {
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := h.Load(ctx); err != nil {
			return err
		}
		put, err = h.Reconfigure(options)
	}
	if err != nil {
		return err
	}
	if err := put(ctx); err != nil {
		return err
	}
	s.config = latest
	return nil
}

// approve calls do, which may change the consents.
func (s *Settings) approve(do func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := do()
	if consents, unreadable := readConsents(s.latest.Consents); unreadable == nil {
		s.consents = consents
	}
	return err
}
