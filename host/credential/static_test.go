package credential

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/host/secret"
	"github.com/hako-run/hako/pdk/abi"
)

func newBroker(t *testing.T, options Options) *Broker {
	t.Helper()
	b, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return b
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestStaticToken(t *testing.T) {
	t.Setenv("HAKO_TEST_KOT", "token-from-environment")
	file := filepath.Join(t.TempDir(), "token")
	write(t, file, "\ttoken-from-file\n")
	tests := map[string]struct {
		spec          Spec
		header, value string
	}{
		"environment": {Spec{Token: secret.Source{Env: "HAKO_TEST_KOT"}}, "Authorization", "Bearer token-from-environment"},
		"file":        {Spec{Token: secret.Source{File: file}}, "Authorization", "Bearer token-from-file"},
		"command": {Spec{Token: command("echo", "token-from-command")}, "Authorization",
			"Bearer token-from-command"},
		"scheme": {Spec{Token: secret.Source{File: file}, Scheme: "token"}, "Authorization", "token token-from-file"},
		"header": {Spec{Token: secret.Source{File: file}, Header: "x-api-key"}, "X-Api-Key", "token-from-file"},
		"both": {Spec{Token: secret.Source{File: file}, Header: "X-Auth", Scheme: "Key"},
			"X-Auth", "Key token-from-file"},
		"user and pass": {Spec{Token: command("echo", "aladdin:opensesame"), Scheme: "Basic"}, "Authorization",
			"Basic YWxhZGRpbjpvcGVuc2VzYW1l"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBroker(t, Options{Credentials: map[string]Spec{"kot": test.spec}})
			c, err := b.Credential(t.Context(), "", "kot")
			if err != nil {
				t.Fatal(err)
			}
			if c.Header != test.header || c.Value != test.value {
				t.Errorf("%s: %s, want %s: %s", c.Header, c.Value, test.header, test.value)
			}
			for _, secret := range c.Secrets {
				if !strings.Contains(c.Value, secret) && test.spec.Scheme != "Basic" {
					t.Errorf("secret %q is not in the value", secret)
				}
			}
		})
	}
}

func TestStaticTokenThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "empty"), " \n")
	write(t, filepath.Join(dir, "short"), "1234567")
	write(t, filepath.Join(dir, "lines"), "first-line-of-a-token\nsecond")
	write(t, filepath.Join(dir, "large"), strings.Repeat("x", secret.MaxSize+1))
	tests := map[string]struct {
		source secret.Source
		want   string
	}{
		"missing file":  {secret.Source{File: filepath.Join(dir, "none")}, "no such file"},
		"empty file":    {secret.Source{File: filepath.Join(dir, "empty")}, "is empty or not set"},
		"short":         {secret.Source{File: filepath.Join(dir, "short")}, "it has 7 characters"},
		"several lines": {secret.Source{File: filepath.Join(dir, "lines")}, "byte 22 is not a printable ASCII"},
		"too large":     {secret.Source{File: filepath.Join(dir, "large")}, "more than 65536 bytes"},
		"unset variable": {secret.Source{Env: "HAKO_TEST_UNSET"},
			"the environment variable HAKO_TEST_UNSET: is empty or not set"},
		"missing command": {secret.Source{Command: []string{filepath.Join(dir, "none"), "--password=hunter2"}},
			"no such file"},
		"failing command": {command("fail", "leaked-secret"), "exit status 3"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBroker(t, Options{Credentials: map[string]Spec{"kot": {Token: test.source}}})
			_, err := b.Credential(t.Context(), "acme", "kot")
			var own *abi.Error
			if !errors.As(err, &own) || own.Code != abi.CodeCredential || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("got %v, want %q", err, test.want)
			}
			if strings.Contains(own.Message, dir) || strings.Contains(err.Error(), "leaked-secret") ||
				strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the error tells too much: %v", err)
			}
			list, err := b.Status(t.Context())
			if err != nil || len(list) != 1 || len(test.source.Command) == 0 &&
				(list[0].State != Unusable || list[0].Remedy == "") {
				t.Errorf("status %+v, %v", list, err)
			}
		})
	}
}

func TestStaticTokenIsReadAgain(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "token")
	write(t, file, "first-token")
	specs := map[string]Spec{"file": {Token: secret.Source{File: file}}, "command": {Token: command("cat", file)}}
	b := newBroker(t, Options{Credentials: specs})
	value := func(name string) string {
		c, err := b.Credential(t.Context(), "", name)
		if err != nil {
			t.Fatal(err)
		}
		return c.Value
	}
	if value("file") != "Bearer first-token" || value("command") != "Bearer first-token" {
		t.Fatal("the first token is not read")
	}
	old, err := b.Credential(t.Context(), "", "command")
	if err != nil {
		t.Fatal(err)
	}
	if other, err := b.Renew(t.Context(), "", "command", old, 401, nil); other != nil || err != nil {
		t.Errorf("nothing has changed, and yet there is %v, %v", other, err)
	}
	write(t, file, "second-token")
	if got := value("file"); got != "Bearer second-token" {
		t.Errorf("a changed file: %s", got)
	}
	if got := value("command"); got != "Bearer first-token" {
		t.Errorf("a command is run without need: %s", got)
	}
	if other, err := b.Renew(t.Context(), "", "command", old, 403, nil); other != nil || err != nil {
		t.Errorf("403 is no matter of the token, and yet there is %v, %v", other, err)
	}
	other, err := b.Renew(t.Context(), "", "command", old, 401, nil)
	if err != nil || other == nil || other.Value != "Bearer second-token" || other.Account == old.Account {
		t.Errorf("after a refusal: %v, %v", other, err)
	}
}

