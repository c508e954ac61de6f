// Package typescript declares tools as TypeScript functions, which models read better and shorter than JSON Schema.
//
// Declare makes the declaration of a Tool. Its types may accept more than the schemas: what TypeScript cannot say, and
// what is beyond the limits of depth and size, is any.
package typescript

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// Limits of a declaration: characters of the comment about the tool and about an argument, bytes from which types are
// any, the nesting of types, and the bytes of schemas that are read, some of them several times.
const (
	maxAbout       = 400
	maxMemberAbout = 160
	maxTypes       = 3000
	maxDepth       = 5
	maxRead        = 256 << 10
)

// Tool is a tool to declare. Its texts are in one language.
type Tool struct {
	Name, Title, Description string
	// Input and Output are JSON Schemas. Output may be nil.
	Input, Output json.RawMessage
	// ReadOnly reports whether the tool changes nothing.
	ReadOnly bool
}

// Declare returns a tool as a member of the object tools: a comment and one line.
func Declare(tool *Tool) string {
	var about []string
	for _, text := range []string{tool.Title, tool.Description} {
		if text = strings.TrimSpace(text); text != "" {
			about = append(about, strings.TrimSuffix(text, "."))
		}
	}
	if tool.ReadOnly {
		about = append(about, "It changes nothing")
	}
	d := new(declaration)
	if text := comment(strings.Join(about, ". "), maxAbout); text != "" {
		d.WriteString(text + "\n")
	}
	d.WriteString("tools")
	if identifier.MatchString(tool.Name) {
		d.WriteString("." + tool.Name)
	} else {
		d.WriteString("[" + quote(tool.Name) + "]")
	}
	d.limit = d.Len() + maxTypes
	d.WriteString("(args: ")
	d.root = tool.Input
	d.addType(tool.Input, 0)
	d.WriteString("): Promise<")
	d.limit = d.Len() + maxTypes
	d.root = tool.Output
	d.addType(tool.Output, 0)
	d.WriteString(">")
	return d.String()
}

var identifier = regexp.MustCompile(`^[A-Za-z_$][\w$]*$`)

// comment returns a text as a comment in one line, empty for no text.
func comment(text string, most int) string {
	text = strings.Join(strings.Fields(strings.ReplaceAll(text, "*/", "* /")), " ")
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "…"
	}
	if text == "" {
		return ""
	}
	return "/** " + text + " */"
}

func quote(text string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(text) // a string can be encoded
	return strings.TrimSpace(b.String())
}

// declaration is one that is being written.
type declaration struct {
	strings.Builder
	// root is the schema to which references refer. Types that begin after limit bytes, or after so much has been read,
	// are any.
	root        json.RawMessage
	limit, read int
}

func (d *declaration) full() bool { return d.Len() > d.limit || d.read > maxRead }

// schema has the keywords that have a meaning in TypeScript.
type schema struct {
	Ref         string            `json:"$ref"`
	Const       json.RawMessage   `json:"const"`
	Enum        []json.RawMessage `json:"enum"`
	AnyOf       []json.RawMessage `json:"anyOf"`
	OneOf       []json.RawMessage `json:"oneOf"`
	AllOf       []json.RawMessage `json:"allOf"`
	Type        json.RawMessage   `json:"type"`
	Items       json.RawMessage   `json:"items"`
	Properties  json.RawMessage   `json:"properties"`
	Required    []string          `json:"required"`
	Additional  json.RawMessage   `json:"additionalProperties"`
	Description string            `json:"description"`
}

// addType writes the type of a schema.
func (d *declaration) addType(raw json.RawMessage, depth int) {
	var s schema
	if d.read += len(raw); d.full() || depth > maxDepth || json.Unmarshal(raw, &s) != nil {
		d.WriteString("any")
		return
	}
	var types []string
	if json.Unmarshal(s.Type, &types) != nil {
		types = make([]string, 1)
		_ = json.Unmarshal(s.Type, &types[0]) // a type that is no text is none
	}
	alternatives := s.AnyOf
	if alternatives == nil {
		alternatives = s.OneOf
	}
	switch {
	case s.Ref != "":
		if d.read += len(d.root) * strings.Count(s.Ref, "/"); d.full() {
			d.WriteString("any")
		} else {
			d.addType(lookup(d.root, s.Ref), depth+1)
		}
	case s.Const != nil:
		d.addValue(s.Const)
	case s.Enum != nil:
		d.join(len(s.Enum), " | ", func(i int) { d.addValue(s.Enum[i]) })
	case alternatives != nil:
		d.join(len(alternatives), " | ", func(i int) { d.addType(alternatives[i], depth+1) })
	case s.AllOf != nil && s.Properties == nil:
		before, after := "(", ")"
		if len(s.AllOf) == 1 {
			before, after = "", ""
		}
		d.join(len(s.AllOf), " & ", func(i int) {
			d.WriteString(before)
			d.addType(s.AllOf[i], depth+1)
			d.WriteString(after)
		})
	default:
		d.join(len(types), " | ", func(i int) { d.addNamed(types[i], &s, depth) })
	}
}

