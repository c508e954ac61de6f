package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/hako-run/hako/internal/strictyaml"
)

// Changes lists the keys whose values differ in next, sorted: settings, and what is below the other keys of the file,
// where entries of lists go by their names. Values are not in it, so it may be shown.
func (c *Config) Changes(next *Config) []string {
	changed := map[string]bool{}
	for i, s := range c.settings {
		if !reflect.DeepEqual(s.raw(), next.settings[i].raw()) {
			changed[s.key] = true
		}
	}
	for _, key := range slices.Concat(slices.Collect(maps.Keys(c.leaves)), slices.Collect(maps.Keys(next.leaves))) {
		if c.leaves[key] != next.leaves[key] {
			changed[key] = true
		}
	}
	return slices.Sorted(maps.Keys(changed))
}

// Keep makes the settings among the keys what they are in from.
func (c *Config) Keep(from *Config, keys []string) {
	for i, s := range c.settings {
		if slices.Contains(keys, s.key) {
			reflect.ValueOf(s.value).Elem().Set(reflect.ValueOf(from.settings[i].raw()))
			c.origins[s.key] = from.origins[s.key]
		}
	}
}

// Below reports whether a key is outer or one below it.
func Below(key, outer string) bool {
	rest, ok := strings.CutPrefix(key, outer)
	return ok && (rest == "" || rest[0] == '.')
}

// leavesOf are the single values in a file that has been read, as JSON, by key. Settings are not among them.
func (c *Config) leavesOf(text []byte) map[string]string {
	var document any
	_ = strictyaml.Read(text, maxFile, func(v strictyaml.Value) {
		decoder := json.NewDecoder(bytes.NewReader(v.JSON()))
		decoder.UseNumber()
		_ = decoder.Decode(&document) // it has been read without an error
	}, nil)
	f := flattener{leaves: map[string]string{}, settings: map[string]bool{}}
	for _, s := range c.settings {
		f.settings[s.key] = true
	}
	f.add("", document)
	return f.leaves
}

type flattener struct {
	leaves   map[string]string
	settings map[string]bool
}

func (f flattener) add(key string, value any) {
	if f.settings[key] {
		return
	}
	switch value := value.(type) {
	case map[string]any:
		for name, v := range value {
			f.add(strings.TrimPrefix(key+"."+name, "."), v)
		}
		return
	case []any:
		if names := namesOf(value); names != nil {
			for i, v := range value {
				f.add(key+"."+names[i], v)
			}
			f.leaves[key] = strings.Join(names, "\x00") // their order counts
			return
		}
	}
	text, err := json.Marshal(value)
	if err != nil {
		text = fmt.Append(nil, value)
	}
	if key != "" {
		f.leaves[key] = string(text)
	}
}

// namesOf are the names of the entries of a list, nil if not all have one.
func namesOf(list []any) []string {
	var names []string
	for _, entry := range list {
		fields, _ := entry.(map[string]any)
		name := ""
		for _, naming := range []string{"model", "name", "url"} { // the last one counts
			if text, ok := fields[naming].(string); ok {
				name = text
			}
		}
		if name == "" {
			return nil
		}
		names = append(names, name)
	}
	return names
}
