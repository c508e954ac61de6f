package component

import (
	"strings"

	"github.com/hako-run/hako/internal/lazyregexp"
)

// nameKind is the form of an import's or export's name.
type nameKind int

const (
	plainName nameKind = iota
	constructorName
	methodName
	staticName
	interfaceName
)

// externName is the name of an import or export with its attributes.
type externName struct {
	Name, Implements string
	kind             nameKind
	resource         string // of a constructor, method or static function
	label            string // of a method or static function
}

// annotations are the prefixes of names that belong to a resource.
var annotations = map[string]nameKind{"constructor": constructorName, "method": methodName, "static": staticName}

const (
	label   = `(?:[a-z][0-9a-z]*|[A-Z][0-9A-Z]*)(?:-(?:[0-9a-z]+|[0-9A-Z]+))*`
	words   = `[a-z][0-9a-z]*(?:-[0-9a-z]+)*`
	number  = `(?:0|[1-9][0-9]*)`
	dotted  = `[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*`
	version = number + `\.` + number + `\.` + number + `(?:-` + dotted + `)?(?:\+` + dotted + `)?`
	// canonical is a version without what may differ between compatible ones.
	canonical = `[1-9][0-9]*|0\.[1-9][0-9]*|0\.0\.` + number
)

var (
	versionSyntax   = lazyregexp.New(`^` + version + `$`)
	labelSyntax     = lazyregexp.New(`^` + label + `$`)
	interfaceSyntax = lazyregexp.New(`^` + words + `:` + words + `/` + label +
		`(?:@(?:` + version + `|` + canonical + `))?$`)
)

func checkLabel(r *reader, what, name string) {
	if !labelSyntax().MatchString(name) {
		r.Fail("%s %q is not in kebab case: words of lower or upper case letters and digits, with hyphens between them",
			what, name)
	}
}

// split finds the parts of a name with an annotation. It reports false if the name has other parts.
func (n *externName) split() bool {
	prefix, rest, _ := strings.Cut(strings.TrimPrefix(n.Name, "["), "]")
	var known bool
	if n.kind, known = annotations[prefix]; !known {
		return false
	}
	if n.kind == constructorName {
		n.resource = rest
		return true
	}
	n.resource, n.label, known = strings.Cut(rest, ".")
	return known
}

// parse checks the syntax of a name and finds its parts.
func (n *externName) parse(r *reader) {
	switch {
	case strings.HasPrefix(n.Name, "["):
		if !n.split() {
			r.Fail("name %q is not one of [constructor]resource, [method]resource.function and "+
				"[static]resource.function", n.Name)
		}
		checkLabel(r, "the name", n.resource)
		if n.kind != constructorName {
			checkLabel(r, "the name", n.label)
		}
	case strings.ContainsAny(n.Name, ":/@"):
		if !interfaceSyntax().MatchString(n.Name) {
			r.Fail("name %q is not of the form namespace:package/interface@version", n.Name)
		}
		n.kind = interfaceName
	default:
		checkLabel(r, "the name", n.Name)
	}
}

// unique returns what must differ between the names of a scope.
func (n *externName) unique() string {
	key := strings.ToLower(n.Name)
	if n.kind == methodName || n.kind == staticName {
		_, key, _ = strings.Cut(key, "]")
		if strings.EqualFold(n.resource, n.label) {
			key = strings.ToLower(n.label)
		}
	}
	return key
}

// Attributes of names.
const (
	attributeImplements    = 0
	attributeVersionSuffix = 1
	attributeExternalID    = 2
)

// readExternName reads the name of an import or export.
func readExternName(r *reader) externName {
	kind := r.Byte()
	n := externName{Name: r.Name()}
	n.parse(r)
	switch kind {
	case 0, 1:
	case 2:
		n.readAttributes(r)
	default:
		r.Fail("kind %#x of a name does not exist", kind)
	}
	return n
}

func (n *externName) readAttributes(r *reader) {
	seen := map[byte]bool{}
	for range r.Count("attributes of a name", maxEntries) {
		attribute := r.Byte()
		if seen[attribute] {
			r.Fail("name %q has attribute %#x twice", n.Name, attribute)
		}
		seen[attribute] = true
		value := r.Name()
		switch attribute {
		case attributeImplements:
			if !interfaceSyntax().MatchString(value) || n.kind != plainName {
				r.Fail("attribute implements is for plain names, and says an interface: name %q has %q", n.Name, value)
			}
			n.Implements = value
		case attributeVersionSuffix:
			if _, version, _ := strings.Cut(n.Name, "@"); !versionSyntax().MatchString(version + value) {
				r.Fail("name %q with the version suffix %q is not a version", n.Name, value)
			}
		case attributeExternalID:
		default:
			r.Fail("attribute %#x of a name does not exist", attribute)
		}
	}
}

// names are the imports or exports of a component or instance, or of the type of one.
type names struct {
	seen      map[string]string // names by what must differ
	resources map[string]*Resource
}

// add checks that an import or export may have its name. what names the kind of item.
func (n *names) add(r *reader, what string, name externName, e *Extern) {
	if n.seen == nil {
		n.seen, n.resources = map[string]string{}, map[string]*Resource{}
	}
	key := name.unique()
	if before, ok := n.seen[key]; ok {
		r.Fail("%s name %q conflicts with %q before it", what, name.Name, before)
	}
	n.seen[key] = name.Name
	switch {
	case name.Implements != "" && e.Sort != SortInstance:
		r.Fail("%s %q has the attribute implements, which only instances can have", what, name.Name)
	case name.resource != "":
		n.checkFunction(r, name, e)
	case e.Resource != nil:
		n.resources[name.Name] = e.Resource
	}
}

// checkFunction checks a function that belongs to a resource by its name.
func (n *names) checkFunction(r *reader, name externName, e *Extern) {
	if e.Sort != SortFunc {
		r.Fail("%q is a %s, and its name is that of a function", name.Name, e.Sort)
	}
	resource, ok := n.resources[name.resource]
	if !ok {
		r.Fail("%q belongs to the resource %q, which is not imported or exported before it", name.Name, name.resource)
	}
	switch name.kind {
	case constructorName:
		result := e.Func.Result
		if result != nil && result.Kind == KindResult {
			result = result.Elem
		}
		if result == nil || result.Kind != KindOwn || result.Resource != resource {
			r.Fail("%q does not return the resource, alone or as a result", name.Name)
		}
	case methodName:
		if p := e.Func.Params; len(p) == 0 || p[0].Name != "self" || p[0].Type.Kind != KindBorrow ||
			p[0].Type.Resource != resource {
			r.Fail("%q has not the parameter self, a borrowed handle of the resource, as its first one", name.Name)
		}
	}
}

// checkLabels checks the names of fields, cases, labels or parameters.
func checkLabels(r *reader, what string, fields []Field) {
	seen := make(map[string]bool, len(fields))
	for _, f := range fields {
		checkLabel(r, what, f.Name)
		key := strings.ToLower(f.Name)
		if seen[key] {
			r.Fail("%s %q has the name of one before it", what, f.Name)
		}
		seen[key] = true
	}
}

// interfaceName returns the name of an instance's interface: its own name if it has no other.
func (e *Extern) interfaceName() string {
	if e.Implements != "" {
		return e.Implements
	}
	return e.Name
}
