package manifest

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/hako-run/hako/host/wasm/component"
	"github.com/hako-run/hako/internal/strictyaml"
)

// draft returns the manifest of a component that has none, for the file at path: its permissions are those of
// wassette's policy beside it. It returns nil for a core module and for a component with a manifest.
func draft(path string, wasm []byte) ([]byte, error) {
	if _, has := Inside(wasm); has || !component.IsComponent(wasm) {
		return nil, nil
	}
	beside := SidePaths(path)
	for _, file := range beside[1:] {
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

// Draft returns a manifest for a plugin that has none and needs none to say what it offers, which is a component or a
// plugin made for Extism. Its name is made from that of the file, and its permissions are those of a policy of
// wassette, which may be nil.
func Draft(file string, wasm, policy []byte) ([]byte, error) {
	name, err := nameOf(file)
	if err != nil {
		return nil, err
	}
	m := draftManifest{Name: name, Version: "0.0.0", Description: "A plugin without a manifest"}
	if component.IsComponent(wasm) {
		m.Description = "A component without a manifest" // consents are bound to this text
	}
	if policy != nil {
		if err := strictyaml.Read(policy, MaxBytes, m.readPolicy, func() error { return nil }); err != nil {
			return nil, fmt.Errorf("the policy of wassette: %w", err)
		}
	}
	return json.MarshalIndent(m, "", " ")
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
