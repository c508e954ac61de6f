package policy

import (
	"slices"
	"strings"

	"github.com/hako-run/hako/internal/lang"
	"github.com/hako-run/hako/internal/strictyaml"
)

// People are users and groups. They are separate lists, because their names come from different sources: a group with
// the name of a user is not that user.
type People struct {
	Users  []string `json:"users,omitempty"`
	Groups []string `json:"groups,omitempty"`
}

// IsZero reports whether both lists are empty.
func (p People) IsZero() bool { return len(p.Users) == 0 && len(p.Groups) == 0 }

// Has reports whether the user is included, by name or by a group.
func (p People) Has(user string, groups []string) bool {
	return user != "" && slices.Contains(p.Users, user) || intersects(p.Groups, groups)
}

// In returns the names as text in a language, a BCP 47 tag: Japanese, or else English.
func (p People) In(language string) string {
	group := "the group "
	if lang.Japanese(language) {
		group = "グループ "
	}
	names := slices.Clone(p.Users)
	for _, name := range p.Groups {
		names = append(names, group+name)
	}
	return strings.Join(names, ", ")
}

// ReadPeople reads the two lists.
func ReadPeople(v strictyaml.Value, p *People) {
	if v.IsList() {
		v.Problem("must say which names are users and which are groups: " +
			"write {users: [mori@example.com], groups: [hr-admins]}")
		return
	}
	v.Object(strictyaml.Fields{"users": strictyaml.Strings(&p.Users), "groups": strictyaml.Strings(&p.Groups)})
}
