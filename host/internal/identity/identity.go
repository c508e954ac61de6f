// Package identity keeps apart who is who: it checks names of people and tenants, and makes keys of several names.
package identity

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/hako-run/hako/internal/visible"
)

// MaxName is the longest name of a person, a group or a tenant, in bytes.
const MaxName = 256

// Check returns what is wrong with the name of a person, a group or a tenant that came from outside: one that is too long, that
// begins or ends with a blank, or has characters that nobody sees or that change the direction of text. Two names that
// look the same must not be two people.
func Check(name string) error {
	switch {
	case name == "":
		return errors.New("the name is empty")
	case len(name) > MaxName:
		return fmt.Errorf("the name has more than %d bytes", MaxName)
	case !utf8.ValidString(name), strings.ContainsFunc(name, visible.Hidden), visible.Text(name) != name:
		return fmt.Errorf("the name %q has characters that are not visible", visible.Text(name))
	case strings.TrimSpace(name) != name:
		return fmt.Errorf("the name %q begins or ends with a blank", name)
	}
	return nil
}

// Key makes one text of several, a different one of different ones whatever is in them: each part has its length before it.
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
