package manifest

import (
	"net/url"

	"github.com/yosida95/uritemplate/v3"

	"github.com/hako-run/hako/internal/lazyregexp"
	"github.com/hako-run/hako/internal/strictyaml"
)

// scheme starts an absolute URI, RFC 3986 section 3.1.
var scheme = lazyregexp.New(`^[A-Za-z][A-Za-z0-9+.-]*:`)

func (v *validation) resources(resources []Resource) {
	items(v, "resources", resources, func(r Resource) (string, string) { return ".uri", r.URI })
	for i, r := range resources {
		path := strictyaml.Index("resources", i)
		if u, err := url.Parse(r.URI); err != nil || !isASCII(r.URI) || !u.IsAbs() {
			v.Add(path+".uri", `must be an absolute URI in ASCII, such as "notes://today"`)
		}
		v.resource(path, r.Name, r.Title, r.Description, r.MIMEType)
	}
}

func (v *validation) resourceTemplates(templates []ResourceTemplate) {
	items(v, "resourceTemplates", templates, func(r ResourceTemplate) (string, string) {
		return ".uriTemplate", r.URITemplate
	})
	for i, r := range templates {
		path := strictyaml.Index("resourceTemplates", i)
		t, err := uritemplate.New(r.URITemplate)
		switch {
		case err != nil || !isASCII(r.URITemplate) || !scheme().MatchString(r.URITemplate):
			v.Add(path+".uriTemplate", `must be an absolute URI template in ASCII (RFC 6570), such as "notes://{day}"`)
		case len(t.Varnames()) == 0:
			v.Add(path+".uriTemplate", "has no variable: list it under resources instead")
		}
		v.resource(path, r.Name, r.Title, r.Description, r.MIMEType)
	}
}

func (v *validation) resource(path, name string, title, description Text, media string) {
	if name == "" {
		v.Add(path+".name", "is missing: write a short name")
	}
	v.line(path+".name", name, maxTitle)
	v.text(path+".title", title, maxTitle)
	v.text(path+".description", description, maxDescription)
	v.optional(path+".mimeType", media, mimeType, `a media type such as "text/plain"`)
}

// isASCII reports whether s consists of printable ASCII without spaces.
func isASCII(s string) bool {
	for _, c := range []byte(s) {
		if c <= ' ' || c >= 0x7F {
			return false
		}
	}
	return true
}
