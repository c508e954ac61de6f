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
	// Version is the version of the PDK, Go the language version that it needs.
	Version, Go string
}

// ToolName is the name of the tool in a new plugin.
func ToolName(plugin string) string { return strings.ReplaceAll(plugin, "-", "_") }

// CheckName explains why a new plugin cannot have a name.
func CheckName(name string) error {
	if !manifest.ValidName(name) {
		return fmt.Errorf("%q is not a valid plugin name: 1 to 40 of a-z, 0-9 and -, starting with a letter", name)
	}
	return nil
}

// language is one that new plugins can be written in.
type language struct {
	name string
	// templates are the folders of the templates. pdk is the folder of the PDK below pdk/, which is copied; Go's is
	// vendored, and components in other languages than JavaScript need none.
	templates []string
	pdk       string
	// firstSteps install what a new plugin is built with, and test it.
	firstSteps []string
	// patience says what takes long at first, and why. It is empty where nothing does.
	patience string
}

var languages = []language{
	{"go", []string{"core", "go"}, "", []string{"go test ./..."},
		"The first go test on a machine compiles Go's library, over a minute of processor time; later ones take seconds."},
	{"rust", []string{"core", "rust"}, "rust", []string{"rustup target add wasm32-wasip1", "cargo test"}, patienceRust},
	{"js", []string{"component", "script", "js"}, "js", []string{"npm install", "npm test"}, ""},
	{"ts", []string{"component", "script", "ts"}, "js", []string{"npm install", "npm test"}, ""},
	{"python", []string{"component", "python"}, "",
		[]string{"python3 -m venv .venv", ".venv/bin/pip install -r requirements.txt", "python3 -m unittest"},
		"The first calls are interpreted and take seconds, until hako has compiled Python, once for each machine and build."},
	{"c", []string{"core", "c"}, "c", []string{"make test"}, ""},
	{"assemblyscript", []string{"core", "assemblyscript"}, "assemblyscript", []string{"npm install", "npm test"}, ""},
	{"zig", []string{"core", "zig"}, "zig", []string{"zig build test"},
		"The first zig build on a machine compiles Zig's build system, a minute or two; later ones take seconds."},
	{"rust-component", []string{"component", "rust-component"}, "",
		[]string{"rustup target add wasm32-wasip2", "cargo test"}, patienceRust},
}

const patienceRust = "The first cargo test and the first build compile what the plugin depends on, more than a minute of " +
	"processor time each; later ones compile the plugin alone."

// Languages are the names of the languages that new plugins can be written in.
func Languages() []string {
	var names []string
	for _, l := range languages {
		names = append(names, l.name)
	}
	return names
}

// CheckLanguage explains why there is no new plugin in a language.
func CheckLanguage(name string) error {
	if !slices.Contains(Languages(), name) {
		return fmt.Errorf("unsupported language %q: --lang %s", name, strings.Join(Languages(), ", --lang "))
	}
	return nil
}

func findLanguage(name string) language {
	i := slices.IndexFunc(languages, func(l language) bool { return l.name == name })
	if i < 0 {
		return language{}
	}
	return languages[i]
}

// FirstSteps are the commands that install what a new plugin is built with, and test it.
func FirstSteps(name string) []string { return findLanguage(name).firstSteps }

// Patience says what takes long when a new plugin is built or tested for the first time, and why. It is empty where
// nothing does.
func Patience(name string) string { return findLanguage(name).patience }

// NewFolder writes the sources of a new plugin into dir, which must not exist or be empty. version is that of this
// program, and of the PDK if a module can have it.
func NewFolder(dir, name, language, version string) error {
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return fmt.Errorf("%s exists and is not empty: choose another name, or remove it", dir)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("new plugin: %w", err)
	}
	s := scaffold{Name: name, Tool: ToolName(name), Version: pdkVersion(version), Go: goVersion}
	files := map[string][]byte{"manifest.schema.json": []byte(manifest.JSONSchema())}
	l := findLanguage(language)
	for _, folder := range append([]string{"all"}, l.templates...) {
		if err := s.fill(files, folder); err != nil {
			return err
		}
	}
	if err := addPDK(files, s, l); err != nil {
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

// ignoredState are the .gitignore lines for the state that hako keeps where it runs: keys, the audit log, and the locks and
// temporary files beside what it updates. Files that people write or review, such as hako.yaml and the consents, are not
// in it.
const ignoredState = `
# The state of hako, with keys:
/hako.store/
/hako.*.yaml.lock
/.hako-new-*
`

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
			text = append(text, ignoredState...)
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

// addPDK adds the PDK of a language: Go's as vendorPDK does, others in the folder pdk.
func addPDK(files map[string][]byte, s scaffold, l language) (err error) {
	if l.name == "go" {
		return vendorPDK(files, s)
	}
	if l.pdk == "" {
		return nil
	}
	if files["pdk/LICENSE"], err = hako.PDK.ReadFile("LICENSE"); err != nil {
		return err
	}
	if l.pdk == "js" { // its console
		if files["wit/deps/hako-tool/tool.wit"], err = hako.OtherPDKs.ReadFile("pdk/wit/tool.wit"); err != nil {
			return err
		}
	}
	root := "pdk/" + l.pdk
	return fs.WalkDir(hako.OtherPDKs, root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		files["pdk"+strings.TrimPrefix(file, root)], err = hako.OtherPDKs.ReadFile(file)
		return err
	})
}

// goVersion is the Go version that the PDK needs: the one in this module's go.mod.
const goVersion = "1.26.0"

var release = lazyregexp.New(`^v?([0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?)$`)

// pdkVersion is the program's version, if a module can have it.
func pdkVersion(program string) string {
	if v := release().FindStringSubmatch(program); v != nil {
		return "v" + v[1]
	}
	return "v0.0.0"
}
