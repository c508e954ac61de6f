package server

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hako-run/hako/host/app/config"
)

const consoleToken = `
  tokens: [{name: mori, role: viewer, hash: "sha256:b94d27b9934d3e08a52e52d7da7dabfac484efe37a5380ee9088f7ace2efcde9"}]`

func TestConsoleIsSafeWhereItIs(t *testing.T) {
	t.Parallel()
	const auth = "http: {address: '0.0.0.0:8420', auth: {scopes: [a]}}\n"
	for name, test := range map[string]struct {
		file string
		on   bool
		want string
	}{
		"this machine":      {"locale: en", true, ""},
		"this machine, off": {"console: {enabled: false}", false, ""},
		"elsewhere":         {auth, false, ""},
		"elsewhere, on":     {auth + "console: {enabled: true}", true, "in the clear"},
		"elsewhere, logins": {auth + "console:" + consoleToken, true, "in the clear"},
		"elsewhere, logins, plain": {auth + "console:\n  url: http://hako.example.com" + consoleToken, true,
			"in the clear"},
		"elsewhere, logins, a proxy": {auth + "console:\n  url: https://hako.example.com" + consoleToken, true, ""},
		"elsewhere, logins, TLS": {"http: {address: '0.0.0.0:8420', tls: {cert: a, key: b}}\nconsole:" +
			consoleToken, true, ""},
		"a path in the URL": {"console: {url: 'https://hako.example.com/console/'}", true,
			"is not the address of a site"},
		"a proxy that is a name":      {"http: {trustedProxies: [proxy]}", true, "write an address"},
		"a provider without a client": {"console: {oidc: {issuer: 'https://sso.example.com', roles: {admin: {users: [a]}}}}", true, "the client ID is missing"},
		"an address of its own":       {auth + "console: {address: '127.0.0.1:8421'}", true, ""},
		"an address of its own, open": {"console: {address: ':8421', enabled: true}", true, "in the clear"},
	} {
		file := filepath.Join(t.TempDir(), "hako.yaml")
		if err := os.WriteFile(file, []byte(test.file), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := config.Load(config.Source{File: file})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if on := ConsoleEnabled(c); on != test.on {
			t.Errorf("%s: the console is on: %t", name, on)
		}
		if err := CheckConsole(c); test.want == "" && err != nil || test.want != "" &&
			(err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}
