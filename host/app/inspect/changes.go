package inspect

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/registry/lock"
	"github.com/hako-run/hako/host/registry/signature"
)

// Changes describes in plain words how a version of a plugin differs from the version before: whether it is older, who
// signed each, and what is different about permissions, offers, schemas and the configuration. Lines begin with "!" for
// a warning, "+" for what is new, "-" for what is gone, "~" for what has changed, and "=" if nothing has.
func Changes(before, after *manifest.Manifest, signerBefore, signer signature.Signer, locale string) []string {
	var list []string
	if order, ok := lock.Compare(after.Version, before.Version); ok && order < 0 {
		list = append(list, fmt.Sprintf("! It is a downgrade: %s is older than %s.", after.Version, before.Version))
	}
	if signer != signerBefore {
		list = append(list, fmt.Sprintf("! Another signer: %s; before: %s", signer, signerBefore))
	}
	offered := offerChanges(before, after, locale)
	if len(offered) == 0 {
		offered = []string{"= It asks for the same permissions and offers the same tools."}
	}
	return append(list, offered...)
}

// offerChanges describes how the manifests of two versions of a plugin differ.
func offerChanges(before, after *manifest.Manifest, locale string) []string {
	var list []string
	add := func(format string, lines []string) {
		for _, line := range lines {
			list = append(list, fmt.Sprintf(format, line))
		}
	}
	add("+ permission: %s", grant.Additions(before.Permissions, after.Permissions, locale))
	add("- permission that it does not ask for any more: %s",
		grant.Additions(after.Permissions, before.Permissions, locale))
	add("+ %s", missing(Offers(before), Offers(after)))
	add("- %s", missing(Offers(after), Offers(before)))
	for _, t := range after.Tools {
		i := slices.IndexFunc(before.Tools, func(b manifest.Tool) bool { return b.Name == t.Name })
		if i >= 0 {
			add("~ tool "+t.Name+": %s", toolChanges(&before.Tools[i], &t, locale))
		}
	}
	keys := func(m *manifest.Manifest) []string {
		var keys []string
		for _, key := range slices.Sorted(maps.Keys(m.Config)) {
			if m.Config[key].Required {
				key += ", which must be set"
			}
			keys = append(keys, key)
		}
		return keys
	}
	add("+ configuration key %s", missing(keys(before), keys(after)))
	add("- configuration key %s", missing(keys(after), keys(before)))
	return list
}

// missing returns the elements of list that are not in known.
func missing(known, list []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return slices.Contains(known, s) })
}

func toolChanges(before, after *manifest.Tool, locale string) []string {
	var list []string
	if text := after.Description.In(locale); text != before.Description.In(locale) {
		list = append(list, fmt.Sprintf("models now read %q about it", text))
	}
	list = append(list, schemaChanges("argument", before.InputSchema, after.InputSchema)...)
	list = append(list, schemaChanges("result", before.OutputSchema, after.OutputSchema)...)
	return list
}

// objectSchema is the part of a JSON Schema of type object that schemaChanges compares in detail.
type objectSchema struct {
	Properties map[string]any `json:"properties"`
	Required   []string       `json:"required"`
}

// schemaChanges compares the properties of two schemas of type object; what names one of them.
func schemaChanges(what string, before, after json.RawMessage) []string {
	var old, now any
	var was, is objectSchema
	// Schemas of a manifest are valid; one that is no object has no properties.
	_, _ = json.Unmarshal(before, &old), json.Unmarshal(after, &now)
	if reflect.DeepEqual(old, now) {
		return nil
	}
	_, _ = json.Unmarshal(before, &was), json.Unmarshal(after, &is)
	var list []string
	add := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	for _, name := range slices.Sorted(maps.Keys(is.Properties)) {
		property, existed := was.Properties[name]
		required, wasRequired := slices.Contains(is.Required, name), slices.Contains(was.Required, name)
		switch {
		case !existed && required:
			add("+ %s %s (%s), which is required", what, name, typeOf(is.Properties[name]))
			continue
		case !existed:
			add("+ %s %s (%s)", what, name, typeOf(is.Properties[name]))
			continue
		case required && !wasRequired:
			add("%s %s is now required", what, name)
		case !required && wasRequired:
			add("%s %s is not required any more", what, name)
		}
		switch {
		case reflect.DeepEqual(property, is.Properties[name]):
		case typeOf(property) != typeOf(is.Properties[name]):
			add("%s %s is now %s, and was %s", what, name, typeOf(is.Properties[name]), typeOf(property))
		default:
			add("%s %s is described in another way, or has other rules", what, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(was.Properties)) {
		if _, ok := is.Properties[name]; !ok {
			add("- %s %s", what, name)
		}
	}
	if list == nil {
		add("the rules for its %ss are others", what)
	}
	return list
}

// typeOf returns the type that a schema names.
func typeOf(schema any) string {
	object, _ := schema.(map[string]any)
	switch t := object["type"].(type) {
	case string:
		return t
	case []any:
		var types []string
		for _, name := range t {
			types = append(types, fmt.Sprint(name))
		}
		return strings.Join(types, " or ")
	}
	return "any type"
}
