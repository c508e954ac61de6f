package console

import "slices"

// Role is a set of rights. Each role includes the previous ones.
type Role string

// Roles.
const (
	Viewer   Role = "viewer"   // reads
	Approver Role = "approver" // answers questions
	Admin    Role = "admin"    // changes plugins, tokens and logins, reloads the configuration, calls tools
)

// Roles lists all roles, lowest first.
var Roles = []Role{Viewer, Approver, Admin}

// nobody is the role without a login.
const nobody Role = ""

// includes reports whether r has the rights of needed.
func (r Role) includes(needed Role) bool {
	return slices.Index(Roles, r) >= slices.Index(Roles, needed)
}
