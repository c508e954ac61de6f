package identity_test

import (
	"fmt"
	"testing"

	"github.com/hako-run/hako/host/identity"
)

// TestHostileIdentities: different lists of names have different keys.
func TestHostileIdentities(t *testing.T) {
	t.Parallel()
	names := []string{"", "a", "b", "\x00", ":", "1:a", "0:", "a\x00b", "1:", "10:", "a:b", "/", "|"}
	keys := map[string]string{}
	for _, one := range names {
		t.Run(fmt.Sprintf("%q", one), func(t *testing.T) {
			for _, two := range names {
				for _, list := range [][]string{{one, two}, {one + two}, {one, two, one}, {one + "\x00" + two, one}} {
					what := fmt.Sprintf("%q", list)
					if other, ok := keys[identity.Key(list...)]; ok && other != what {
						t.Errorf("%s has the key of %s", what, other)
					}
					keys[identity.Key(list...)] = what
				}
			}
		})
	}
}
