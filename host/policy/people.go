package policy

import (
	"slices"
	"strings"

	"github.com/hako-run/hako/internal/strictyaml"
)

// People are users and groups. They are two lists, because users and groups have their names from different places: a group that somebody
// names after a user is not that user, and a user whose name is that of a group is not in it.
type People struct {
	Users  []string `json:"users,omitempty"`
	Groups []string `json:"groups,omitempty"`
}

// IsZero reports whether nobody is named.
func (p People) IsZero() bool { return len(p.Users) == 0 && len(p.Groups) == 0 }

// Has reports whether the user is among them, by name or by one of its groups.
func (p People) Has(user string, groups []string) bool {
	return user != "" && slices.Contains(p.Users, user) || intersects(p.Groups, groups)
}

// In names them in a language, a BCP 47 tag: Japanese, else English.
func (p People) In(language string) string {
	group := "the group "
	if strings.HasPrefix(strings.ToLower(language), "ja") {
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
		v.Problem("must say which names are users and which are groups: write {users: [mori@example.com], groups: [hr-admins]}")
		return
	}
	v.Object(strictyaml.Fields{"users": strictyaml.Strings(&p.Users), "groups": strictyaml.Strings(&p.Groups)})
}
