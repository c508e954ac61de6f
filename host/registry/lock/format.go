package lock

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/registry"
	"github.com/hako-run/hako/host/wasmfile"
	"github.com/hako-run/hako/internal/strictyaml"
	"github.com/hako-run/hako/internal/visible"
)

// maxFile limits a lock file, in bytes.
const maxFile = 4 << 20

// maxText limits an address, a version and the parts of a signer, in bytes.
const maxText = 2048

const header = `# Which plugins are in the plugin folder, and where they came from.
#
# hako plugin add, update, rollback and remove write this file; keep it in git with the consents. hako plugin sync brings a
# folder to this state. Comments are lost when hako writes the file: keep them in note.
`

// parse reads a lock file.
func parse(text []byte) (Plugins, error) {
	if bytes.HasPrefix(text, []byte("<<<<<<< ")) || bytes.Contains(text, []byte("\n<<<<<<< ")) {
		return nil, errors.New(
			"it has conflicts of a merge: keep one entry for each plugin and remove the lines with " +
				"<<<<<<<, ======= and >>>>>>>")
	}
	plugins := Plugins{}
	read := func(v strictyaml.Value) {
		v.Object(strictyaml.Fields{"plugins": func(v strictyaml.Value) {
			v.Map(func(name string, v strictyaml.Value) {
				var p Plugin
				p.read(v)
				plugins[name] = p
			})
		}})
	}
	check := func() error {
		var e strictyaml.Error
		for _, name := range slices.Sorted(maps.Keys(plugins)) {
			path := strictyaml.Key("plugins", name)
			if !manifest.ValidName(name) {
				e.Add(path, `is not a plugin name: 1 to 40 of a-z, 0-9 and "-", starting with a letter`)
			}
			p := plugins[name]
			p.check(&e, path)
			if p.Previous != nil {
				p.Previous.check(&e, path+".previous")
			}
		}
		return e.Err()
	}
	if err := strictyaml.Read(text, maxFile, read, check); err != nil {
		return nil, err
	}
	return plugins, nil
}

func (p *Plugin) read(v strictyaml.Value) {
	fields := p.fields()
	fields["note"] = strictyaml.String(&p.Note)
	fields["previous"] = func(v strictyaml.Value) {
		p.Previous = new(Entry)
		v.Object(p.Previous.fields())
	}
	v.Object(fields)
}

func (e *Entry) fields() strictyaml.Fields {
	return strictyaml.Fields{
		"from":    strictyaml.String(&e.From),
		"digest":  strictyaml.String(&e.Digest),
		"wasm":    strictyaml.String(&e.Wasm),
		"version": strictyaml.String(&e.Version),
		"signer": func(v strictyaml.Value) {
			e.Signer = new(Signer)
			v.Object(strictyaml.Fields{
				"issuer":  strictyaml.String(&e.Signer.Issuer),
				"subject": strictyaml.String(&e.Signer.Subject),
				"key":     strictyaml.String(&e.Signer.Key),
			})
		},
	}
}

// check reports what is wrong with an entry at path.
func (e *Entry) check(errs *strictyaml.Error, path string) {
	if err := checkFrom(e.From); err != nil {
		errs.Add(path+".from", "%v", err)
	}
	isDigest := func(key, value string) {
		if !wasmfile.ValidDigest(value) {
			errs.Add(path+"."+key, "must be sha256: and 64 hexadecimal digits")
		}
	}
	isDigest("digest", e.Digest)
	isDigest("wasm", e.Wasm)
	isText := func(key, value string) {
		if len(value) > maxText || strings.ContainsFunc(value, visible.Hidden) {
			errs.Add(path+"."+key, "is longer than %d bytes or has hidden characters", maxText)
		}
	}
	isText("version", e.Version)
	if s := e.Signer; s != nil {
		if !registry.HasScheme(e.From) {
			errs.Add(path+".signer", "is only for plugins from a registry (%s…): remove it", registry.Scheme)
		}
		isText("signer.issuer", s.Issuer)
		isText("signer.subject", s.Subject)
		isText("signer.key", s.Key)
		if *s == (Signer{}) {
			errs.Add(path+".signer",
				"names nobody: write issuer and subject, or key, or leave it out for a plugin that is "+
					"not signed")
		}
	}
}

// checkFrom explains why a plugin cannot have come from an address.
func checkFrom(from string) error {
	if from == FromFile {
		return nil
	}
	if registry.HasScheme(from) {
		_, err := registry.ParseReference(from)
		return err
	}
	u, err := url.Parse(from)
	known := err == nil && (u.Scheme == "https" || u.Scheme == "http")
	switch {
	case !known || u.Hostname() == "" || len(from) > maxText || strings.ContainsFunc(from, visible.Hidden):
		return fmt.Errorf("must be an address such as oci://registry.example.com/tools/weather:1.4 or "+
			"https://example.com/weather.wasm, or %q", FromFile)
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return errors.New("must have no user, query or fragment, which may be secrets")
	}
	return nil
}

// format returns the text of a lock file.
func format(plugins Plugins) ([]byte, error) {
	var list strictyaml.Mapping
	for _, name := range slices.Sorted(maps.Keys(plugins)) {
		p := plugins[name]
		m := p.mapping()
		if p.Previous != nil {
			m = append(m, strictyaml.Entry{Key: "previous", Value: p.Previous.mapping()})
		}
		list = append(list, strictyaml.Entry{Key: name, Value: append(m, strictyaml.Entry{Key: "note", Value: p.Note})})
	}
	return strictyaml.Write(strictyaml.Mapping{{Key: "plugins", Value: list}}, header)
}

func (e *Entry) mapping() strictyaml.Mapping {
	var signer strictyaml.Mapping
	if s := e.Signer; s != nil {
		signer = strictyaml.Mapping{
			{Key: "issuer", Value: s.Issuer}, {Key: "subject", Value: s.Subject}, {Key: "key", Value: s.Key},
		}
	}
	return strictyaml.Mapping{
		{Key: "from", Value: e.From}, {Key: "digest", Value: e.Digest}, {Key: "wasm", Value: e.Wasm},
		{Key: "version", Value: e.Version}, {Key: "signer", Value: signer},
	}
}
