package manifest

import (
	"net/url"
	"slices"

	"github.com/hako-run/hako/internal/strictyaml"
)

// retired checks that what is retired is one name each, and not on offer.
func (v *validation) retired(m *Manifest) {
	items(v, "retired", m.Retired, func(r Retired) (string, string) {
		return "", r.Tool + "\x00" + r.Prompt + "\x00" + r.Resource
	})
	for i, r := range m.Retired {
		path := strictyaml.Index("retired", i)
		v.retiredName(path, r)
		v.required(path+".instead", r.Instead, maxReason)
		if m.offers(r) {
			v.Add(path, "is also in tools: remove it in one of them")
		}
	}
}

func (v *validation) retiredName(path string, r Retired) {
	stated := 0
	for key, name := range map[string]string{"tool": r.Tool, "prompt": r.Prompt, "resource": r.Resource} {
		if name == "" {
			continue
		}
		stated++
		if key != "resource" {
			v.match(path+"."+key, name, toolName, `1 to 64 of A-Z, a-z, 0-9, "_" and "-"`)
		} else if u, err := url.Parse(name); err != nil || !isASCII(name) || !u.IsAbs() {
			v.Add(path+"."+key, `must be an absolute URI in ASCII, such as "notes://today"`)
		}
	}
	if stated != 1 {
		v.Add(path, "names %d things: name one tool, prompt or resource", stated)
	}
}

// offers reports whether the name that r retires is still on offer.
func (m *Manifest) offers(r Retired) bool {
	return r.Tool != "" && slices.ContainsFunc(m.Tools, func(t Tool) bool { return t.Name == r.Tool }) ||
		r.Prompt != "" && slices.ContainsFunc(m.Prompts, func(p Prompt) bool { return p.Name == r.Prompt }) ||
		r.Resource != "" && slices.ContainsFunc(m.Resources, func(x Resource) bool { return x.URI == r.Resource })
}
