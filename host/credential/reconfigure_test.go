package credential

import (
	"maps"
	"net/url"
	"sync"
	"testing"
)

// TestReconfigure: changed credentials apply to the next request, unchanged ones keep their connection, and an invalid
// one changes nothing.
func TestReconfigure(t *testing.T) {
	t.Parallel()
	b, _, _ := online(t, nil)
	if _, err := b.Connect(t.Context(), "", "freee", func(url string) { browse(t, url) }); err != nil {
		t.Fatal(err)
	}
	before := connectionOf(t, b)
	spec, _ := b.spec(id{"", "freee"})
	shared := map[string]Spec{"freee": spec, "kot": {Token: command("echo", "first-token")}}
	reconfigure := func(tenants map[string]map[string]Spec) error {
		put, err := b.Reconfigure(maps.Clone(shared), tenants, nil)
		if err == nil {
			put()
		}
		return err
	}
	value := func(tenant, name string) string {
		t.Helper()
		c, err := b.Credential(t.Context(), tenant, name)
		if err != nil {
			return err.Error()
		}
		return c.Value
	}
	if err := reconfigure(nil); err != nil {
		t.Fatal(err)
	}
	if got := value("", "kot"); got != "Bearer first-token" {
		t.Error(got)
	}
	if connectionOf(t, b) != before || value("", "freee") != "Bearer access-0001" {
		t.Error("the connection is another one")
	}
	shared["kot"] = Spec{Token: command("echo", "second-token"), Provider: "nobody"}
	if err := reconfigure(nil); err == nil {
		t.Error("a wrong credential was taken")
	}
	if got := value("", "kot"); got != "Bearer first-token" {
		t.Error(got)
	}
	delete(shared, "freee")
	shared["kot"] = Spec{Token: command("echo", "second-token")}
	if err := reconfigure(map[string]map[string]Spec{"acme": {"kot": {Token: command("echo",
		"acme-token")}}}); err != nil {
		t.Fatal(err)
	}
	if value("", "kot") != "Bearer second-token" || value("acme", "kot") != "Bearer acme-token" ||
		b.Configured("freee") {
		t.Errorf("%s, %s, %v", value("", "kot"), value("acme", "kot"), b.Configured("freee"))
	}
}

// TestReconfigureAtOnce is for the race detector.
func TestReconfigureAtOnce(t *testing.T) {
	t.Parallel()
	b := newBroker(t, Options{Credentials: map[string]Spec{"kot": {Token: command("echo", "some-token")}}})
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 20 {
				if c, err := b.Credential(t.Context(), "", "kot"); err != nil || c.Value != "Bearer some-token" {
					t.Errorf("%+v, %v", c, err)
				}
				_, _ = b.Status(t.Context())
			}
		})
	}
	for range 20 {
		put, err := b.Reconfigure(map[string]Spec{"kot": {Token: command("echo", "some-token")}}, nil,
			&url.URL{Scheme: "http", Host: "proxy.example"})
		if err != nil {
			t.Fatal(err)
		}
		put()
	}
	group.Wait()
}
