// Package index reads catalogues of plugins and searches them.
//
// An index is a YAML or JSON document: a local file, a file on a web server, or an artifact in an OCI registry
// (docs/registries.md; schema.json is its JSON Schema). Parse reads one, Indexes loads those that the operator has
// configured and keeps copies for the time without a network, and Search ranks their plugins. Servers searches a
// registry of MCP servers (modelcontextprotocol/registry).
//
// Everything in an index is a claim of its author. Texts come out of this package in one line, bounded and without
// hidden characters.
package index

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path"
	"path/filepath"
	"strings"

	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/outbound"
	"github.com/hako-run/hako/host/wasmfile"
	"github.com/hako-run/hako/internal/address"
	"github.com/hako-run/hako/internal/clip"
	"github.com/hako-run/hako/internal/strictjson"
	"github.com/hako-run/hako/internal/strictyaml"
	"github.com/hako-run/hako/internal/visible"
	"github.com/hako-run/hako/pdk/locale"
)

// Bounds of an index. An index that exceeds the first two is refused, texts are shortened.
const (
	// MaxBytes bounds an index.
	MaxBytes       = 4 << 20
	maxPlugins     = 10_000
	maxTitle       = 100
	maxDescription = 1000
	maxName        = 200
	maxKeywords    = 20
	maxURL         = 2000
	maxProblems    = 20
)

// Plugin is a plugin in an index.
type Plugin struct {
	// Index is the location of the index, as Shown returns it.
	Index   string `json:"index"`
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	// Reference is the location of the plugin: an oci:// reference, a URL, or, from an index that is a file, an
	// absolute path.
	Reference string `json:"reference"`
	// Digest is the digest that the .wasm file must have, as "sha256:HEX", or empty.
	Digest      string      `json:"digest,omitempty"`
	Title       locale.Text `json:"title,omitempty"`
	Description locale.Text `json:"description,omitempty"`
	// Asks summarises what the plugin asks for. The plugin's manifest has the precise permissions.
	Asks     locale.Text `json:"asks,omitempty"`
	License  string      `json:"license,omitempty"`
	Homepage string      `json:"homepage,omitempty"`
	// Publisher and Signer are not verified.
	Publisher string   `json:"publisher,omitempty"`
	Signer    string   `json:"signer,omitempty"`
	Keywords  []string `json:"keywords,omitempty"`
	// Resembles names another plugin that people could mistake for this one.
	Resembles string `json:"resembles,omitempty"`
}

// document is an index after Parse.
type document struct {
	title   locale.Text
	plugins []Plugin
	// omitted lists the entries that were left out, and why.
	omitted []string
}

// Parse reads the index from location, as a search does: omitted says which entries were left out and why.
func Parse(data []byte, location string) (plugins []Plugin, omitted []string, err error) {
	d, err := parse(data, location)
	if err != nil {
		return nil, nil, err
	}
	return d.plugins, d.omitted, nil
}

// text is a text in a document: one for all languages, or an object of texts by language.
type text locale.Text

func (t *text) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil {
		*t = text{"en": one}
		return nil
	}
	return strictjson.Unmarshal(data, (*locale.Text)(t))
}

// entry is a plugin in a document. Unknown keys are ignored, because an index may be newer than its reader.
type entry struct {
	Name        string   `json:"name"`
	Version     string   `json:"version"`
	Reference   string   `json:"reference"`
	Digest      string   `json:"digest"`
	Title       text     `json:"title"`
	Description text     `json:"description"`
	Asks        text     `json:"asks"`
	License     string   `json:"license"`
	Homepage    string   `json:"homepage"`
	Publisher   string   `json:"publisher"`
	Signer      string   `json:"signer"`
	Keywords    []string `json:"keywords"`
}

// parse reads the index from location. It fails if the document is malformed, too large or has no plugins; a plugin
// that breaks a rule is left out.
func parse(data []byte, location string) (*document, error) {
	if len(data) > MaxBytes {
		return nil, fmt.Errorf("the index is larger than %s", strictyaml.FormatSize(MaxBytes))
	}
	d := &document{}
	found, tooMany := false, false
	err := strictyaml.Read(data, MaxBytes, func(v strictyaml.Value) {
		v.Map(func(key string, v strictyaml.Value) {
			switch key {
			case "title":
				var title text
				if json.Unmarshal(v.JSON(), &title) == nil {
					d.title = title.tidy(maxTitle)
				}
			case "plugins":
				found = true
				names := map[string]bool{}
				v.List(func(i int, v strictyaml.Value) {
					if tooMany = i >= maxPlugins; !tooMany {
						d.add(v, location, names)
					}
				})
			}
		})
	}, nil)
	switch {
	case err != nil:
		return nil, fmt.Errorf("it is not an index: %s", clip.Marked(visible.Mark(err.Error()), 500))
	case tooMany:
		return nil, fmt.Errorf("the index has more than %d plugins", maxPlugins)
	case !found:
		return nil, errors.New(`it is not an index: the key "plugins" is missing`)
	}
	return d, nil
}

// add adds the plugin v unless it breaks a rule. names are those of the plugins so far.
func (d *document) add(v strictyaml.Value, location string, names map[string]bool) {
	var e entry
	data := v.JSON()
	if data == nil {
		return // reported
	}
	err := strictjson.Unmarshal(data, &e)
	var p Plugin
	if err == nil {
		p, err = e.plugin(location)
	}
	if err == nil && names[p.Name] {
		err = errors.New("the index has another plugin of that name")
	}
	if err == nil {
		names[p.Name] = true
		d.plugins = append(d.plugins, p)
		return
	}
	if len(d.omitted) < maxProblems {
		d.omitted = append(d.omitted,
			fmt.Sprintf("line %d: %s: %s", v.Line(), tidy(e.Name, maxName), tidy(err.Error(), 500)))
	}
}

