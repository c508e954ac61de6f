package manifest

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hako-run/hako/host/wasm/component"
	"github.com/hako-run/hako/host/wasmfile"
	"github.com/hako-run/hako/internal/address"
	"github.com/hako-run/hako/internal/clip"
	"github.com/hako-run/hako/internal/strictyaml"
	"github.com/hako-run/hako/internal/visible"
)

// draft returns the manifest of a plugin that has none and needs none, for the file at path: its permissions are those
// of wassette's policy beside a component, or of Extism's manifest beside a plugin made for Extism. It returns nil for
// a plugin of ABI 1, for one with a manifest, and for what is no plugin.
func draft(path string, wasm []byte) ([]byte, error) {
	if _, has := Inside(wasm); has {
		return nil, nil
	}
	beside := SidePaths(path)
	if component.IsComponent(wasm) {
		for _, file := range beside[1:3] {
			policy, err := readRegular(file, MaxBytes)
			if errors.Is(err, os.ErrNotExist) {
				continue
			}
			var m []byte
			if err == nil {
				m, err = Draft(path, wasm, policy)
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			return m, nil
		}
		return Draft(path, wasm, nil)
	}
	if module, err := wasmfile.Read(wasm); err != nil || !module.IsExtism() {
		return nil, nil // the host reads it again, and reports the error
	}
	settings, err := readRegular(beside[3], MaxBytes)
	if errors.Is(err, os.ErrNotExist) {
		return Draft(path, wasm, nil)
	}
	m := newDraft(wasm)
	if err == nil {
		err = m.readExtism(settings, filepath.Base(path), wasm)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", beside[3], err)
	}
	return m.encode(path)
}

// Draft returns a manifest for a plugin that has none and needs none to say what it offers, which is a component or a
// plugin made for Extism. Its name is made from that of the file, and its permissions are those of a policy of
// wassette, which may be nil. Manifest.LeftOut has what hako has no permission for.
func Draft(file string, wasm, policy []byte) ([]byte, error) {
	m := newDraft(wasm)
	if policy != nil {
		if err := strictyaml.Read(policy, MaxBytes, m.readPolicy, func() error { return nil }); err != nil {
			return nil, fmt.Errorf("the policy of wassette: %w", err)
		}
	}
	return m.encode(file)
}

func newDraft(wasm []byte) *draftManifest {
	m := &draftManifest{Version: "0.0.0", Description: "A plugin without a manifest"}
	if component.IsComponent(wasm) {
		m.Description = "A component without a manifest" // consents are bound to this text
	}
	return m
}

// encode returns the manifest for a plugin's file.
func (m *draftManifest) encode(file string) (_ []byte, err error) {
	if m.Name, err = nameOf(file); err != nil {
		return nil, err
	}
	for _, text := range m.leftOut[:min(len(m.leftOut), maxLeftOut)] {
		m.Description += "\n" + leftOutMark + text
	}
	if more := len(m.leftOut) - maxLeftOut; more > 0 {
		m.Description += fmt.Sprintf("\n%s%d more", leftOutMark, more)
	}
	return json.MarshalIndent(m, "", " ")
}

const (
	// leftOutMark begins a line of a drafted description.
	leftOutMark = "Left out: "
	// maxLeftOut bounds these lines, and maxLeftOutText each of them in characters. All fit into a description.
	maxLeftOut     = 8
	maxLeftOutText = 200
)

// leave notes that the entry v of a foreign file is not among the permissions, and why.
func (m *draftManifest) leave(v strictyaml.Value, reason string, args ...any) {
	text := v.Path() + ": " + fmt.Sprintf(reason, args...)
	m.leftOut = append(m.leftOut, clip.Runes(visible.Line(text), maxLeftOutText))
}

// LeftOut returns what a drafted manifest does not ask for although wassette's policy or Extism's manifest does, because
// hako has no such permission: each with its place and the reason. It is nil for other manifests.
func (m *Manifest) LeftOut() []string {
	var texts []string
	for line := range strings.Lines(m.Description["en"]) {
		if text, ok := strings.CutPrefix(strings.TrimSpace(line), leftOutMark); ok {
			texts = append(texts, text)
		}
	}
	return texts
}

// nameOf makes the name of a plugin from that of its file.
func nameOf(path string) (string, error) {
	base := strings.TrimSuffix(filepath.Base(path), ".wasm")
	name := strings.Trim(strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		}
		return '-'
	}, base), "-")
	if !ValidName(name) {
		return "", fmt.Errorf("the plugin has no manifest, and the name of its file, %q, "+
			"makes no name for a plugin (1 to 40 of a-z, 0-9 and \"-\", starting with a letter): "+
			"rename the file, or put a manifest beside it", base)
	}
	return name, nil
}

// draftManifest is a drafted manifest as YAML has it.
type draftManifest struct {
	Name        string                    `json:"name"`
	Version     string                    `json:"version"`
	Description string                    `json:"description"`
	Permissions draftPermissions          `json:"permissions,omitzero"`
	Config      map[string]draftConfigKey `json:"config,omitempty"`

	leftOut []string
}

// addFiles asks for a mount. Names that are taken get a number.
func (m *draftManifest) addFiles(v strictyaml.Value, f draftFiles) {
	if len(m.Permissions.Files) == maxItems {
		m.leave(v, "there are more than %d folders", maxItems)
		return
	}
	name := f.Mount
	for n := 2; slices.ContainsFunc(m.Permissions.Files,
		func(other draftFiles) bool { return other.Mount == f.Mount }); n++ {
		f.Mount = fmt.Sprintf("%s-%d", name, n)
	}
	m.Permissions.Files = append(m.Permissions.Files, f)
}

// addHost asks for requests to a host with any method. Without a scheme that is https, and http for addresses of this
// machine or its network.
func (m *draftManifest) addHost(v strictyaml.Value, host, source string) {
	if len(m.Permissions.HTTP) == maxItems {
		m.leave(v, "there are more than %d hosts", maxItems)
		return
	}
	if !strings.Contains(host, "://") {
		scheme := "https://"
		if u, err := url.Parse("http://" + host); err == nil && address.IsPrivate(u.Hostname()) {
			scheme = "http://"
		}
		host = scheme + host
	}
	u, err := ParseBaseURL(host)
	if err != nil {
		m.leave(v, "host %v", err)
		return
	}
	u.Path = "/" // wassette and Extism compare the host alone
	m.Permissions.HTTP = append(m.Permissions.HTTP, draftHTTP{
		Name: fmt.Sprintf("host-%d", len(m.Permissions.HTTP)+1), URL: u.String(), Methods: methods,
		Reason: source + " names " + u.Host})
}

// addKey declares a key of the configuration.
func (m *draftManifest) addKey(v strictyaml.Value, key, description string) {
	if len(m.Config) == maxItems {
		m.leave(v, "there are more than %d keys", maxItems)
		return
	}
	if m.Config == nil {
		m.Config = map[string]draftConfigKey{}
	}
	m.Config[key] = draftConfigKey{"string", description}
}

type draftPermissions struct {
	HTTP  []draftHTTP  `json:"http,omitempty"`
	Files []draftFiles `json:"files,omitempty"`
}

type draftHTTP struct {
	Name    string   `json:"name"`
	URL     string   `json:"url"`
	Methods []string `json:"methods"`
	Reason  string   `json:"reason"`
}

type draftFiles struct {
	Mount  string `json:"mount"`
	Access string `json:"access"`
	Reason string `json:"reason"`
}

type draftConfigKey struct {
	Type        string `json:"type"`
	Description string `json:"description"`
}
