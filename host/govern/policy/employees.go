package policy

import "strings"

// employees are the employee IDs of users in the HR tools, by user and by e-mail address (foldAddress).
type employees struct{ byUser, byEmail map[string]string }

// add adds an entry. It reports false if the address has another entry.
func (e employees) add(user, id string) bool {
	e.byUser[user] = id
	if !strings.Contains(user, "@") {
		return true
	}
	address := foldAddress(user)
	_, twice := e.byEmail[address]
	e.byEmail[address] = id
	return !twice
}

// of returns the caller's employee ID, or "" if the policy has none. The user's entry precedes that of the address.
func (e employees) of(c *Call) string {
	if id := e.byUser[c.User]; id != "" && c.User != "" {
		return id
	}
	return e.byEmail[foldAddress(c.Email)]
}

// foldAddress makes addresses comparable that differ in the case of ASCII letters. Unicode's rules would make others
// equal, such as the Kelvin sign and k.
func foldAddress(address string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' {
			r += 'a' - 'A'
		}
		return r
	}, address)
}
