package registry_test

import (
	"strings"
	"testing"

	"github.com/hako-run/hako/dev/kit/registrytest"
	"github.com/hako-run/hako/host/registry"
)

// TestPullFile: the file of an artifact arrives once, and again when the tag has moved.
func TestPullFile(t *testing.T) {
	t.Parallel()
	at, c := registrytest.Start(t), client(t, registry.Options{})
	put := func(tag string, texts ...string) string {
		var layers []registrytest.Blob
		for _, text := range texts {
			layers = append(layers, at.PutBlob(t, "tools/index", "application/yaml", []byte(text)))
		}
		config := at.PutBlob(t, "tools/index", "application/vnd.oci.empty.v1+json", []byte("{}"))
		return at.PutImage(t, "tools/index", tag, config, layers...).Digest
	}
	r := parse(t, at.Reference("tools/index", "1"))
	first := put("1", "plugins: []")
	content, digest, err := c.PullFile(t.Context(), r, "", 100)
	if string(content) != "plugins: []" || digest != first || err != nil {
		t.Fatalf("%q %s %v", content, digest, err)
	}
	if content, digest, err := c.PullFile(t.Context(), r, first, 100); content != nil || digest != first || err != nil {
		t.Errorf("a known one: %q %s %v", content, digest, err)
	}
	if second := put("1", "plugins: [] # more"); second == first {
		t.Error("the same digest")
	} else if content, digest, err := c.PullFile(t.Context(), r, first, 100); string(content) != "plugins: [] # more" || digest != second || err != nil {
		t.Errorf("a tag that has moved: %q %s %v", content, digest, err)
	}
	put("two", "a", "b")
	put("large", strings.Repeat("a", 101))
	for tag, want := range map[string]string{"two": "it has 2 layers", "large": "too large", "none": "tools/index"} {
		if _, _, err := c.PullFile(t.Context(), parse(t, at.Reference("tools/index", tag)), "", 100); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", tag, err)
		}
	}
}
