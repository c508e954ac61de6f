package pluginfile

import (
	"bytes"
	"compress/zlib"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strings"

	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/wasmfile"
)

// sbomType is the media type of a software bill of materials, and the type of the referrer that has one.
const sbomType = "application/vnd.cyclonedx+json"

// bom is the part of CycloneDX 1.6 that hako writes.
type bom struct {
	Format     string     `json:"bomFormat"`
	Version    string     `json:"specVersion"`
	Metadata   metadata   `json:"metadata"`
	Components []material `json:"components"`
}

type metadata struct {
	Component material `json:"component"`
}

type material struct {
	Type     string  `json:"type"`
	Ref      string  `json:"bom-ref,omitempty"`
	Name     string  `json:"name"`
	Version  string  `json:"version,omitempty"`
	Hashes   []hash  `json:"hashes,omitempty"`
	URL      string  `json:"purl,omitempty"`
	Property []field `json:"properties,omitempty"`
}

type hash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

type field struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// billOfMaterials returns what a plugin was built from, as the compiler wrote it into the file, and how many materials
// that are. It is nothing for a file that does not say: a list made by guessing would look complete.
func billOfMaterials(m *manifest.Manifest, digest string, wasm []byte) ([]byte, int, error) {
	materials := goModules(wasm)
	if materials == nil {
		var err error
		if materials, err = crates(wasm); err != nil || materials == nil {
			return nil, 0, err
		}
	}
	text, err := json.Marshal(bom{"CycloneDX", "1.6", metadata{material{
		Type: "application", Ref: "hako:plugin/" + m.Name + "@" + m.Version, Name: m.Name, Version: m.Version,
		Hashes: []hash{{"SHA-256", strings.TrimPrefix(digest, "sha256:")}},
	}}, materials})
	return text, len(materials), err
}

// Go's linker puts these before and after the modules of a program, where debug/buildinfo does not look in Wasm.
//
// Source: modload.ModInfoProg in cmd/go.
var (
	goInfoStart = []byte("\x30\x77\xaf\x0c\x92\x74\x08\x02\x41\xe1\xc1\x07\xe6\xd6\x18\xe6")
	goInfoEnd   = []byte("\xf9\x32\x43\x31\x86\x18\x20\x72\x00\x82\x42\x10\x41\x16\xd8\xf2")
)

// maxGoInfo bounds the list of modules, in bytes.
const maxGoInfo = 1 << 20

// goModules returns the modules in a plugin of the standard Go compiler.
func goModules(wasm []byte) []material {
	_, rest, found := bytes.Cut(wasm, goInfoStart)
	text, _, ended := bytes.Cut(rest[:min(len(rest), maxGoInfo)], goInfoEnd)
	if !found || !ended {
		return nil
	}
	info, err := debug.ParseBuildInfo(string(text))
	if err != nil {
		return nil
	}
	// The main module is the plugin's own, and its standard library has no version here.
	std := material{Type: "library", Ref: "std", Name: "std", URL: "pkg:golang/std"}
	materials := []material{std}
	for _, dependency := range info.Deps {
		if dependency.Replace != nil {
			dependency = dependency.Replace
		}
		url := "pkg:golang/" + dependency.Path + "@" + dependency.Version
		m := material{Type: "library", Ref: url, Name: dependency.Path, Version: dependency.Version, URL: url}
		if dependency.Sum != "" {
			m.Property = []field{{"go:sum", dependency.Sum}}
		}
		materials = append(materials, m)
	}
	return materials
}

// auditableSection is the custom section in which cargo-auditable writes the crates of a build.
const auditableSection = ".dep-v0"

// maxAuditable bounds the list of crates, in bytes.
const maxAuditable = 8 << 20

// crates returns the crates in a plugin that was built with cargo-auditable.
func crates(wasm []byte) ([]material, error) {
	packed, ok := wasmfile.CustomSection(wasm, auditableSection)
	if !ok {
		return nil, nil
	}
	var list struct {
		Packages []struct {
			Name    string `json:"name"`
			Version string `json:"version"`
			Source  string `json:"source"`
			Kind    string `json:"kind"`
			Root    bool   `json:"root"`
		} `json:"packages"`
	}
	r, err := zlib.NewReader(bytes.NewReader(packed))
	var text []byte
	if err == nil {
		text, err = io.ReadAll(io.LimitReader(r, maxAuditable+1))
	}
	if err == nil && len(text) > maxAuditable {
		err = errors.New("it is too large")
	}
	if err == nil {
		err = json.Unmarshal(text, &list)
	}
	if err != nil {
		return nil, fmt.Errorf("the list of crates in the section %s cannot be read: %w", auditableSection, err)
	}
	materials := []material{}
	for _, p := range list.Packages {
		if p.Root || p.Kind == "build" { // the plugin itself, and what only ran while it was built
			continue
		}
		m := material{Type: "library", Ref: "crate:" + p.Name + "@" + p.Version, Name: p.Name, Version: p.Version}
		if p.Source == "crates.io" {
			m.URL = "pkg:cargo/" + p.Name + "@" + p.Version
		}
		materials = append(materials, m)
	}
	return materials, nil
}
