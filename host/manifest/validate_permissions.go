package manifest

import (
	"slices"
	"strings"

	"github.com/hako-run/hako/internal/clip"
	"github.com/hako-run/hako/internal/glob"
	"github.com/hako-run/hako/internal/lazyregexp"
	"github.com/hako-run/hako/internal/strictyaml"
)

// methods are those that a permission may ask for.
var methods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "QUERY"}

func (v *validation) httpPermissions(list []HTTPPermission, config map[string]ConfigKey) {
	items(v, "permissions.http", list, func(p HTTPPermission) (string, string) { return ".name", p.Name })
	for i, p := range list {
		path := strictyaml.Index("permissions.http", i)
		v.match(path+".name", p.Name, pluginName, `1 to 40 of a-z, 0-9 and "-", starting with a letter`)
		if _, err := ParseBaseURL(p.URL); err != nil {
			v.Add(path+".url", "%v", err)
		}
		v.methods(path+".methods", p.Methods)
		v.paths(path+".paths", p.Paths)
		v.configKey(path+".configKey", p, config)
		v.credential(path, p)
		v.required(path+".reason", p.Reason, maxReason)
	}
}

func (v *validation) methods(path string, list []string) {
	items(v, path, list, func(m string) (string, string) { return "", m })
	for i, m := range list {
		if !slices.Contains(methods, m) {
			v.Add(strictyaml.Index(path, i), "%s", strictyaml.Unknown("method", m, methods))
		}
	}
}

func (v *validation) paths(path string, globs []string) {
	items(v, path, globs, func(g string) (string, string) { return "", g })
	for i, g := range globs {
		segments := strings.Split(g, "/")
		if g == "" || len(g) > 500 || !isASCII(g) || !glob.Valid(g) ||
			segments[0] == "" || slices.Contains(segments, "..") || slices.Contains(segments, ".") {
			v.Add(strictyaml.Index(path, i),
				`must be a glob relative to url, such as "data/**": no leading "/", no "." or "..", `+
					`at most four groups in braces`)
		}
	}
}

func (v *validation) configKey(path string, p HTTPPermission, config map[string]ConfigKey) {
	if p.ConfigKey == "" {
		return
	}
	key, ok := config[p.ConfigKey]
	switch {
	case !ok:
		v.Add(path, "%s", strictyaml.Unknown("configuration key", p.ConfigKey, keys(config)))
	case key.Type != "url":
		v.Add(path, "must name a configuration key of type url, and %q is of type %s", p.ConfigKey, key.Type)
	default:
		v.configDefault(path, p.URL, key.Default)
	}
}

// configDefault checks that the default address in the configuration is within the permission.
func (v *validation) configDefault(path, permitted string, value any) {
	text, ok := value.(string)
	if !ok {
		return
	}
	base, err := ParseBaseURL(permitted)
	if err != nil {
		return // reported for the permission
	}
	if u, err := ParseBaseURL(text); err != nil || !Covers(base, u) {
		v.Add(path,
			"the key's default %q is not under the permission's url, so that calls would be refused: make them agree",
			clip.Runes(text, 200))
	}
}

// credential checks that it is clear where a credential goes, and that it goes there unread.
func (v *validation) credential(path string, p HTTPPermission) {
	v.optional(path+".credential", p.Credential, pluginName, `1 to 40 of a-z, 0-9 and "-", starting with a letter`)
	if p.Credential == "" {
		return
	}
	if u, err := ParseBaseURL(p.URL); err == nil {
		if err := CheckCredentialURL(u); err != nil {
			v.Add(path+".url", "%v", err)
		}
	}
}

func (v *validation) filePermissions(list []FilePermission) {
	items(v, "permissions.files", list, func(p FilePermission) (string, string) { return ".mount", p.Mount })
	withRoots := false
	for i, p := range list {
		path := strictyaml.Index("permissions.files", i)
		v.match(path+".mount", p.Mount, pluginName, `1 to 40 of a-z, 0-9 and "-", starting with a letter`)
		if p.Roots && withRoots {
			v.Add(path+".roots", "another mount asks for roots already: only one may")
		}
		withRoots = withRoots || p.Roots
		v.required(path+".reason", p.Reason, maxReason)
	}
}

// Bounds of the SQL permission.
const (
	maxMigrations       = 1000
	minQuota            = 1 << 20
	maxQuota      int64 = 1 << 40
)

func (v *validation) sqlPermission(p *SQLPermission) {
	if p == nil {
		return
	}
	const path = "permissions.sql"
	switch {
	case len(p.Migrations) == 0:
		v.Add(path+".migrations", "lists no SQL: the first migration makes the tables")
	case len(p.Migrations) > maxMigrations:
		v.Add(path+".migrations", "lists %d; at most %d are allowed", len(p.Migrations), maxMigrations)
	}
	for i, migration := range p.Migrations {
		if strings.TrimSpace(migration) == "" || strings.ContainsRune(migration, 0) {
			v.Add(strictyaml.Index(path+".migrations", i), "must be one or more SQL statements")
		}
	}
	v.size(path+".quota", p.Quota, minQuota, maxQuota)
	v.required(path+".reason", p.Reason, maxReason)
}

// programName matches the name of a program in a permission, which has no directory and is no pattern.
var programName = lazyregexp.New(`^[A-Za-z0-9_][A-Za-z0-9_.+-]{0,63}$`)

func (v *validation) execPermission(p *ExecPermission) {
	if p == nil {
		return
	}
	const path = "permissions.exec"
	if len(p.Programs) == 0 {
		v.Add(path+".programs", `lists none: name them, or write ["*"] to let the operator name them`)
	}
	items(v, path+".programs", p.Programs, func(name string) (string, string) { return "", name })
	for i, name := range p.Programs {
		switch {
		case name == AnyProgram && len(p.Programs) > 1:
			v.Add(strictyaml.Index(path+".programs", i),
				`"*" stands alone: it leaves it to the operator to name the programs`)
		case name != AnyProgram:
			v.match(strictyaml.Index(path+".programs", i), name, programName,
				`a program's name without its directory, such as "git"`)
		}
	}
	v.required(path+".reason", p.Reason, maxReason)
}

// toolPattern matches a pattern for names of tools.
var toolPattern = lazyregexp.New(`^([a-z0-9*-]{1,40}/)?[A-Za-z0-9_*-]{1,64}$`)

func (v *validation) toolsPermission(p *ToolsPermission) {
	if p == nil {
		return
	}
	const path = "permissions.tools"
	if len(p.Names) == 0 {
		v.Add(path+".names", `lists none: name tools, or write ["*"] for all`)
	}
	items(v, path+".names", p.Names, func(name string) (string, string) { return "", name })
	for i, name := range p.Names {
		v.match(strictyaml.Index(path+".names", i), name, toolPattern,
			`TOOL or PLUGIN/TOOL, where "*" stands for any text`)
	}
	v.required(path+".reason", p.Reason, maxReason)
}
