package tool

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/hako-run/hako/internal/visible"
)

// packageDocs are the comments of a WIT package, as wit-component writes them. Functions that worlds export are among
// the Funcs, except if the world imports another one of that name; interfaces likewise.
type packageDocs struct {
	Worlds map[string]struct {
		interfaceDocs
		FuncExports      map[string]comment       `json:"func_exports"`
		Interfaces       map[string]interfaceDocs `json:"interfaces"`
		InterfaceExports map[string]interfaceDocs `json:"interface_exports"`
	} `json:"worlds"`
	Interfaces map[string]interfaceDocs `json:"interfaces"`
}

type interfaceDocs struct {
	Funcs map[string]comment `json:"funcs"`
}

// comment is the comment of a function: an object, in version 0 of the format a text.
type comment string

// UnmarshalJSON implements json.Unmarshaler.
func (c *comment) UnmarshalJSON(data []byte) error {
	if data[0] != '{' {
		return json.Unmarshal(data, (*string)(c))
	}
	var object struct {
		Docs string `json:"docs"`
	}
	err := json.Unmarshal(data, &object)
	*c = comment(object.Docs)
	return err
}

// The most bytes of all comments, and of one that becomes a description. Larger ones are not used.
const (
	maxDocs    = 1 << 20
	maxComment = 4 << 10
)

// readDocs reads component.Component.Docs: a version and JSON. What cannot be read is ignored, because comments only
// describe.
func readDocs(section []byte) *packageDocs {
	docs := &packageDocs{}
	if len(section) == 0 || len(section) > maxDocs || section[0] > 1 || json.Unmarshal(section[1:], docs) != nil {
		return &packageDocs{}
	}
	return docs
}

// of returns the comment of an exported function. It is empty if there is none, or if worlds of the package have
// different ones: the comments do not say of which world the component is.
func (d *packageDocs) of(export string) string {
	iface, function, inInterface := strings.Cut(export, "#")
	if _, name, ok := strings.Cut(iface, "/"); inInterface && ok {
		name, _, _ = strings.Cut(name, "@")
		return d.Interfaces[name].Funcs[function].text()
	}
	found := ""
	for _, world := range d.Worlds {
		c := cmp.Or(world.FuncExports[export], world.Funcs[export])
		if inInterface { // an interface that the world defines
			c = cmp.Or(world.InterfaceExports[iface].Funcs[function], world.Interfaces[iface].Funcs[function])
		}
		switch text := c.text(); {
		case text == "", text == found:
		case found != "":
			return ""
		default:
			found = text
		}
	}
	return found
}

// text returns the comment as a description.
func (c comment) text() string {
	text := strings.TrimSpace(visible.Clean(string(c)))
	if len(text) > maxComment {
		return ""
	}
	return text
}
