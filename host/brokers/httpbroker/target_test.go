package httpbroker

import (
	"strings"
	"testing"
)

func TestParseTarget(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ raw, want string }{
		"case and default port":     {"HTTPS://API.Example.COM:443/A", "https://api.example.com/A"},
		"empty port":                {"http://a.test:/x", "http://a.test/x"},
		"other port":                {"http://a.test:0080443/", ""},
		"leading zeros in the port": {"http://a.test:0080/", "http://a.test/"},
		"no path":                   {"http://a.test", "http://a.test/"},
		"trailing dot of the host":  {"http://a.test./", "http://a.test/"},
		"fragment":                  {"http://a.test/x#../secret", "http://a.test/x"},
		"IDN":                       {"https://例え。テスト/", "https://xn--r8jz45g.xn--zckzah/"},
		"IDN, percent-encoded":      {"https://%E4%BE%8B%E3%81%88.test/", "https://xn--r8jz45g.test/"},
		"punycode in capitals":      {"https://XN--R8JZ45G.test/", "https://xn--r8jz45g.test/"},
		"full-width letters":        {"https://ｅｘａｍｐｌｅ.test/", "https://example.test/"},
		"underscore":                {"http://my_service:8080/", "http://my_service:8080/"},
		"full-width digits":         {"http://１２７.０.０.１/", "http://127.0.0.1/"},
		"IPv6":                      {"http://[2001:DB8:0:0::1]:80/", "http://[2001:db8::1]/"},
		"mapped IPv4":               {"http://[::ffff:127.0.0.1]/", "http://127.0.0.1/"},

		"dot segments":          {"http://a.test/a/./b/../c", "http://a.test/a/c"},
		"beyond the root":       {"http://a.test/../../x", "http://a.test/x"},
		"encoded dots":          {"http://a.test/a/%2e%2E/b", "http://a.test/b"},
		"dots at the end":       {"http://a.test/a/b/..", "http://a.test/a/"},
		"repeated slashes":      {"http://a.test//a///b/", "http://a.test/a/b/"},
		"needless escapes":      {"http://a.test/%61%7E", "http://a.test/a~"},
		"escapes in lower case": {"http://a.test/%e6%97%a5", "http://a.test/%E6%97%A5"},
		"bare characters":       {"http://a.test/日 \"x\"", "http://a.test/%E6%97%A5%20%22x%22"},
		"encoded slash":         {"http://a.test/group%2fproject", "http://a.test/group%2Fproject"},
		"encoded percent":       {"http://a.test/100%25", "http://a.test/100%25"},
		"query":                 {"http://a.test/?q=a b&日=<>", "http://a.test/?q=a%20b&%E6%97%A5=%3C%3E"},
		"dots in the query":     {"http://a.test/?q=../..//x", "http://a.test/?q=../..//x"},

		"other scheme":             {"file:///etc/passwd", ""},
		"no scheme":                {"//a.test/", ""},
		"opaque":                   {"http:a.test", ""},
		"user":                     {"http://a.test@evil.test/", ""},
		"password":                 {"http://a:b@evil.test/", ""},
		"zone":                     {"http://[fe80::1%25eth0]/", ""},
		"decimal address":          {"http://2130706433/", ""},
		"hexadecimal address":      {"http://0x7f.0.0.1/", ""},
		"hexadecimal label":        {"http://127.0.0.0x1/", ""},
		"octal address":            {"http://0177.0.0.01/", ""},
		"short address":            {"http://127.1/", ""},
		"backslash in the host":    {`http://a.test\@evil.test/`, ""},
		"empty label":              {"http://a..test/", ""},
		"long label":               {"http://" + strings.Repeat("a", 64) + ".test/", ""},
		"space in the host":        {"http://a test/", ""},
		"encoded host":             {"http://a%2etest/", ""},
		"port too high":            {"http://a.test:65536/", ""},
		"port zero":                {"http://a.test:0/", ""},
		"control character":        {"http://a.test/\r\nX: y", ""},
		"encoded control":          {"http://a.test/x%0d%0a", ""},
		"NUL":                      {"http://a.test/x%00.json", ""},
		"malformed escape":         {"http://a.test/%zz", ""},
		"dots behind a slash":      {"http://a.test/a/..%2fb", ""},
		"dots behind a backslash":  {`http://a.test/a/..\b`, ""},
		"dots encoded twice":       {"http://a.test/a/%252e%252e/b", ""},
		"slash encoded twice":      {"http://a.test/a/..%252fb", ""},
		"dots with a parameter":    {"http://a.test/a/..;x=1/b", ""},
		"empty segment in slashes": {"http://a.test/a/%2f/b", ""},
		"encoded without end":      {"http://a.test/%2525252525252e", ""},
		"too long":                 {"http://a.test/" + strings.Repeat("a", maxURL), ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parseTarget(c.raw)
			switch {
			case c.want == "" && err == nil:
				t.Errorf("accepted as %s", &got)
			case c.want != "" && (err != nil || got.String() != c.want):
				t.Errorf("got %s, %v; want %s", &got, err, c.want)
			}
		})
	}
}

func TestResolve(t *testing.T) {
	t.Parallel()
	base, err := parseTarget("https://a.test/x/y?q=1")
	if err != nil {
		t.Fatal(err)
	}
	for reference, want := range map[string]string{
		"/z":               "https://a.test/z",
		"z?r=2":            "https://a.test/x/z?r=2",
		"//b.test/":        "https://b.test/",
		"HTTP://B.test:80": "http://b.test/",
		"../..":            "https://a.test/",
	} {
		if got, err := base.resolve(reference); err != nil || got.String() != want {
			t.Errorf("%q: got %s, %v; want %s", reference, &got, err, want)
		}
	}
	for _, reference := range []string{"ftp://a.test/", "//u@b.test/", "/..%2f", "http://[::1%25lo]/", "%zz"} {
		if got, err := base.resolve(reference); err == nil {
			t.Errorf("%q: accepted as %s", reference, &got)
		}
	}
}

// FuzzParseTarget checks that what is accepted is in the one form: parsing it again changes nothing, net/http sends it
// as it was checked, and no reading has dot segments.
func FuzzParseTarget(f *testing.F) {
	for _, seed := range []string{"http://a.test/a/../b?q=1#f", "https://例え.テスト/%2e%2e/", "http://[::1]:80//%252f",
		"http://a.test/..;/%5c", "http://127.1/"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		first, err := parseTarget(raw)
		if err != nil {
			return
		}
		if len(first.String()) > maxURL {
			return // escaped it is too long to be read again
		}
		again, err := parseTarget(first.String())
		if err != nil || again.String() != first.String() {
			t.Fatalf("%q: %s, then %s, %v", raw, &first, &again, err)
		}
		u := first.url()
		if u.EscapedPath() != first.path || u.String() != first.String() || u.Hostname() != first.host {
			t.Fatalf("%q: checked %s, sent %s", raw, &first, u)
		}
		for _, p := range first.readings {
			if !strings.HasPrefix(p, "/") || strings.Contains(p+"/", "/../") || strings.Contains(p+"/", "/./") {
				t.Fatalf("%q: reading %q", raw, p)
			}
		}
	})
}
