package httpbroker

import (
	"strings"
	"testing"

	"github.com/hako-run/hako/host/grant"
	"github.com/hako-run/hako/pdk/abi"
)

func TestRules(t *testing.T) {
	t.Parallel()
	jma := grant.HTTPRule{URL: "https://www.jma.test/bosai/", Paths: []string{"forecast/data/**/*.json",
		"common/{const,x}/area.json"}}
	base := grant.HTTPRule{URL: "https://api.test/v1", Methods: []string{"GET", "POST"}}
	sub := grant.HTTPRule{URL: "https://*.example.test/"}
	anyone := grant.HTTPRule{URL: "http://*/feeds"}
	port := grant.HTTPRule{URL: "http://svc.test:8080"}
	idn := grant.HTTPRule{URL: "https://例え.test/日本"}
	for name, c := range map[string]struct {
		rule        grant.HTTPRule
		method, url string
		want        bool
	}{
		"glob": {jma, "GET", "https://www.jma.test/bosai/forecast/data/forecast/130000.json",
			true},
		"glob, double star for none": {jma, "GET", "https://www.jma.test/bosai/forecast/data/130000.json", true},
		"alternatives":               {jma, "HEAD", "https://www.jma.test/bosai/common/const/area.json", true},
		"glob, other suffix":         {jma, "GET", "https://www.jma.test/bosai/forecast/data/130000.xml", false},
		"default methods":            {jma, "POST", "https://www.jma.test/bosai/forecast/data/130000.json", false},
		"outside the base":           {jma, "GET", "https://www.jma.test/forecast/data/130000.json", false},
		"dots into the glob":         {jma, "GET", "https://www.jma.test/x/../bosai/forecast/data/1.json", true},
		"dots out of the glob": {jma, "GET", "https://www.jma.test/bosai/forecast/data/../../admin/1.json",
			false},
		"slashes instead of segments": {jma, "GET", "https://www.jma.test/bosai/common%2Fconst%2Farea.json", false},

		"the base itself":       {base, "GET", "https://api.test/v1", true},
		"the base with a slash": {base, "GET", "https://api.test/v1/", true},
		"below the base":        {base, "POST", "https://api.test/v1/x?y=z", true},
		"beside the base":       {base, "GET", "https://api.test/v10", false},
		"base in capitals":      {base, "GET", "https://api.test/V1/x", false},
		"base across a slash":   {base, "GET", "https://api.test/v1%2Fx", false},
		"encoded slash below":   {base, "GET", "https://api.test/v1/group%2Fproject", true},
		"other method":          {base, "DELETE", "https://api.test/v1/x", false},
		"other scheme":          {base, "GET", "http://api.test/v1/x", false},
		"other port":            {base, "GET", "https://api.test:8443/v1/x", false},
		"host in capitals":      {base, "GET", "https://API.TEST./v1/x", true},
		"longer host":           {base, "GET", "https://api.test.evil.test/v1/x", false},

		"subdomain":         {sub, "GET", "https://a.example.test/", true},
		"deep subdomain":    {sub, "GET", "https://b.a.example.test/", true},
		"the domain itself": {sub, "GET", "https://example.test/", false},
		"similar domain":    {sub, "GET", "https://notexample.test/", false},
		"any host":          {anyone, "GET", "http://what.ever/feeds/1", true},
		"any address":       {anyone, "GET", "http://93.184.216.34/feeds/1", true},
		"any, other path":   {anyone, "GET", "http://what.ever/", false},
		"any, other port":   {anyone, "GET", "http://what.ever:81/feeds", false},
		"explicit port":     {port, "GET", "http://svc.test:8080/x", true},
		"missing port":      {port, "GET", "http://svc.test/x", false},
		"IDN and escapes":   {idn, "GET", "https://xn--r8jz45g.test/%E6%97%A5%E6%9C%AC/x", true},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := newRule(c.rule)
			if err != nil {
				t.Fatal(err)
			}
			target, err := parseTarget(c.url)
			if err != nil {
				t.Fatal(err)
			}
			if got := r.allows(c.method, &target); got != c.want {
				t.Errorf("%s allows %s %s: %v, want %v", r, c.method, c.url, got, c.want)
			}
		})
	}
}

// A glob of one segment must hold however the server takes an encoded slash.
func TestRuleHoldsForAllReadings(t *testing.T) {
	t.Parallel()
	r, err := newRule(grant.HTTPRule{URL: "https://api.test/projects", Paths: []string{"*"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"a%2Fb", "a%5Cb", "a%252Fb"} {
		target, err := parseTarget("https://api.test/projects/" + path)
		if err != nil {
			t.Fatal(err)
		}
		if r.allows("GET", &target) {
			t.Errorf("%s is allowed, readings %q", path, target.readings)
		}
	}
}

func TestMostTellingRuleApplies(t *testing.T) {
	t.Parallel()
	b := newBroker(t, nil,
		grant.HTTPRule{Name: "any", URL: "https://*/"},
		grant.HTTPRule{Name: "sub", URL: "https://*.a.test/"},
		grant.HTTPRule{Name: "subsub", URL: "https://*.b.a.test/"},
		grant.HTTPRule{Name: "exact", URL: "https://c.a.test/"},
		grant.HTTPRule{Name: "private", URL: "https://c.a.test/", Private: true},
	)
	for url, want := range map[string]string{
		"https://other.test/": "any", "https://x.a.test/": "sub", "https://x.b.a.test/": "subsub",
		"https://c.a.test/": "private",
	} {
		target, err := parseTarget(url)
		if err != nil {
			t.Fatal(err)
		}
		if r, err := b.findRule("p", "GET", &target); err != nil || r.name != want {
			t.Errorf("%s: got rule %v, %v; want %s", url, r, err, want)
		}
	}
}

func TestNotGranted(t *testing.T) {
	t.Parallel()
	b := newBroker(t, nil, grant.HTTPRule{Name: "jma", URL: "https://www.jma.test/bosai", Paths: []string{"data/**"}})
	_, err := get(t, b, "https://evil.test/?token=secret")
	wantCode(t, err, abi.CodeNotGranted, "weather", "GET https://evil.test/",
		"GET|HEAD https://www.jma.test/bosai/{data/**}", "permissions.http")
	if got := err.Error(); strings.Contains(got, "secret") {
		t.Errorf("the error shows the query: %s", got)
	}
	_, err = get(t, newBroker(t, nil), "https://evil.test/")
	wantCode(t, err, abi.CodeNotGranted, "granted: nothing")
}

func TestInvalidRequests(t *testing.T) {
	t.Parallel()
	b := newBroker(t, nil, everything("https://a.test"))
	for name, head := range map[string]*abi.HTTPRequest{
		"method":       {Method: "GE T", URL: "https://a.test/"},
		"long method":  {Method: "AAAAAAAAAAAAAAAAAAAAAAAAAAAAA", URL: "https://a.test/"},
		"no URL":       {},
		"scheme":       {URL: "gopher://a.test/"},
		"header name":  {URL: "https://a.test/", Headers: map[string][]string{"X Y": {"1"}}},
		"header value": {URL: "https://a.test/", Headers: map[string][]string{"X": {"1\r\nHost: evil"}}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := do(t, b, head, "")
			wantCode(t, err, abi.CodeInvalid)
		})
	}
}
