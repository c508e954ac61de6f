package doctor

import (
	"os"
	"strings"
	"testing"

	"github.com/hako-run/hako/host/app/config"
	"github.com/hako-run/hako/host/confine"
)

func TestDoctorProxy(t *testing.T) {
	t.Parallel()
	environ := func(name string) (string, bool) {
		return map[string]string{"http_proxy": "http://aki:secret@proxy"}[name], true
	}
	found := proxy(&config.Config{}, environ)
	if len(found) != 1 || !strings.Contains(found[0].Message, "http_proxy") ||
		strings.Contains(found[0].Message, "secret") {
		t.Errorf("found %v", found)
	}
	if found := proxy(&config.Config{Proxy: "http://proxy"}, environ); len(found) != 0 {
		t.Errorf("with outbound.proxy: %v", found)
	}
}

// TestMachine examines machines that this one is not.
func TestMachine(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		support confine.Support
		uid     int
		limit   string
		want    string
	}{
		{"everything", confine.Support{Landlock: 7, Namespaces: true, Filter: true}, 1000, "", "ok commands, ok user"},
		{"no namespaces", confine.Support{Landlock: 7, Filter: true}, 1000, "", "warning commands, ok user"},
		{"an old kernel", confine.Support{Namespaces: true, Filter: true}, 1000, "", "warning commands, ok user"},
		{"root", confine.Support{Landlock: 7, Namespaces: true, Filter: true}, 0, "", "ok commands, warning user"},
		{"root of a bounded service", confine.Support{Landlock: 7, Namespaces: true, Filter: true}, 0, "500",
			"ok commands, ok user"},
		{"no users", confine.Support{}, -1, "", "warning commands"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, f := range machine(test.support, test.uid, test.limit) {
				got = append(got, f.Level+" "+f.Check)
				if (f.Level == LevelOK) != (f.Remedy == "") {
					t.Errorf("%+v", f)
				}
			}
			if text := strings.Join(got, ", "); text != test.want {
				t.Errorf("%s, want %s", text, test.want)
			}
		})
	}
}

func TestMain(m *testing.M) {
	confine.Main() // without it, commands cannot be confined
	os.Exit(m.Run())
}