// join writes parts with separators.
func (d *declaration) join(n int, separator string, part func(i int)) {
	if n == 0 {
		d.WriteString("never")
	}
	for i := range n {
		if i > 0 {
			d.WriteString(separator)
			if d.full() {
				d.WriteString("any")
				return
			}
		}
		part(i)
	}
}

// addValue writes a value as a type.
func (d *declaration) addValue(raw json.RawMessage) {
	var compact bytes.Buffer
	if json.Compact(&compact, raw) != nil || compact.Len() > maxMemberAbout {
		d.WriteString("any")
		return
	}
	d.Write(compact.Bytes())
}

// addNamed writes one of JSON Schema's types.
func (d *declaration) addNamed(name string, s *schema, depth int) {
	switch name {
	case "string", "number", "boolean", "null":
		d.WriteString(name)
	case "integer":
		d.WriteString("number")
	case "array":
		d.WriteString("Array<")
		if s.Items == nil {
			d.WriteString("any")
		} else {
			d.addType(s.Items, depth+1)
		}
		d.WriteString(">")
	default:
		if name == "object" || s.Properties != nil {
			d.addObject(s, depth)
		} else {
			d.WriteString("any")
		}
	}
}

func (d *declaration) addObject(s *schema, depth int) {
	members := membersOf(s.Properties)
	additional := string(bytes.TrimSpace(s.Additional))
	others := strings.HasPrefix(additional, "{")
	if len(members) == 0 && !others {
		if additional == "false" {
			d.WriteString("{}")
		} else {
			d.WriteString("Record<string, any>")
		}
		return
	}
	d.WriteString("{ ")
	for i, m := range members {
		if i > 0 {
			d.WriteString("; ")
		}
		if d.full() {
			d.WriteString("[more: string]: any")
			others = false
			break
		}
		d.addMember(m, slices.Contains(s.Required, m.name), depth)
	}
	if others {
		if len(members) > 0 {
			d.WriteString("; ")
		}
		d.WriteString("[name: string]: ")
		d.addType(s.Additional, depth+1)
	}
	d.WriteString(" }")
}

// member is a property of an object.
type member struct {
	name   string
	schema json.RawMessage
}

// membersOf returns the members of a JSON object in their order.
func membersOf(object json.RawMessage) (list []member) {
	decoder := json.NewDecoder(bytes.NewReader(object))
	if start, err := decoder.Token(); err != nil || start != json.Delim('{') {
		return nil
	}
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return list
		}
		m := member{name: name.(string)} // the names of an object's members are strings
		if decoder.Decode(&m.schema) != nil {
			return list
		}
		list = append(list, m)
	}
	return list
}

func (d *declaration) addMember(m member, required bool, depth int) {
	var described struct {
		Description string `json:"description"`
	}
	_ = json.Unmarshal(m.schema, &described) // a description that is no text does not count
	if about := comment(described.Description, maxMemberAbout); about != "" {
		d.WriteString(about + " ")
	}
	if identifier.MatchString(m.name) {
		d.WriteString(m.name)
	} else {
		d.WriteString(quote(m.name))
	}
	if !required {
		d.WriteString("?")
	}
	d.WriteString(": ")
	d.addType(m.schema, depth+1)
}

// lookup returns the schema at a reference within root, as in "#/$defs/place"; nil if there is none.
func lookup(root json.RawMessage, reference string) json.RawMessage {
	path, ok := strings.CutPrefix(reference, "#")
	if !ok {
		return nil
	}
	for name := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
		if name == "" {
			continue
		}
		var object map[string]json.RawMessage
		if json.Unmarshal(root, &object) != nil {
			return nil
		}
		root = object[strings.NewReplacer("~1", "/", "~0", "~").Replace(name)]
	}
	return root
}