// TestTenants: a tenant gets its own credential or the shared one, never another tenant's.
func TestTenants(t *testing.T) {
	t.Parallel()
	printing := func(text string) Spec { return Spec{Token: command("echo", text)} }
	b := newBroker(t, Options{
		Credentials: map[string]Spec{"shared": printing("everybodys-token")},
		Tenants: map[string]map[string]Spec{
			"acme":  {"kot": printing("acmes-own-token"), "shared": printing("acmes-shared-token")},
			"other": {"kot": printing("others-own-token")},
		},
	})
	for _, test := range []struct{ tenant, name, want, setting string }{
		{"acme", "kot", "Bearer acmes-own-token", "tenants.acme.credentials.kot.token"},
		{"other", "kot", "Bearer others-own-token", "tenants.other.credentials.kot.token"},
		{"", "kot", "", ""},
		{"third", "kot", "", ""},
		{"acme", "shared", "Bearer acmes-shared-token", "tenants.acme.credentials.shared.token"},
		{"other", "shared", "Bearer everybodys-token", "credentials.shared.token"},
		{"", "shared", "Bearer everybodys-token", "credentials.shared.token"},
		{"acme", "none", "", ""},
	} {
		c, err := b.Credential(t.Context(), test.tenant, test.name)
		if test.want == "" {
			if err == nil || !strings.Contains(err.Error(), "is not configured: set credentials."+test.name) {
				t.Errorf("%v: got %v, %v", test, c, err)
			}
		} else if err != nil || c.Value != test.want || c.Renewal[broker.RenewSetting] != test.setting {
			t.Errorf("%v: got %v, %v", test, c, err)
		}
	}
	if !b.Configured("kot") || !b.Configured("shared") || b.Configured("none") {
		t.Error("Configured is wrong")
	}
}

func TestSpecIsChecked(t *testing.T) {
	t.Parallel()
	env := secret.Source{Env: "X"}
	tests := map[string]struct {
		spec Spec
		want string
	}{
		"nothing":     {Spec{}, "token needs one of env, file and command"},
		"two sources": {Spec{Token: secret.Source{Env: "X", File: "y"}}, "token needs one of"},
		"provider": {Spec{Provider: "free"},
			`provider "free" does not exist: use one of freee, google-service-account, mcp, oauth2`},
		"foreign key":      {Spec{Token: env, ClientID: "x"}, "clientId is not used by a static token: remove it"},
		"framing":          {Spec{Token: env, Header: "host"}, `header "host" cannot carry a credential`},
		"bad header":       {Spec{Token: env, Header: "a b"}, "cannot carry"},
		"bad scheme":       {Spec{Token: env, Scheme: "a\n"}, "control characters"},
		"no client":        {Spec{Provider: Freee, ClientSecret: env}, "clientId is missing"},
		"no client secret": {Spec{Provider: Freee, ClientID: "x"}, "clientSecret needs one of"},
		"token of freee":   {Spec{Provider: Freee, Token: env}, "token is not used by freee"},
		"no token URL":     {Spec{Provider: OAuth2, ClientID: "x"}, "tokenUrl is missing"},
		"no start": {Spec{Provider: OAuth2, ClientID: "x", TokenURL: "https://a.example"},
			"authorizeUrl or deviceUrl is missing"},
		"in the clear": {Spec{Provider: Freee, ClientID: "x", ClientSecret: env, TokenURL: "http://a.example"},
			`tokenUrl "http://a.example" is not an https URL`},
		"password in URL": {Spec{Provider: Freee, ClientID: "x", ClientSecret: env,
			AuthorizeURL: "https://a:b@a.example"}, "authorizeUrl"},
		"redirect away": {Spec{Provider: Freee, ClientID: "x", ClientSecret: env,
			RedirectURL: "https://a.example/cb"}, "redirectUrl"},
		"no key": {Spec{Provider: GoogleServiceAccount}, "key needs one of"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := test.spec.Check()
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
			if _, err := New(Options{Tenants: map[string]map[string]Spec{"acme": {"x": test.spec}}}); err == nil ||
				!strings.HasPrefix(err.Error(), "credential x of tenant acme: ") {
				t.Errorf("New: %v", err)
			}
		})
	}
	for name, spec := range map[string]Spec{
		"freee":   {Provider: Freee, ClientID: "x", ClientSecret: env, RedirectURL: "http://127.0.0.1:8421/callback"},
		"local":   {Provider: Freee, ClientID: "x", ClientSecret: env, TokenURL: "http://localhost:1/token"},
		"device":  {Provider: OAuth2, ClientID: "x", TokenURL: "https://a.example", DeviceURL: "https://a.example"},
		"account": {Provider: GoogleServiceAccount, Key: env},
	} {
		if err := spec.Check(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