// plugin checks the entry.
func (e *entry) plugin(location string) (p Plugin, err error) {
	reference, err := resolve(location, e.Reference)
	switch {
	case !manifest.ValidName(e.Name):
		return p, errors.New(`the name must be 1 to 40 of a-z, 0-9 and "-", starting with a letter`)
	case err != nil:
		return p, err
	case e.Digest != "" && !wasmfile.ValidDigest(e.Digest):
		return p, errors.New("the digest must be sha256: and 64 hexadecimal digits in lower case")
	}
	p = Plugin{Index: Shown(location), Name: e.Name, Version: tidy(e.Version, maxName), Reference: reference,
		Digest:      e.Digest,
		Title:       e.Title.tidy(maxTitle),
		Description: e.Description.tidy(maxDescription), Asks: e.Asks.tidy(maxDescription),
		License: tidy(e.License, maxName), Homepage: webPage(e.Homepage), Publisher: tidy(e.Publisher, maxName),
		Signer: tidy(e.Signer, maxName)}
	for _, keyword := range e.Keywords[:min(len(e.Keywords), maxKeywords)] {
		p.Keywords = append(p.Keywords, tidy(keyword, maxTitle))
	}
	return p, nil
}

// resolve returns the reference of a plugin in the index at location.
func resolve(location, reference string) (string, error) {
	if reference == "" {
		return "", errors.New("the reference is missing")
	}
	if len(reference) > maxURL || strings.ContainsFunc(reference, notPlain) {
		return "", fmt.Errorf(
			"the reference has other characters than those of ASCII that are visible, or more than %d", maxURL)
	}
	absolute := strings.Contains(reference, "://")
	base, isURL := parseURL(location)
	switch {
	case !absolute && IsOCI(location):
		return "", fmt.Errorf("the reference %q is a path, which an index in a registry cannot have", reference)
	case !absolute && (path.Clean("/"+reference) != "/"+reference || strings.Contains(reference, ":")):
		return "", fmt.Errorf(
			"the reference %q is neither an oci:// reference, an https URL nor a path below the index", reference)
	case !absolute && isURL:
		return base.ResolveReference(&url.URL{Path: reference}).String(), nil
	case !absolute:
		return filepath.Join(filepath.Dir(location), filepath.FromSlash(reference)), nil
	case IsOCI(reference):
		return reference, nil
	}
	u, err := url.Parse(reference)
	if err != nil || u.Hostname() == "" || u.User != nil || u.Scheme != "https" && !(isURL && sameOrigin(u, base)) {
		return "", fmt.Errorf(
			"the reference %q is neither an oci:// reference, an https URL nor a path below the index", reference)
	}
	return reference, nil
}

// IsOCI reports whether a location is in an OCI registry.
func IsOCI(location string) bool {
	scheme, _, ok := strings.Cut(location, "://")
	return ok && strings.EqualFold(scheme, "oci")
}

// parseURL returns location as the URL of a web server, if it is one.
func parseURL(location string) (*url.URL, bool) {
	u, err := url.Parse(location)
	return u, err == nil && u.Hostname() != "" && (u.Scheme == "https" || u.Scheme == "http")
}

// Hosts returns the hosts and ports of the locations on web servers, in the form of outbound.HostPort.
func Hosts(locations []string) (hosts []string) {
	for _, location := range locations {
		if u, ok := parseURL(location); ok {
			hosts = append(hosts, outbound.HostPort(u))
		}
	}
	return hosts
}

func sameOrigin(a, b *url.URL) bool { return a.Scheme == b.Scheme && a.Host == b.Host }

// CheckLocation returns why an index cannot be at location: it must be an oci:// reference, an https URL or a path.
func CheckLocation(location string) error {
	if !strings.Contains(location, "://") || IsOCI(location) {
		return nil
	}
	if u, ok := parseURL(location); !ok || u.User != nil || !address.IsConfidential(u) {
		return fmt.Errorf("%q is neither an oci:// reference, an https URL nor the path of a file", Shown(location))
	}
	return nil
}

// Shown returns a location without its query and user, which may be secret.
func Shown(location string) string {
	u, ok := parseURL(location)
	if !ok {
		return tidy(location, maxURL)
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return tidy(u.String(), maxURL)
}

// webPage returns an https address as it may be linked to, or "". Hosts with letters beyond ASCII, which may look like
// those of others, are not linked to.
func webPage(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" || u.Hostname() == "" || u.User != nil || len(text) > maxURL ||
		strings.ContainsFunc(u.Host, notPlain) {
		return ""
	}
	return tidy(u.String(), maxURL)
}

// notPlain reports whether r is no visible character of ASCII, or a backslash.
func notPlain(r rune) bool { return r <= ' ' || r >= 0x7f || r == '\\' }

// tidy returns text in one line of at most limit characters without hidden ones.
func tidy(text string, limit int) string {
	if len(text) > 8*limit { // no character and no mark is longer
		text = clip.Bytes(text, 8*limit)
	}
	return clip.Runes(visible.Text(strings.Join(strings.Fields(text), " ")), limit)
}

// tidy returns the texts in English and Japanese, the languages that are shown.
func (t text) tidy(limit int) locale.Text {
	texts := locale.Text{}
	for _, language := range []string{"en", "ja"} {
		if s := tidy(t[language], limit); s != "" {
			texts[language] = s
		}
	}
	if len(texts) == 0 {
		return nil
	}
	return texts
}
