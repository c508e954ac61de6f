package pluginfile

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hako-run/hako"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/internal/lazyregexp"
)

//go:embed template
var templates embed.FS

// scaffold holds the values for the templates of a new plugin.
type scaffold struct {
	// Name is the name of the plugin, Tool that of its tool.
	Name, Tool string
	// Version is that of the PDK, Go the language version that it needs.
	Version, Go string
}

var pluginName = lazyregexp.New(`^[a-z][a-z0-9-]{0,39}$`)

// ToolName is the name of the tool in a new plugin.
func ToolName(plugin string) string { return strings.ReplaceAll(plugin, "-", "_") }

// CheckName says why a new plugin cannot have a name.
func CheckName(name string) error {
	if !pluginName.MatchString(name) {
		return fmt.Errorf("%q is no name for a plugin: 1 to 40 of a-z, 0-9 and -, starting with a letter", name)
	}
	return nil
}

// Languages are those that new plugins can be written in. Except for Go, which uses the PDK, the plugins are components.
var Languages = []string{"go", "js", "ts", "python", "rust"}

// CheckLanguage says why there is no new plugin in a language.
func CheckLanguage(language string) error {
	if !slices.Contains(Languages, language) {
		return fmt.Errorf("no new plugin in %q: --lang %s", language, strings.Join(Languages, ", --lang "))
	}
	return nil
}

// FirstSteps are the commands that install what a new plugin is built with, and test it.
func FirstSteps(language string) []string {
	return map[string][]string{
		"go":     {"go test ./..."},
		"js":     {"npm install", "npm test"},
		"ts":     {"npm install", "npm test"},
		"python": {"python3 -m venv .venv", ".venv/bin/pip install -r requirements.txt", "python3 -m unittest"},
		"rust":   {"rustup target add wasm32-wasip2", "cargo test"},
	}[language]
}

// NewFolder writes the sources of a new plugin into dir, which must not exist or be empty. version is that of this
// program, and of the PDK if a module can have it.
func NewFolder(dir, name, language, version string) error {
	entries, err := os.ReadDir(dir)
	if err == nil && len(entries) > 0 {
		return fmt.Errorf("%s exists and is not empty: choose another name, or remove it", dir)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("new plugin: %w", err)
	}
	s := scaffold{Name: name, Tool: ToolName(name), Version: pdkVersion(version), Go: goVersion}
	files := map[string][]byte{"manifest.schema.json": []byte(manifest.JSONSchema())}
	if language == "go" {
		err = errors.Join(s.fill(files, "go"), vendorPDK(files, s))
	} else {
		err = errors.Join(s.fill(files, "component"), s.fill(files, language))
	}
	if err != nil {
		return err
	}
	for name, content := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("new plugin: %w", err)
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			return fmt.Errorf("new plugin: %w", err)
		}
	}
	return nil
}

// fill adds the templates of a folder to the files, by slash-separated path.
func (s scaffold) fill(files map[string][]byte, folder string) error {
	values := strings.NewReplacer("{{.Name}}", s.Name, "{{.Tool}}", s.Tool, "{{.Version}}", s.Version, "{{.Go}}", s.Go)
	root := path.Join("template", folder)
	return fs.WalkDir(templates, root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := templates.ReadFile(file)
		if err != nil {
			return err
		}
		name := strings.TrimSuffix(strings.TrimPrefix(file, root+"/"), ".tmpl")
		if name == "gitignore" {
			name = ".gitignore"
		}
		files[name] = []byte(values.Replace(string(text)))
		return nil
	})
}

// module is the module that the PDK is part of.
const module = "github.com/hako-run/hako"

// vendorPDK adds the PDK's sources as go mod vendor would, so that the go command needs neither the network nor go.sum.
func vendorPDK(files map[string][]byte, s scaffold) error {
	packages := map[string]bool{}
	err := fs.WalkDir(hako.PDK, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasSuffix(name, "_test.go") {
			return err
		}
		files["vendor/"+module+"/"+name], err = hako.PDK.ReadFile(name)
		if path.Ext(name) == ".go" {
			packages[module+"/"+path.Dir(name)] = true
		}
		return err
	})
	list := []string{"# " + module + " " + s.Version, "## explicit; go " + s.Go}
	for p := range packages {
		list = append(list, p)
	}
	slices.Sort(list[2:])
	files["vendor/modules.txt"] = []byte(strings.Join(list, "\n") + "\n")
	return err
}

// goVersion is the Go version that the PDK needs: the one in this module's go.mod.
const goVersion = "1.26.0"

var release = lazyregexp.New(`^v?([0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?)$`)

// pdkVersion is the program's version, if a module can have it.
func pdkVersion(program string) string {
	if v := release.FindStringSubmatch(program); v != nil {
		return "v" + v[1]
	}
	return "v0.0.0"
}
