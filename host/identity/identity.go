// Package identity checks names of people and tenants (Check), reads the groups in a claim of a token (Groups) and
// builds unambiguous keys from several names (Key).
package identity

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/hako-run/hako/internal/visible"
)

// maxName is the longest name of a person, a group or a tenant, in bytes.
const maxName = 256

// Check returns an error for an untrusted name of a person, a group or a tenant that is empty or too long, starts or
// ends with a blank, or contains invisible characters or characters that change the direction of text. Otherwise two
// different names could look the same.
func Check(name string) error {
	switch {
	case name == "":
		return errors.New("the name is empty")
	case len(name) > maxName:
		return fmt.Errorf("the name has more than %d bytes", maxName)
	case !utf8.ValidString(name), strings.ContainsFunc(name, visible.Hidden), visible.Text(name) != name:
		return fmt.Errorf("the name %q has characters that are not visible", visible.Text(name))
	case strings.TrimSpace(name) != name:
		return fmt.Errorf("the name %q begins or ends with a space", name)
	}
	return nil
}

// maxGroups bounds the groups of a person.
const maxGroups = 200

// Groups returns the groups in a claim, a list or one string. Values that are not valid names are dropped, and those
// beyond the first 200.
func Groups(claim any) []string {
	list, ok := claim.([]any)
	if !ok {
		list = []any{claim}
	}
	var groups []string
	for _, item := range list {
		if name, ok := item.(string); ok && Check(name) == nil && len(groups) < maxGroups {
			groups = append(groups, name)
		}
	}
	return groups
}

// Key joins parts injectively: different lists give different keys, because the length precedes each part.
func Key(parts ...string) string {
	size := 0
	for _, part := range parts {
		size += len(part) + 4
	}
	key := make([]byte, 0, size)
	for _, part := range parts {
		key = strconv.AppendInt(key, int64(len(part)), 10)
		key = append(key, ':')
		key = append(key, part...)
	}
	return string(key)
}
