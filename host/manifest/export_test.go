package manifest

import (
	"slices"
	"strings"
)

// Interfaces returns the interfaces that components may import.
func Interfaces() []string {
	var names []string
	for _, p := range witPackages {
		for name := range strings.FieldsSeq(p.interfaces) {
			names = append(names, p.name+"/"+name)
		}
	}
	slices.Sort(names)
	return names
}
