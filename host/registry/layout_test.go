package registry_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hako-run/hako/dev/kit/registrytest"
	"github.com/hako-run/hako/host/plugincopies"
	"github.com/hako-run/hako/host/registry"
)

// bundled writes a layout with the plugin at r and, as a file, the plugin itself.
func bundled(t testing.TB, c *registry.Client, r registry.Reference, wasm []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := registry.NewLayoutWriter(&b)
	leftOut, err := w.AddArtifact(t.Context(), c, "probe", r)
	if err := errors.Join(errors.Join(leftOut...), err, w.AddFile("local", wasm), w.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// published pushes a plugin to a registry as tools/probe:1.0. The reference has the tag and the digest.
func published(t testing.TB, at *registrytest.Registry, wasm []byte) (*registry.Client, registry.Reference) {
	t.Helper()
	c, tagged := client(t, registry.Options{}), parse(t, at.Reference("tools/probe", "1.0"))
	digest, err := c.Push(t.Context(), tagged, &registry.Artifact{Wasm: wasm})
	if err != nil {
		t.Fatal(err)
	}
	return c, tagged.WithDigest(digest)
}

func put(t testing.TB, path string, data []byte) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// unpack writes the files of a tar into a directory, changed by change.
func unpack(t testing.TB, archive []byte, change func(name string, data []byte) []byte) string {
	t.Helper()
	dir := t.TempDir()
	for r := tar.NewReader(bytes.NewReader(archive)); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return dir
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		put(t, filepath.Join(dir, header.Name), change(header.Name, data))
	}
}

// TestLayout: a layout answers as the registry did that it was copied from: by digest, with referrers and the tag of old
// signatures, from a tar and from a directory.
func TestLayout(t *testing.T) {
	t.Parallel()
	at, wasm := registrytest.Start(t), plugin(t)
	c, r := published(t, at, wasm)
	if err := c.Attach(t.Context(), r, "text/sbom", []byte("parts"), "text/plain", nil); err != nil {
		t.Fatal(err)
	}
	signed := parse(t, at.Reference("tools/probe", strings.Replace(r.Digest, ":", "-", 1)+".sig"))
	if _, err := c.Push(t.Context(), signed, &registry.Artifact{Wasm: wasm}); err != nil {
		t.Fatal(err)
	}
	archive := bundled(t, c, r, wasm)
	if again := bundled(t, c, r, wasm); !bytes.Equal(again, archive) {
		t.Error("the same content makes other bytes")
	}
	same := func(_ string, data []byte) []byte { return data }
	for name, path := range map[string]string{
		"tar":       put(t, filepath.Join(t.TempDir(), "bundle.tar"), archive),
		"directory": unpack(t, archive, same),
	} {
		l, err := registry.OpenLayout(path, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		offline := l.Client()
		a, err := offline.Pull(t.Context(), r)
		if err != nil || !bytes.Equal(a.Wasm, wasm) || a.Digest != r.Digest {
			t.Errorf("%s: Pull: %+v, %v", name, a, err)
		}
		found, _, err := offline.Referrers(t.Context(), r, "text/sbom")
		if err != nil || len(found) != 1 || string(found[0].Layers[0].Content) != "parts" {
			t.Errorf("%s: Referrers: %+v, %v", name, found, err)
		}
		if layers, err := offline.Layers(t.Context(), signed); err != nil || len(layers) != 1 {
			t.Errorf("%s: the old tag: %v, %v", name, layers, err)
		}
		if blob, err := l.Blob(t.Context(), plugincopies.Digest(wasm)); err != nil || !bytes.Equal(blob, wasm) {
			t.Errorf("%s: Blob: %v", name, err)
		}
		for _, missing := range []string{plugincopies.Digest(nil), "sha256:../../index.json", "../index.json", ""} {
			if _, err := l.Blob(t.Context(), missing); !errors.Is(err, registry.ErrNotFound) {
				t.Errorf("%s: Blob %s: %v", name, missing, err)
			}
		}
		if _, err := offline.Pull(t.Context(), parse(t, at.Reference("tools/probe", "9.9"))); !errors.Is(err, registry.ErrNotFound) {
			t.Errorf("%s: an unknown tag: %v", name, err)
		}
		if _, err := offline.Push(t.Context(), parse(t, at.Reference("tools/probe", "1.0")), a); err == nil {
			t.Errorf("%s: it can be written", name)
		}
	}
}

// TestHostileLayout: a layout that was changed is refused.
func TestHostileLayout(t *testing.T) {
	t.Parallel()
	at, wasm := registrytest.Start(t), plugin(t)
	c, r := published(t, at, wasm)
	archive := bundled(t, c, r, wasm)
	hex := strings.TrimPrefix(plugincopies.Digest(wasm), "sha256:")
	for name, change := range map[string]func(string, []byte) []byte{
		"another plugin": func(name string, data []byte) []byte {
			if strings.HasSuffix(name, hex) {
				data = bytes.Replace(data, []byte("1.0.0"), []byte("6.6.6"), 1)
			}
			return data
		},
		"another manifest": func(name string, data []byte) []byte {
			if strings.HasSuffix(name, strings.TrimPrefix(r.Digest, "sha256:")) {
				data = append(data, ' ')
			}
			return data
		},
		"a cut file": func(name string, data []byte) []byte {
			if strings.HasSuffix(name, hex) {
				data = data[:len(data)-1]
			}
			return data
		},
	} {
		l, err := registry.OpenLayout(unpack(t, archive, change), 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		if a, err := l.Client().Pull(t.Context(), r); err == nil {
			t.Errorf("%s: %+v", name, a)
		}
	}
	small, err := registry.OpenLayout(unpack(t, archive, func(_ string, data []byte) []byte { return data }), 8)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := small.Client().Pull(t.Context(), r); err == nil || !strings.Contains(err.Error(), "maxPluginSize") {
		t.Errorf("a plugin that is too large: %v", err)
	}
	for name, index := range map[string]string{
		"no index": "", "text": "index", "a path": `{"manifests": [{"digest": "sha256:../../../etc/passwd"}]}`,
		"too many": `{"manifests": [` + strings.Repeat(`{},`, 10_000) + `{}]}`,
	} {
		dir := t.TempDir()
		if index != "" {
			put(t, filepath.Join(dir, "index.json"), []byte(index))
		}
		if _, err := registry.OpenLayout(dir, 1<<20); err == nil || !strings.Contains(err.Error(), "is not an OCI layout") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := registry.OpenLayout(put(t, filepath.Join(t.TempDir(), "x.tar"), []byte("text")), 1<<20); err == nil {
		t.Error("text was opened as a tar")
	}
}

func FuzzLayout(f *testing.F) {
	at, wasm := registrytest.Start(f), plugin(f)
	c, r := published(f, at, wasm)
	path := filepath.Join(f.TempDir(), "bundle.tar")
	f.Add(bundled(f, c, r, wasm))
	f.Fuzz(func(t *testing.T, archive []byte) {
		l, err := registry.OpenLayout(put(t, path, archive), 1<<20)
		if err != nil {
			return
		}
		if a, err := l.Client().Pull(t.Context(), r); err == nil && !bytes.Equal(a.Wasm, wasm) {
			t.Errorf("another plugin has the digest %s", r.Digest)
		}
		_, _, _ = l.Client().Referrers(t.Context(), r, "")
	})
}
