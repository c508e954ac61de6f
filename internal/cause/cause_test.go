package cause

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"testing"
)

func TestCause(t *testing.T) {
	t.Parallel()
	reason := errors.New("reason")
	path := fmt.Errorf("open it: %w", &fs.PathError{Op: "open", Path: "/secret", Err: reason})
	address := fmt.Errorf("get it: %w", &url.Error{Op: "Get", URL: "https://secret.example", Err: reason})
	for name, test := range map[string]struct{ got, want error }{
		"a path":                {WithoutPath(path), reason},
		"an address":            {WithoutURL(address), reason},
		"another error":         {WithoutPath(address), address},
		"another error of URLs": {WithoutURL(path), path},
		"no error":              {errors.Join(WithoutPath(nil), WithoutURL(nil)), nil},
	} {
		if fmt.Sprint(test.got) != fmt.Sprint(test.want) {
			t.Errorf("%s: %v, want %v", name, test.got, test.want)
		}
	}
}
