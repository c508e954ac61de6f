package catalog_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/hako-run/hako/host/catalog"
	"github.com/hako-run/hako/host/manifest"
)

// offering returns a manifest with one tool, prompt, resource and template per name.
func offering(t testing.TB, plugin string, names ...string) *manifest.Manifest {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "name: %s\nversion: 1.0.0\ndescription: d\n", plugin)
	section := func(head, item string) {
		b.WriteString(head + ":\n")
		for _, name := range names {
			b.WriteString(strings.ReplaceAll(item, "NAME", name))
		}
	}
	section("tools", "  - {name: NAME, description: d, inputSchema: {type: object}}\n")
	section("prompts", "  - {name: NAME, description: d}\n")
	section("resources", "  - {uri: 'x://NAME', name: NAME}\n")
	section("resourceTemplates", "  - {uriTemplate: 'x://NAME/{id}', name: NAME}\n")
	m, err := manifest.Parse([]byte(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func names(view *catalog.View) string {
	var list []string
	for _, tool := range view.Tools {
		list = append(list, tool.Name)
	}
	for _, prompt := range view.Prompts {
		list = append(list, prompt.Name)
	}
	for _, resource := range view.Resources {
		list = append(list, resource.Spec.URI)
	}
	for _, template := range view.Templates {
		list = append(list, template.Spec.URITemplate)
	}
	return strings.Join(list, " ")
}

func TestPut(t *testing.T) {
	t.Parallel()
	c := new(catalog.Catalog)
	if got := names(c.View()); got != "" {
		t.Errorf("an empty catalog has %s", got)
	}
	put := func(plugin, prefix string, offered ...string) error {
		return c.Put(catalog.Source{Name: plugin, Prefix: prefix}, offering(t, plugin, offered...))
	}
	if err := put("one", "", "b", "a"); err != nil {
		t.Fatal(err)
	}
	before := c.View()
	if err := put("two", "p_", "c"); err != nil {
		t.Fatal(err)
	}
	if got, want := names(c.View()), "a b p_c a b p_c x://a x://b x://c x://a/{id} x://b/{id} x://c/{id}"; got != want {
		t.Errorf("catalog has %s, want %s", got, want)
	}
	if got := names(before); strings.Contains(got, "c") {
		t.Errorf("an old view changed to %s", got)
	}
	if tool, ok := c.View().Tool("p_c"); !ok || tool.Spec.Name != "c" || tool.Source.Name != "two" {
		t.Errorf("tool = %+v", tool)
	}
	if _, ok := c.View().Tool("c"); ok {
		t.Error("a tool answers to its name without the prefix")
	}
	if template, variables, ok := c.View().Template("x://b/42"); !ok || template.Spec.Name != "b" ||
		variables["id"] != "42" {
		t.Errorf("template = %+v, %v", template, variables)
	}
	if _, _, ok := c.View().Template("x://z/42"); ok {
		t.Error("a template matches what it should not")
	}
	c.Remove("two")
	c.Remove("absent")
	if err := put("one", "", "z"); err != nil {
		t.Fatal(err)
	}
	if got, want := names(c.View()), "z z x://z x://z/{id}"; got != want {
		t.Errorf("catalog has %s, want %s", got, want)
	}
	if err := put("two", "", "a"); err != nil {
		t.Errorf("a name that is offered no more: %v", err)
	}
}

func TestConflict(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ kind, head, item string }{
		{"tool", "tools", "{name: same, description: d, inputSchema: {type: object}}"},
		{"prompt", "prompts", "{name: same, description: d}"},
		{"resource", "resources", "{uri: 'x://same', name: same}"},
		{"resource template", "resourceTemplates", "{uriTemplate: 'x://same/{id}', name: same}"},
	} {
		t.Run(test.kind, func(t *testing.T) {
			t.Parallel()
			c := new(catalog.Catalog)
			var last error
			for _, plugin := range []string{"first", "second"} {
				m, err := manifest.Parse([]byte(fmt.Sprintf("name: %s\nversion: 1.0.0\ndescription: d\n%s:\n  - %s\n",
					plugin, test.head, test.item)))
				if err != nil {
					t.Fatal(err)
				}
				last = c.Put(catalog.Source{Name: plugin}, m)
			}
			var conflict *catalog.ConflictError
			if !errors.As(last, &conflict) || conflict.Kind != test.kind || conflict.Source != "second" ||
				conflict.Holder != "first" {
				t.Fatalf("error = %v", last)
			}
			for _, word := range []string{"first", "second", "same", "remove one"} {
				if !strings.Contains(last.Error(), word) {
					t.Errorf("%q does not name %s", last, word)
				}
			}
		})
	}
}

// TestRetired checks that an offered name takes precedence over a retired one, and that retired URIs hide only
// templates of their own source.
func TestRetired(t *testing.T) {
	t.Parallel()
	c := new(catalog.Catalog)
	for _, plugin := range []struct{ name, prefix, more string }{
		{"a", "a_", "retired: [{tool: old, instead: a's}, {prompt: gone, instead: b's}, {resource: 'x://one/me', " +
			"instead: c's}, {resource: 'x://two/me', instead: d's}]\n"},
		{"b", "", "retired: [{tool: one, instead: e's}, {resource: 'x://one/me', instead: f's}]\n"},
	} {
		text := "name: " + plugin.name + "\nversion: 1.0.0\n" + plugin.more + map[string]string{
			"a": "tools: [{name: one, description: d, inputSchema: {type: object}}]\nresourceTemplates: " +
				"[{uriTemplate: 'x://one/{id}', name: n}]\n",
			"b": "resourceTemplates: [{uriTemplate: 'x://two/{id}', name: n}]\n",
		}[plugin.name]
		m, err := manifest.Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Put(catalog.Source{Name: plugin.name, Prefix: plugin.prefix}, m); err != nil {
			t.Fatal(err)
		}
	}
	view := c.View()
	for _, test := range []struct{ kind, name, want string }{
		{"tool", "a_old", "a's"}, {"tool", "old", ""}, {"tool", "one", "e's"}, {"prompt", "a_gone", "b's"}, {"prompt",
			"a_old", ""},
		{"resource", "x://one/me", "c's"}, {"resource", "x://two/me", "d's"}, {"resource", "x://one/you", ""},
	} {
		if text, ok := view.Instead(test.kind, test.name); text.In("en") != test.want || ok != (test.want != "") {
			t.Errorf("%s %s: %v, %v", test.kind, test.name, text, ok)
		}
	}
	for uri, want := range map[string]bool{"x://one/me": false, "x://one/you": true, "x://two/me": true} {
		if _, _, ok := view.Template(uri); ok != want {
			t.Errorf("%s matches a template: %v", uri, ok)
		}
	}
	c.Remove("a")
	if text, _ := c.View().Instead("resource", "x://one/me"); text.In("en") != "f's" {
		t.Errorf("without a: %v", text)
	}
}

func TestWatch(t *testing.T) {
	t.Parallel()
	c := new(catalog.Catalog)
	changes := 0
	stop := c.Watch(func() { changes++ })
	source := catalog.Source{Name: "p"}
	if err := c.Put(source, offering(t, "p", "a")); err != nil {
		t.Fatal(err)
	}
	c.Remove("absent")
	c.Remove("p")
	stop()
	if err := c.Put(source, offering(t, "p", "a")); err != nil {
		t.Fatal(err)
	}
	if changes != 2 {
		t.Errorf("%d changes seen, want 2", changes)
	}
}

// TestHold: a series of changes is visible at once, and notifies the watchers a few times instead of once per change.
func TestHold(t *testing.T) {
	t.Parallel()
	sources, manifests := many(t, 300)
	c, notified := new(catalog.Catalog), 0
	stop := c.Watch(func() { notified++ })
	defer stop()
	release := c.Hold()
	for i, source := range sources {
		if err := c.Put(source, manifests[i]); err != nil {
			t.Fatal(err)
		}
		if got := len(c.View().Tools); got == 0 {
			t.Fatal("a change is not visible")
		}
	}
	if notified > 20 {
		t.Errorf("%d notifications of 300 changes", notified)
	}
	before := notified
	c.Remove(sources[0].Name)
	release()
	if notified != before+1 {
		t.Errorf("%d notifications at the end of the series", notified-before)
	}
	c.Remove(sources[1].Name)
	if notified != before+2 {
		t.Error("a change after the series notifies nobody")
	}
}

// many returns sources with a tool, a prompt, a resource and a template each.
func many(t testing.TB, n int) (sources []catalog.Source, manifests []*manifest.Manifest) {
	t.Helper()
	for i := range n {
		plugin := fmt.Sprintf("p%d", i)
		sources, manifests = append(sources, catalog.Source{Name: plugin}), append(manifests,
			offering(t, plugin, plugin))
	}
	return sources, manifests
}

func fill(t testing.TB, sources []catalog.Source, manifests []*manifest.Manifest) *catalog.Catalog {
	t.Helper()
	c := new(catalog.Catalog)
	for i := range sources {
		if err := c.Put(sources[i], manifests[i]); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// TestPutIsConstantTime checks that the cost of Put does not depend on the number of sources.
func TestPutIsConstantTime(t *testing.T) {
	allocations := func(n int) float64 {
		sources, manifests := many(t, n)
		c := fill(t, sources, manifests)
		return testing.AllocsPerRun(10, func() {
			if err := c.Put(sources[0], manifests[0]); err != nil {
				t.Fatal(err)
			}
		})
	}
	if few, most := allocations(2), allocations(500); most > few+2 {
		t.Errorf("%v allocations with 2 sources, %v with 500", few, most)
	}
}

// BenchmarkFill fills a catalog and requests one view, as a start does. The time per source does not depend on their
// number.
func BenchmarkFill(b *testing.B) {
	for _, n := range []int{100, 1000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			sources, manifests := many(b, n)
			for b.Loop() {
				if view := fill(b, sources, manifests).View(); len(view.Tools) != n {
					b.Fatalf("%d tools", len(view.Tools))
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/source")
		})
	}
}

// TestHammer changes and reads the catalog concurrently, for the race detector.
func TestHammer(t *testing.T) {
	t.Parallel()
	c := new(catalog.Catalog)
	var group sync.WaitGroup
	for i := range 8 {
		name := fmt.Sprintf("p%d", i)
		m := offering(t, name, "tool"+name)
		group.Go(func() {
			for range 100 {
				stop := c.Watch(func() {})
				if err := c.Put(catalog.Source{Name: name}, m); err != nil {
					t.Error(err)
				}
				if _, ok := c.View().Tool("tool" + name); !ok {
					t.Error("the tool just put is not there")
				}
				c.Remove(name)
				stop()
			}
		})
	}
	group.Wait()
	if got := names(c.View()); got != "" {
		t.Errorf("left over: %s", got)
	}
}
