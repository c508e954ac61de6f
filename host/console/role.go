package console

import "slices"

// Role says what somebody may do. Each includes those before it.
type Role string

// Roles.
const (
	Viewer   Role = "viewer"   // sees
	Approver Role = "approver" // answers questions
	Admin    Role = "admin"    // approves and revokes plugins, reloads the configuration, calls tools
)

// Roles lists them all, from the least to the most.
var Roles = []Role{Viewer, Approver, Admin}

// nobody is the role of who is not logged in.
const nobody Role = ""

// includes reports whether who has the role may do what needs the other.
func (r Role) includes(needed Role) bool {
	return slices.Index(Roles, r) >= slices.Index(Roles, needed)
}
