package pluginfile

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hako-run/hako/host/app/config"
	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/host/registry"
	"github.com/hako-run/hako/host/registry/index"
	"github.com/hako-run/hako/host/registry/lock"
	"github.com/hako-run/hako/internal/strictyaml"
	"github.com/hako-run/hako/internal/wholefile"
	"github.com/hako-run/hako/pdk/locale"
)

const indexHeader = `# An index of plugins for hako plugin search, written by hako plugin index.
`

// WriteIndex writes an index of the plugins in sources to file: folders and .wasm files, which must be in the folder of
// the index or below it, and repositories in registries. A repository without a tag or digest is listed with its newest
// version. Everything in the index is read from the plugins. The same plugins make the same bytes.
func WriteIndex(ctx context.Context, c *config.Config, file string, sources []string) (count int, err error) {
	client, err := registry.New(c.Registry(false))
	if err != nil {
		return 0, err
	}
	defer client.Close()
	var entries []strictyaml.Mapping
	for _, source := range sources {
		var added []strictyaml.Mapping
		if registry.HasScheme(source) {
			added, err = listPublished(ctx, c, client, source)
		} else {
			added, err = listFiles(c, filepath.Dir(file), source)
		}
		if err != nil {
			return 0, err
		}
		entries = append(entries, added...)
	}
	name := func(m strictyaml.Mapping) string { return fmt.Sprint(m[0].Value) }
	slices.SortStableFunc(entries, func(a, b strictyaml.Mapping) int { return strings.Compare(name(a), name(b)) })
	text, err := strictyaml.Write(strictyaml.Mapping{{Key: "plugins", Value: entries}}, indexHeader)
	if err != nil {
		return 0, err
	}
	if err := checkIndex(text, file); err != nil {
		return 0, err
	}
	return len(entries), Place(file, text)
}

// CheckIndex returns what is wrong with the index in a file.
func CheckIndex(file string) error {
	text, err := wholefile.ReadAtMost(file, index.MaxBytes)
	if err != nil {
		return err
	}
	return checkIndex(text, file)
}

func checkIndex(text []byte, file string) error {
	_, omitted, err := index.Parse(text, file)
	if err != nil {
		return err
	}
	errs := make([]error, len(omitted))
	for i, problem := range omitted {
		errs[i] = errors.New(problem)
	}
	return errors.Join(errs...)
}

func listFiles(c *config.Config, dir, source string) (entries []strictyaml.Mapping, err error) {
	files, err := WasmFiles(source)
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		wasm, err := wholefile.ReadAtMost(file, c.MaxPluginSize)
		if err != nil {
			return nil, err
		}
		below, err := filepath.Rel(dir, file)
		if err != nil || !filepath.IsLocal(below) {
			return nil, fmt.Errorf("%s is not below %s, where the index is: an index leads to files below its folder",
				file, dir)
		}
		entry, err := describePlugin(wasm, filepath.ToSlash(below))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		entries = append(entries, entry)
	}
	return entries, nil
}

func listPublished(ctx context.Context, c *config.Config, client *registry.Client, source string) ([]strictyaml.Mapping,
	error) {
	r, err := registry.ParseReference(source)
	if err != nil {
		return nil, err
	}
	if r.Tag == "" && r.Digest == "" {
		tags, err := client.Tags(ctx, r)
		if err != nil {
			return nil, err
		}
		// The newest of those with three numbers, as hako plugin push names them, else latest.
		r.Tag = lock.Newest(tags, "0.0.0")
	}
	p, err := Pull(ctx, c, client, r.String())
	if err != nil {
		return nil, err
	}
	entry, err := describePlugin(p.Wasm, r.String())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r, err)
	}
	return []strictyaml.Mapping{entry}, nil
}

// describePlugin returns the entry of a plugin in an index.
func describePlugin(wasm []byte, reference string) (strictyaml.Mapping, error) {
	m, module, err := Parse(wasm)
	if err != nil {
		return nil, err
	}
	asks := locale.Text{}
	if grant.Asks(m.Permissions) {
		for _, language := range []string{"en", "ja"} {
			asks[language] = strings.Join(grant.Explain(m.Permissions, language), "; ")
		}
	}
	var tools []string
	for _, t := range m.Tools {
		tools = append(tools, t.Name)
	}
	return strictyaml.Mapping{
		{Key: "name", Value: m.Name}, {Key: "version", Value: m.Version}, {Key: "reference", Value: reference},
		{Key: "digest", Value: module.Digest}, {Key: "description", Value: texts(m.Description)}, {Key: "asks",
			Value: texts(asks)},
		{Key: "keywords", Value: tools}, {Key: "license", Value: m.License},
	}, nil
}

// texts returns the texts of an index, in the languages that are shown.
func texts(t locale.Text) (m strictyaml.Mapping) {
	for _, language := range []string{"en", "ja"} {
		m = append(m, strictyaml.Entry{Key: language, Value: strings.TrimSpace(t[language])})
	}
	return m
}
